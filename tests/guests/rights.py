"""Guests that leave where they came from: another root, other namespaces, fewer rights, no launcher any more."""
import glob
import os
import time

import pprof
from harness import Failure, Guest


def guest(name, way, more=(), **rest):
    rest.setdefault('hot', {'child_work': 40})
    rest.setdefault('check', all_known)
    return Guest('processes: ' + name, ['{T}/guest_rights', way, *more], **rest)


def all_known(profile, directory):
    """No process is called unprofiled, and little time belongs to no process."""
    if 'unprofiled' in profile.facts:
        raise Failure('unprofiled: %s' % profile.facts['unprofiled'])


def wait_for(what, condition, state=lambda: 'it did not happen', deadline=60):
    end = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            raise Failure('waited %d s in vain for %s: %s' % (deadline, what, state()))
        time.sleep(0.02)


def daemon_profile(profile, directory):
    """The launcher says that the daemon runs, and the daemon leaves a profile of all that it did."""
    pattern = os.path.join(directory, 'profile.pb.gz.[0-9]*')
    shares = {}

    def there():
        """Processes on the way to the daemon may leave theirs, too."""
        for path in glob.glob(pattern):
            if not path.rpartition('.')[2].isdigit():
                continue # one that is being written
            own = pprof.Profile(path)
            if own.samples:
                shares[path] = own.in_function('child_work') / own.total()
        return any(share > 0.6 for share in shares.values())

    if not any('still run' in note for note in profile.facts.get('note', [])):
        raise Failure('nothing is said of the daemon: %s' % profile.facts.get('note'))
    open(os.path.join(directory, 'work', 'sign'), 'w').close()
    wait_for("the daemon's profile", there, lambda: 'profiles and their shares of child_work: %s' % shares)
    wait_for('its directory to go', lambda: not glob.glob(os.path.join(profile.runtime, 'countersink*')))
    for path in glob.glob(pattern):
        os.unlink(path)


OUT_OF_REACH = {'unprofiled': 'not injected: chroot'}

GUESTS = [
    guest('rights that are given up for good', 'drop', root=True, hot={'child_work': 75, 'guest_work': 10}),
    guest('rights that are given up for a while', 'effective', root=True, hot={'child_work': 45, 'guest_work': 15},
          facts={'unprofiled': 'set-user-id'}, check=None),
    guest('another root', 'other_root', root=True, hot={'guest_work': 45}, facts=OUT_OF_REACH, check=None),
    guest('another directory, and an output relative to the first', 'other_directory', options=['-o', '../profile.pb.gz']),
    guest('a user namespace', 'user_namespace', hot={'child_work': 60}),
    guest('a pid namespace', 'pid_namespace', hot={'child_work': 60}),
    Guest('processes: no /proc', ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /proc && exec {T}/guest_memory work'],
          root=True, hot={'guest_work': 50}, needs=['unshare']),
    guest('a process that other users may not look into', 'not_dumpable', hot={'child_work': 35, 'guest_work': 30}),
    guest('a daemon that outlives the launcher', 'daemon_stays', more=['sign'], hot={'guest_work': 20},
          check=daemon_profile, same=('out', 'err', 'status', 'sum')),
    *[guest('little ' + what, 'limits', more=[limit], hot={'guest_work': 25, 'child_work': 25},
            # Timers are signals that wait.
            by_engine={'timer': {'hot': {'in_thread': 20}, 'facts': {'engine': 'RLIMIT_SIGPENDING'}}}
            if limit == 'pending' else None) for what, limit in (
        ('address space', 'memory'), ('room for files', 'file'), ('memory that may be locked', 'locked'),
        ('room for signals', 'pending'), ('stack', 'stack'))],
]

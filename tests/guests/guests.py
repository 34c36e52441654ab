#!/usr/bin/env python3
"""The classes of programs that break profilers which live inside them: each is run with and without us, and must look
the same from outside and have its profile. Arguments choose classes by regular expression; GUEST_RUNS multiplies runs;
GUEST_USER=65534 tries them as that user, GUEST_ALLOC=4096 while their allocations are sampled, every 4,096 bytes,
GUEST_LOCK=1 while waits for locks are measured."""
import os
import struct
import subprocess
import sys
import tempfile

import boundary
import harness
import loader
import rights
import runtimes
import seccomp
import untracked
from harness import Failure, Guest, Shortfall, main

WORK = {'guest_work': 50}


def signals(name, way, **more):
    more.setdefault('hot', {'guest_work': 30})
    return Guest('signals: ' + name, ['{T}/guest_signals', way], **more)


def processes(name, way, least=20, **more):
    more.setdefault('hot', {'child_work': least})
    return Guest('processes: ' + name, ['{T}/guest_processes', way], watch=True, **more)


def stacks(name, way, more=(), **rest):
    return Guest('stacks: ' + name, ['{T}/guest_stacks', way, *more], hz=10000, **rest)


def fds(name, way, more=(), **rest):
    rest.setdefault('hot', {'guest_work': 20})
    return Guest('files: ' + name, ['{T}/guest_fds', way, *more], hz=10000, **rest)


def core_of(directory):
    """(size, number of threads) of the one core in a directory, which must be whole."""
    names = [name for name in os.listdir(directory) if name.startswith('core')]
    if len(names) != 1:
        raise Failure('cores: %s' % names)
    with open(os.path.join(directory, names[0]), 'rb') as f:
        data = f.read()
    at, each, nr = struct.unpack_from('<Q', data, 32)[0], *struct.unpack_from('<HH', data, 54)
    threads = 0
    for i in range(nr):
        kind, _, offset, _, _, size = struct.unpack_from('<IIQQQQ', data, at + i * each)
        if offset + size > len(data):
            raise Failure('the core is cut')
        while kind == 4 and size > 12:  # PT_NOTE
            name, length, note = struct.unpack_from('<III', data, offset)
            threads += note == 1  # NT_PRSTATUS
            step = 12 + (name + 3 & ~3) + (length + 3 & ~3)
            offset, size = offset + step, size - step
    return len(data), threads


def lost_little(profile, directory, beyond_ms=0):
    """Of all that the kernel counted until the end, no more is without a function than each thread's last sample."""
    lost = sum(ns for ns, stack, _ in profile.samples if stack and stack[0] in (
        '[not sampled]', '[not injected]', '[exit: after the last flush]'))
    by_timer = profile.facts['engine'][0].startswith('timer')
    # Two threads, by periods of 250 us, or by ticks of 4 ms; and what the kernel does to start and to end them, and
    # guest_watch: 0.5 to 3 ms without load. What is not flushed is tens of ms.
    most = (16 if by_timer else 0.5) + 6 + beyond_ms
    if lost > most * 1e6:
        raise Shortfall('%.1f ms have no function, more than %g' % (lost / 1e6, most))


def and_at_the_end(ms):
    return lambda profile, directory: lost_little(profile, directory, ms)


def left_core(profile, directory):
    """A core as it is without us, and nothing of ours in it but the library's own variables."""
    lost_little(profile, directory, 10)  # it takes time to write
    with open('/proc/sys/kernel/core_pattern') as f:
        if f.read().startswith(('|', '/')):
            return  # it goes elsewhere: the status has shown that there was one
    with tempfile.TemporaryDirectory(dir=directory) as plain:
        os.chmod(plain, 0o777)
        subprocess.run([os.path.join(harness.TARGETS, 'guest_ends'), 'core'], cwd=plain, stdout=subprocess.DEVNULL)
        size, threads = core_of(plain)
    ours, ours_threads = core_of(os.path.join(directory, 'work'))
    if ours_threads != threads or ours > size + (512 << 10):
        raise Failure('a core of %d bytes and %d threads, not %d and %d' % (ours, ours_threads, size, threads))


def ends(way, name, **more):
    more.setdefault('hot', {'guest_work': 60})
    more.setdefault('check', lost_little)
    return Guest('ends: ' + name, ['{T}/guest_ends', way], watch=True, **more)


def is_memory_limited():
    """Can groups be given little memory here? Else a SIGKILL amid touching it stands for the kernel's."""
    return any(os.path.exists(path) and os.access(os.path.dirname(path), os.W_OK) for path in (
        '/sys/fs/cgroup/memory/memory.limit_in_bytes', '/sys/fs/cgroup/cgroup.subtree_control'))


GUESTS = [
    signals('blocked, pending, let through', 'masks', hz=10000),
    signals('waits with a mask of their own', 'suspend', hz=10000, hot={'guest_work': 20}),
    signals('sent from another thread end a wait', 'wake', hz=10000),
    signals('a thread that waits for all of them, others that block all', 'wait_for_all'),
    signals('a signalfd for all of them', 'by_fd'),
    signals('threads made with masks', 'attributes'),
    signals('jumps that restore masks', 'jumps'),
    signals('System V and BSD names', 'old_names'),
    signals('interval timers, nested handlers', 'timers', hot={'timers': 80}),
    signals('inherited by children', 'inherit', hot={'guest_work': 20}, watch=True),
    signals('long work in handlers', 'in_handlers', hot={'handler_work': 55, 'guest_work': 15}),

    Guest('signals: no wait of 900 is cut short', ['{T}/guest_waits', 'undisturbed'], hz=10000, hot={'work_beside': 50}),
    Guest('signals: an alarm ends each kind of wait', ['{T}/guest_waits', 'interrupted'], hz=10000, hot={'work_beside': 50}),
    Guest('signals: a handler ends what waits, but no lock that inherits priority', ['{T}/guest_waits', 'ended'], hz=10000,
          hot={'work_beside': 50}),

    fds('their numbers, open and closed', 'numbers', hot={'guest_work': 60}),
    # Most of the threads are over before the first tick that could sample them.
    *[fds(name + ' while threads start', 'storm', more=[way], runs=2,
          by_engine={'timer': {'hot': {'work': 25}}}) for name, way in (
              ('closefrom', 'closefrom'), ('closing all by number', 'close'), ('dup2 onto any number', 'dup2'))],
    # Each is over before the first tick that could sample it.
    fds('300 threads where 64 files may be open', 'few', hot={'guest_work': 50},
        by_engine={'timer': {'hot': {'be_there': 50}}}),
    fds('300 threads where no file can be opened', 'few', more=['taken'], hot={'be_there': 50}),

    *[ends(way, 'after ' + way) for way in ('return', 'exit', '_exit', '_Exit', 'exit_group', 'quick_exit', 'abort')],
    ends('thread', 'exit by a thread'),
    ends('pthread_exit', 'main ends before its threads', hot={'outlive_main': 20},
         # The last thread is over before it runs what atexit() was given, which takes 5 ms.
         check=and_at_the_end(8)),
    ends('core', 'by a signal that leaves a core', check=left_core),
    ends('segv', 'by a wild pointer'),
    # Nearly all of it are faults for a stack's 2,000 pages. The clock that signals overflows where it finds the program's
    # own code, never in the kernel, so that no call of the program is interrupted: the last sample may be far back.
    ends('overflow', 'by a stack that overflows', check=and_at_the_end(10)),
    ends('trap', 'by SIGTRAP'),
    ends('rt', 'by a real-time signal'),
    ends('term', 'by SIGTERM'),
    ends('kill', 'by SIGKILL'),
    # The kernel takes back 64 MiB.
    ends('oom', 'by SIGKILL amid memory that is being touched', check=and_at_the_end(10)),
    *([ends('cgroup', 'by the kernel, for memory', root=True, check=and_at_the_end(20))] if is_memory_limited() else []),
    Guest('ends: 10,000 execs at 10 kHz', ['{T}/exec_chain', '10000', '120'], hz=10000, hot={'link_work': 0.1},
          same=('out', 'err', 'status', 'sum'), deadline=900),

    stacks('alternate stacks with room for nothing else', 'small_alternate', hot={'guest_work': 80}),
    stacks('overflow, handled, in main and in a thread', 'overflow', hot={'recurse': 5, 'guest_work': 30}),
    stacks('threads of the least size', 'small_threads', hot={'guest_work': 70}),
    stacks('coroutines of 16 KB', 'switches', hot={'coroutine_work': 80}),
    stacks('recursion, 30,000 deep', 'depth', hot={'deep': 30, 'guest_work': 20}),
    stacks('handlers left by longjmp', 'jumps', more=['roomy'], hot={'run_until_thrown': 10, 'guest_work': 40}),
    stacks('handlers left by longjmp, on a small stack', 'jumps', hot={'guest_work': 40}),
    stacks('a stack pointer that points nowhere', 'no_stack', hot={'no_stack': 60}),

    processes('every fork and clone', 'forks', least=60),
    processes('forks of a thread, and threads of a fork', 'fork_from_thread', least=80),
    processes('vfork, whose child writes and fails', 'vforks', least=45),
    processes('posix_spawn, with and without success', 'spawns', least=45),
    processes('posix_spawn, with signals that are ignored', 'spawn_ignoring', least=45),
    processes('every exec, with and without environment', 'execs', least=45),
    processes('execs that fail, with threads at work', 'failed_execs', least=40, hz=10000),
    processes('exec by a thread', 'exec_from_thread', least=50),
    processes('system and popen, environment cleared', 'shells', least=45),
    processes('system and popen, signals ignored and blocked', 'shells_and_signals', least=30),
    processes('a daemon', 'daemons', least=45),
    processes('copies whose handlers are reset', 'clear_handlers', least=60),
    processes('children that the kernel reaps', 'unwaited', least=60),
    # What is traced is not sampled.
    processes('traced by its parent', 'traced', hot={'guest_work': 20}),
    Guest('processes: traced by its parent, which a shell waits for', ['sh', '-c', '{T}/guest_processes traced; echo $?'],
          hot={'guest_work': 20}),
    Guest('processes: traced by countersink', ['{T}/guest_processes', 'traced', 'by_number'], hot={'guest_work': 50}),
    processes('a tracer of children', 'tracer', hot={'guest_work': 3}),
]

if __name__ == '__main__':
    sys.exit(main(GUESTS + rights.GUESTS + seccomp.GUESTS + untracked.GUESTS + loader.GUESTS + runtimes.GUESTS + boundary.GUESTS))

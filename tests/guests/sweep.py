#!/usr/bin/env python3
"""Every program of this machine with --version and --help, and workloads.py's one-liners, with and without us: stdout,
stderr, exit status and the files that were made must be the same. One TAP line for each option and way of profiling, one
for each workload; arguments choose programs and workloads by regular expression.

What differs with us is run again without us, up to eight times: what comes out otherwise there, too, is no result (a time,
a pid), and counted. So is what differs without us when every program merely begins some milliseconds later, which the line
names. All else is a difference. Root becomes nobody for all this. SWEEP_KEEP=FILE: write what differed there, whole."""
import collections
import concurrent.futures.thread  # whole: another user may not see where python lives
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

import harness
import workloads

DIRECTORIES = ('/usr/bin', '/usr/sbin', '/usr/games')
OPTIONS = ('--version', '--help')
HZ = 10000
PLAIN_TRIES = 8
SLOW_TRIES = 8
DEADLINE = 20      # seconds for an option, without us; a workload has ten times that, and so has what runs with us

# What does harm to others, or to itself by design, even as nobody.
DANGEROUS = {
    'killall5': 'kills every process of its user, whatever its options',
    'reboot': 'ends the machine', 'shutdown': 'ends the machine', 'poweroff': 'ends the machine', 'halt': 'ends the machine',
    'init': 'is the machine', 'telinit': 'orders init', 'runlevel': 'orders init',
    'pyenv': 'builds programs', 'policy-rc.d': 'belongs to who made the machine',
}


class Result:
    def __init__(self, status, out, err, files):
        self.parts = {'status': status, 'stdout': out, 'stderr': err, **{'file ' + name: h for name, h in files.items()}}


class Place:
    """A worker's directories: the same paths for each run, with us and without, since programs print them."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix='sweep.')
        self.work, self.home, self.tmp, self.runtime, self.kept = (
            os.path.join(self.root, name) for name in ('work', 'home', 'tmp', 'runtime', 'kept'))
        self.profile = os.path.join(self.kept, 'profile.pb.gz')
        # By this, what a run left behind is known.
        self.mark = 'SWEEP=%s' % self.root
        self.env = {'PATH': '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/games', 'LC_ALL': 'C', 'TERM': 'dumb',
                    'HOME': self.home, 'TMPDIR': self.tmp, 'XDG_RUNTIME_DIR': self.runtime, 'USER': 'nobody',
                    'LOGNAME': 'nobody', 'SHELL': '/bin/sh', 'SWEEP': self.root, 'DATA': os.environ.get('SWEEP_DATA', '/')}

    def clean(self):
        for directory in (self.work, self.home, self.tmp, self.runtime, self.kept):
            shutil.rmtree(directory, ignore_errors=True)
            if os.path.exists(directory):  # some make directories without the right to write
                subprocess.run(['chmod', '-R', 'u+rwx', directory], stderr=subprocess.DEVNULL)
                shutil.rmtree(directory, ignore_errors=True)
            os.makedirs(directory, 0o700, exist_ok=True)

    def command(self, way, words):
        if way == 'launcher':
            return [harness.COUNTERSINK, '-q', '-F', str(HZ), '-o', self.profile, '--'] + words, {}
        if way == 'slow':
            return words, {'LD_PRELOAD': os.path.join(harness.TARGETS, 'slow_start.so')}
        if way == 'preload':
            return words, {'LD_PRELOAD': harness.LIBRARY, 'COUNTERSINK_FREQUENCY': str(HZ), 'COUNTERSINK_QUIET': '1',
                           'COUNTERSINK_OUTPUT': os.path.join(self.kept, '%c.%p.pb.gz')}
        return words, {}

    def run(self, way, words, deadline):
        self.clean()
        command, more = self.command(way, words)
        with tempfile.TemporaryFile(dir=self.root) as out, tempfile.TemporaryFile(dir=self.root) as err:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.work,
                                       env=dict(self.env, **more), start_new_session=True)
            try:
                status = process.wait(deadline)
                status = 128 - status if status < 0 else status
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = 'hung'
            self.end_strays()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read(1 << 24).decode('utf-8', 'backslashreplace'))
        return Result(status, *texts, self.files() if way or status != 'hung' else {})

    def files(self):
        """What the command made in its directory."""
        found = {}
        for directory, _, names in os.walk(self.work):
            for name in names:
                path = os.path.join(directory, name)
                if stat.S_ISREG(os.lstat(path).st_mode):
                    with open(path, 'rb') as f:
                        found[os.path.relpath(path, self.work)] = hashlib.sha256(f.read()).hexdigest()[:16]
        return found

    def end_strays(self):
        """Daemons, which have left their process group."""
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                if os.stat('/proc/' + pid).st_uid != os.geteuid() or int(pid) == os.getpid():
                    continue
                with open('/proc/%s/environ' % pid, 'rb') as f:
                    if self.mark.encode() in f.read().split(b'\0'):
                        os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass


NAMES = 'names of files'


def differing(a, b):
    """Names of parts. A file that one of both has not is one of a name that wavers: both then have another instead."""
    found = {name for name in set(a.parts) | set(b.parts) if a.parts.get(name) != b.parts.get(name)}
    missing = {name for name in found if (name in a.parts) != (name in b.parts)}
    return (found - missing) | ({NAMES} if missing else set())


WAYS = ('launcher', 'preload')


def compare(place, words, deadline):
    """{way: {what differs: (without us, with us)}}, or None if nothing could be compared; and what wavers, or why."""
    plain = place.run('', words, deadline)
    if plain.parts['status'] == 'hung':
        return None, {'runs on for ever'}
    ours, profiled = {}, True
    for way in WAYS:
        ours[way] = place.run(way, words, 10 * deadline)
        if way == 'launcher' and not os.path.exists(place.profile):
            ours[way].parts['profile'] = 'none'
    found, waver = {way: differing(plain, ours[way]) for way in WAYS}, set()
    for how in PLAIN_TRIES * [''] + SLOW_TRIES * ['slow']:
        if not any(found.values()):
            break
        by_now = differing(plain, place.run(how, words, (10 if how else 1) * deadline))
        waver |= {name + (' (if later)' if how else '') for name in by_now - waver}
        found = {way: names - by_now for way, names in found.items()}
    for each in (plain, *ours.values()):
        each.parts[NAMES] = sorted(name for name in each.parts if name.startswith('file '))
    return {way: {name: (plain.parts.get(name), ours[way].parts.get(name)) for name in names}
            for way, names in found.items()}, waver


def programs():
    """Each program once, whatever its names."""
    seen = {}
    for directory in DIRECTORIES:
        for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                # Many programs do other things by another name: two links to one file are two programs, /bin's are not.
                seen.setdefault((os.path.realpath(directory), name), path)
    return sorted(seen.values())


def first(text):
    return text if not isinstance(text, str) or len(text) <= 160 else text[:160] + '...'


def difference_lines(words, found):
    lines = []
    for name, (plain, ours) in sorted(found.items()):
        if isinstance(plain, str) and isinstance(ours, str) and name.startswith('std'):
            lines.append('%s: %s, %s' % (' '.join(words)[:100], name, harness.first_difference(plain, ours)))
        else:
            lines.append('%s: %s: %r without us, %r with us' % (' '.join(words)[:100], name, first(plain), first(ours)))
        keep = os.environ.get('SWEEP_KEEP')
        if keep:
            with open(keep, 'a') as f:
                f.write('==== %s: %s\n---- without\n%s\n---- with\n%s\n' % (words, name, plain, ours))
    return lines


class Workers:
    def __init__(self, nr):
        self.pool = concurrent.futures.ThreadPoolExecutor(nr)
        self.local, self.places = threading.local(), []

    def submit(self, words, deadline):
        return self.pool.submit(self.work, words, deadline)

    def work(self, words, deadline):
        if not hasattr(self.local, 'place'):
            self.local.place = Place()
            self.places.append(self.local.place)
        try:
            return compare(self.local.place, words, deadline)
        except OSError as e:
            return None, {'cannot be run: %s' % e.strerror}

    def end(self):
        self.pool.shutdown()
        for place in self.places:
            place.clean()
            shutil.rmtree(place.root, ignore_errors=True)


def say(n, passed, words, lines=()):
    print('%s %d - %s' % ('ok' if passed else 'not ok', n, words))
    for line in lines:
        print('#   ' + line)
    sys.stdout.flush()
    return not passed


def sweep(workers, chosen, option, n):
    """Two TAP lines, from the nth on."""
    began = time.monotonic()
    running = [(path, workers.submit([path, option], DEADLINE)) for path in chosen]
    lines, waver, late, runs, left_out = {way: [] for way in WAYS}, 0, [], 0, collections.Counter()
    bad = {way: 0 for way in WAYS}
    for path, done in running:
        found, wavering = done.result()
        if found is None:
            left_out.update(wavering)
            continue
        runs += 1
        waver += bool(wavering)
        late += [os.path.basename(path)] if any('later' in name for name in wavering) else []
        for way in WAYS:
            bad[way] += bool(found[way])
            lines[way] += difference_lines([path, option], found[way])
    rest = '; some depend on who is first: ' + ' '.join(late) if late else ''
    rest += ''.join('; %d left out: %s' % (nr, why) for why, nr in sorted(left_out.items()))
    failed = 0
    for at, way in enumerate(WAYS):
        failed += say(n + at, not bad[way], '%s by %s at %d Hz: %d programs compared, %d differ; %d differ in part without '
                      'us, too%s' % (option, way, HZ, runs, bad[way], waver, rest), lines[way])
    print('#   %.0f s' % (time.monotonic() - began))
    return failed


def main():
    if os.geteuid() == 0:
        harness.become(65534)
    wanted = [re.compile(word) for word in sys.argv[1:]]
    chosen = [path for path in programs() if os.path.basename(path) not in DANGEROUS]
    chosen = [path for path in chosen if not wanted or any(w.search(path) for w in wanted)]
    lines = [work for work in workloads.WORKLOADS if not wanted or any(w.search(work[0]) for w in wanted)]
    data = tempfile.mkdtemp(prefix='sweep-data.')
    os.environ['SWEEP_DATA'] = data
    workloads.prepare(data)
    workers = Workers(int(os.environ.get('JOBS', '2')))
    print('1..%d' % ((len(OPTIONS) * len(WAYS) if chosen else 0) + len(lines)))
    for name, why in sorted(DANGEROUS.items()):
        print('# not run: %s, which %s' % (name, why))
    failed = n = 0
    try:
        running = [(name, needs, not all(map(shutil.which, needs)) or workers.submit(['bash', '-c', text], 10 * DEADLINE))
                   for name, needs, text in lines]
        for n, (name, needs, done) in enumerate(running, 1):
            if done is True:
                say(n, True, '%s # SKIP not installed: %s' % (name, ' '.join(w for w in needs if not shutil.which(w))))
                continue
            found, waver = done.result()
            words = ('; wavers without us, too: ' + ', '.join(sorted(waver))) if waver else ''
            failed += say(n, found is not None and not any(found.values()), name + words,
                          sum((difference_lines([way + ':', name], found[way]) for way in WAYS), []) if found else ())
        for option in OPTIONS if chosen else ():
            failed += sweep(workers, chosen, option, n + 1)
            n += len(WAYS)
    finally:
        workers.end()
        shutil.rmtree(data, ignore_errors=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

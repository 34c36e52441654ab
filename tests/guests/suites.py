#!/usr/bin/env python3
"""Real programs and their own tests, with and without us: what each says must be the same, test case by test case. One TAP
line for each suite and engine, with the number of results compared. Arguments choose suites by regular expression.

What fails without us, too, is compared as such. What came out otherwise with us is a difference, unless it also comes out
so without us: on a machine with other work some tests fail by themselves. So the suite is run again, without us only, and
the line names what wavered there; with us nothing is tried twice."""
import collections
import concurrent.futures
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import xml.etree.ElementTree

import programs
from harness import COUNTERSINK, environment
import pprof

PLAIN_TRIES = 12   # further runs without us, of the results that differ


class Way:
    """How a suite runs its commands: '' as they are, else under an engine of countersink."""

    def __init__(self, directory, engine, hz):
        self.directory, self.engine, self.hz = directory, engine, hz
        self.profile = os.path.join(directory, 'profile.pb.gz')
        self.runtime = os.path.join(directory, 'runtime')
        os.makedirs(self.runtime, 0o700, exist_ok=True)
        self.env = environment({}, self.runtime)

    def words(self, command):
        if not self.engine:
            return list(command)
        return [COUNTERSINK, '-q', '-F', str(self.hz), '--engine=' + self.engine, '-o', self.profile, '--'] + list(command)

    def start(self, command, **more):
        more.setdefault('cwd', self.directory)
        more.setdefault('env', self.env)
        more.setdefault('stdin', subprocess.DEVNULL)
        return subprocess.Popen(self.words(command), start_new_session=True, **more)

    def run(self, command, deadline=600, **more):
        """(status or 'hung', stdout with stderr)."""
        with tempfile.TemporaryFile() as out:
            process = self.start(command, stdout=out, stderr=subprocess.STDOUT, **more)
            try:
                status = process.wait(deadline)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = 'hung'
            out.seek(0)
            return 128 - status if status != 'hung' and status < 0 else status, out.read().decode('utf-8', 'replace')


# ---- CPython's own tests -----------------------------------------------------------------------------------------------

CPYTHON = ['test_signal', 'test_threading', 'test_thread', 'test_subprocess', 'test_os', 'test_posix', 'test_select',
           'test_selectors', 'test_asyncio', 'test_multiprocessing_fork', 'test_multiprocessing_spawn', 'test_socket',
           'test_faulthandler']


def find_python():
    for path in ('/usr/bin/python3', sys.executable):
        if subprocess.run([path, '-c', 'import test.test_signal'], stderr=subprocess.DEVNULL).returncode == 0:
            return path
    raise FileNotFoundError('no CPython with its tests: scripts/install-deps guests brings it')


def outcome(case):
    kinds = [child.tag for child in case if child.tag in ('error', 'failure', 'skipped')]
    return kinds[0] if kinds else 'ok'


def cpython(name):
    def collect(way, only=()):
        report = os.path.join(way.directory, 'report.xml')
        some = [word for case in only if case.startswith('test.') for word in ('-m', case)]
        # Where there is no host behind the virtual socket, those tests hang by themselves.
        status, out = way.run([find_python(), '-m', 'test', '--ignore', '*VSOCK*', '--junit-xml', report] + some + [name])
        if not os.path.exists(report):
            return {'status': status, 'said': out[-500:]}
        results = {case.get('name'): outcome(case)
                   for case in xml.etree.ElementTree.parse(report).getroot().iter('testcase')}
        if not results:
            raise RuntimeError('no test case: ' + out[-500:])
        return dict(results, status=status)
    return collect


# ---- putting both sides together ---------------------------------------------------------------------------------------

class Suite:
    """collect(way) returns {result: what came out}; where it takes names of results, it may leave out the others.
    hot: functions that the profile must have, in percent."""

    def __init__(self, name, collect, engines=('auto',), hz=1000, needs=(), hot=None, check=None):
        self.name, self.collect, self.engines, self.hz = name, collect, engines, hz
        self.needs, self.hot, self.check = needs, hot or {}, check
        self.partly = 'only' in inspect.signature(collect).parameters


def differences(plain, ours):
    return {name: (plain.get(name), ours.get(name)) for name in set(plain) | set(ours)
            if plain.get(name) != ours.get(name)}


def profile_problems(suite, way):
    try:
        profile = pprof.Profile(way.profile)
    except (OSError, ValueError, IndexError, KeyError) as e:
        return ['no profile that can be read: %s' % e]
    total = profile.total()
    problems = ['%s has %.1f %% of the profile, not %g' % (name, 100 * profile.in_function(name) / max(total, 1), least)
                for name, least in suite.hot.items() if 100 * profile.in_function(name) < least * total]
    if not profile.samples:
        problems.append('the profile is empty')
    problems += suite.check(profile) if suite.check else []
    left = [name for name in os.listdir(way.runtime) if name.startswith('countersink')]
    return problems + (['left behind: %s' % left] if left else [])


def once(suite, engine):
    with tempfile.TemporaryDirectory(prefix='suite.') as directory:
        # The same place for both, which some programs write into what they make.
        plain = suite.collect(Way(directory, '', 0))
        shutil.rmtree(directory)
        os.mkdir(directory)
        way = Way(directory, engine, suite.hz)
        ours = suite.collect(way)
        return plain, ours, profile_problems(suite, way)


def plain_again(suite, names):
    with tempfile.TemporaryDirectory(prefix='suite.') as directory:
        way = Way(directory, '', 0)
        return suite.collect(way, only=names) if suite.partly else suite.collect(way)


def waver(suite, plain, ours, found):
    """Those of the results found to differ that without us, too, come out now so, now otherwise, as they did with us."""
    seen = {name: {repr(plain.get(name))} for name in found}
    for _ in range(PLAIN_TRIES if suite.partly else PLAIN_TRIES // 4):
        left = [name for name in found if repr(ours.get(name)) not in seen[name]]
        # A result that is missing because a program hung or crashed need not be looked for again and again.
        if not left or len(left) > 10:
            break
        again = plain_again(suite, left)
        for name in left:
            seen[name].add(repr(again.get(name)))
    return sorted(name for name in found if repr(ours.get(name)) in seen[name])


def counted(results):
    kinds = collections.Counter(value for value in results.values() if value in ('ok', 'failure', 'error', 'skipped'))
    cases = ['%d %s' % (nr, kind) for kind, nr in sorted(kinds.items(), key=lambda k: -k[1])]
    return '%d results%s' % (len(results), ' (%s)' % ', '.join(cases) if cases else '')


def try_suite(suite, engine):
    """(passed, words, [diagnostics])."""
    missing = [name for name in suite.needs if not shutil.which(name)]
    if missing:
        return False, 'not run', ['needs %s: scripts/install-deps guests brings it' % ', '.join(missing)]
    try:
        plain, ours, problems = once(suite, engine)
        found = differences(plain, ours)
        excused = waver(suite, plain, ours, found) if found else []
    except Exception:  # whatever a suite stumbles over
        return False, 'broken', traceback.format_exc().splitlines()
    found = {name: found[name] for name in found if name not in excused}
    lines = ['%s: %r without us, %r with us' % (name, *both) for name, both in sorted(found.items())][:20]
    words = (counted(plain) if suite.partly else '%d results' % len(plain)) + (', %d differ' % len(found) if found else ', the same')
    if excused:
        words += ' but for %d that waver without us, too: %s' % (len(excused), ' '.join(excused))
    return not found and not problems, words, lines + problems


def suites():
    found = [Suite('CPython ' + name, cpython(name), engines=('auto', 'signal', 'timer')) for name in CPYTHON]
    return found + [Suite(*words, **more) for words, more in programs.SUITES]


def main():
    # What a shell's background job has ignored, its programs would ignore, too: their tests are about these.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for signo in (signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(signo, signal.SIG_DFL)
    wanted = sys.argv[1:]
    chosen = [(suite, engine) for suite in suites() for engine in suite.engines]
    chosen = [c for c in chosen if not wanted or any(re.search(w, '%s, %s' % (c[0].name, c[1])) for w in wanted)]
    print('1..%d' % len(chosen))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get('JOBS', '2'))) as pool:
        running = [(suite, engine, pool.submit(try_suite, suite, engine)) for suite, engine in chosen]
        for n, (suite, engine, done) in enumerate(running, 1):
            passed, words, lines = done.result()
            print('%s %d - %s, %s at %d Hz: %s' % ('ok' if passed else 'not ok', n, suite.name, engine, suite.hz, words))
            for line in lines:
                print('#   ' + line)
            sys.stdout.flush()
            failed += not passed
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

"""Runs guests with and without countersink and compares what an onlooker sees; one TAP line for each class of guests."""
import concurrent.futures.thread  # whole: another user may not see where python lives
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import pprof

SRC = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.environ.get('BUILD', os.path.join(SRC, 'build'))
COUNTERSINK = os.path.join(BUILD, 'bin', 'countersink')
LIBRARY = os.path.join(BUILD, 'lib', 'libcountersink.so')
TARGETS = os.path.join(BUILD, 'tests', 'targets')
ENGINES = ('sigtrap', 'signal', 'timer')
TIMES = int(os.environ.get('GUEST_RUNS', '1'))
# Bytes between samples of allocations, which are then sampled in all of them.
ALLOC = os.environ.get('GUEST_ALLOC')
# 1: waits for locks are measured in all of them.
LOCK = os.environ.get('GUEST_LOCK')
DEADLINE = 120  # seconds, of a run that hangs


def objects():
    """What is preloaded besides the library."""
    return [os.path.join(BUILD, 'lib/countersink/libcountersink-%s.so' % name)
            for name, asked in (('alloc', ALLOC), ('lock', LOCK)) if asked]


class Failure(Exception):
    pass


class Shortfall(Failure):
    """Too little in a function: a host that takes the CPU away can do that once, a profiler that loses samples does it
    again."""


class Guest:
    """A class of guests.

    argv      the command; {T} is the directory of targets, {D} a private directory that is empty at the start of each run
    engines   those to try; runs: how often each
    hz        samples a second
    hot       {function: least share of all CPU time, in percent}
    facts     {key of the profile's comments: regular expression that one of them must match}
    check     function(profile, run directory): raises Failure, or returns nothing
    watch     under guest_watch, which reports children that the guest did not start
    unused    a reason why nothing of the command can be in the profile but its totals
    env       more environment; None as a value takes a variable away
    needs     commands, and files with a whole path, that must be there, or the class fails
    root      needs to be root: only then is it tried
    skip      function that returns why it cannot be tried here, or None
    wrap      what to put in front of countersink itself
    same      what of a run is compared: 'out', 'err', 'status'; with 'sum', the profile's may differ from the kernel's
    options   of countersink; alone: without it, by LD_PRELOAD and the environment; late: by the environment alone
    deadline  seconds after which a run is said to hang
    clean     function(text): output without what differs from run to run
    plain     the command to compare with, where that is another one
    by_engine {engine: {'hot': ..., 'facts': ...}}, where an engine sees other things
    """

    def __init__(self, name, argv, engines=ENGINES, runs=1, hz=4000, hot=None, facts=None, check=None, watch=False,
                 unused=None, env=None, needs=(), root=False, wrap=(), same=('out', 'err', 'status'), options=(),
                 clean=None, plain=None, by_engine=None, alone=False, late=False, skip=None,
                 deadline=DEADLINE):
        self.name, self.argv, self.engines, self.runs, self.hz = name, argv, engines, runs * TIMES, hz
        self.hot, self.facts, self.check, self.watch, self.unused = hot or {}, facts or {}, check, watch, unused
        self.env, self.needs, self.root, self.wrap, self.same = env or {}, needs, root, wrap, same
        self.options, self.clean, self.plain = options, clean, plain
        self.deadline, self.skip = deadline, skip
        self.by_engine, self.alone, self.late = by_engine or {}, alone or late, late

    def expected(self, engine, what):
        return self.by_engine.get(engine, {}).get(what, getattr(self, what))

    def command(self, engine, path, command, directory):
        """The command under countersink, and what that adds to the environment."""
        if self.alone:
            library = ':'.join(objects() + [LIBRARY])
            return expand(self.wrap, directory) + command, {
                'LD_PRELOAD': None if self.late else library, 'COUNTERSINK_ENGINE': engine, 'COUNTERSINK_FREQUENCY': str(self.hz),
                'COUNTERSINK_OUTPUT': path, 'COUNTERSINK_QUIET': '1'}
        options = ['-q', '-F', str(self.hz), '--engine=' + engine, '-o', path] + expand(self.options, directory)
        if objects() and not any(option.startswith(('-e', '--events')) for option in options):
            own = (['alloc:period=' + ALLOC] if ALLOC else []) + (['lock'] if LOCK else [])
            options = ['-e', ','.join(['auto'] + own)] + options
        return expand(self.wrap, directory) + [COUNTERSINK] + options + ['--'] + command, {}


def environment(more, runtime):
    env = {k: v for k, v in os.environ.items() if not k.startswith('COUNTERSINK_') and k != 'LD_PRELOAD'}
    env.update(LC_ALL='C', XDG_RUNTIME_DIR=runtime)
    for key, value in more.items():
        if value is None:
            env.pop(key, None)
        else:
            env[key] = value
    return env


def expand(words, directory):
    return [word.replace('{T}', TARGETS).replace('{D}', directory).replace('{LIB}', LIBRARY) for word in words]


def stolen_ns():
    """CPU time that the machine's host has taken away so far. perf's clocks go on meanwhile, the kernel's accounting does
    not: a sum may be larger by that, whoever takes it."""
    with open('/proc/stat') as f:
        return int(f.readline().split()[8]) * 1000000000 // os.sysconf('SC_CLK_TCK')


class Run:
    """One run of a command, to its end or to the deadline."""

    def __init__(self, command, env, directory, before=None, deadline=DEADLINE):
        work = os.path.join(directory, 'work')
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        # What a test of unprivileged users needs to enter.
        os.chmod(directory, 0o755)
        os.chmod(work, 0o777)
        stolen = stolen_ns()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=work,
                                            env=env, start_new_session=True, preexec_fn=before)
            try:
                self.status = self.process.wait(deadline)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                self.status = 'hung'
            self.stolen_ns = stolen_ns() - stolen
            out.seek(0)
            err.seek(0)
            self.out, self.err = out.read().decode('utf-8', 'replace'), err.read().decode('utf-8', 'replace')


def first_difference(plain, ours):
    a, b = plain.splitlines(), ours.splitlines()
    for n, (left, right) in enumerate(zip(a + ['(end)'] * len(b), b + ['(end)'] * len(a))):
        if left != right:
            return 'line %d: %r without us, %r with us' % (n + 1, left[:300], right[:300])
    return 'only its line ends differ'


def shell_status(status):
    """As countersink passes on the end of its command."""
    return 128 - status if isinstance(status, int) and status < 0 else status


def check_profile(guest, engine, path, directory, runtime, stolen):
    try:
        profile = pprof.Profile(path)
        profile.runtime = runtime
    except (OSError, ValueError, IndexError, KeyError) as e:
        raise Failure('no profile that can be read: %s' % e)
    total = profile.total()
    facts = profile.facts
    for key, pattern in guest.expected(engine, 'facts').items():
        if not any(re.search(pattern, text) for text in facts.get(key, [])):
            raise Failure('no "%s" that says /%s/; there is %s' % (key, pattern, facts.get(key)))
    for name, least in guest.expected(engine, 'hot').items():
        share = 100 * profile.in_function(name) / total if total else 0
        if share < least:
            tops = sorted(((profile.in_function(f), f) for f in {f for _, s, _ in profile.samples for f in s}),
                          reverse=True)[:12]
            raise Shortfall('%s has %.1f %% of %.1f ms, not %g: %s %s' %
                          (name, share, total / 1e6, least, ['%s %.1f' % (f, ns / 1e6) for ns, f in tops],
                           facts.get('engine')))
    if 'user_ns' in facts and total:
        kernel = sum(int(facts.get(key, [0])[0]) for key in ('user_ns', 'sys_ns', 'unwaited_ns'))
        much = max(0.03 * kernel, 5e6)
        if (total < kernel - much or total > kernel + much + stolen) and 'sum' not in guest.same:
            raise Failure('the profile has %.1f ms, the kernel accounted %.1f ms; %.1f ms were stolen' %
                          (total / 1e6, kernel / 1e6, stolen / 1e6))
    if not guest.unused and not any('[' not in stack[0] for _, stack, _ in profile.samples if stack):
        raise Failure('not one sample of a function')
    if guest.check:
        guest.check(profile, directory)


def compare(guest, plain, ours):
    if ours.status == 'hung':
        raise Failure('hangs; it had said %r, and on stderr %r' % (ours.out[-300:], ours.err[-300:]))
    if 'status' in guest.same and shell_status(plain.status) != ours.status:
        raise Failure('status %s without us, %s with us; stderr %r' % (plain.status, ours.status, ours.err[-300:]))
    clean = guest.clean or (lambda text: text)
    if ALLOC: # whose it is then is known
        clean_more = clean
        clean = lambda text: re.sub(r'malloc is [^ ]*', 'malloc', clean_more(text))  # noqa: E731
    if 'out' in guest.same and clean(plain.out) != clean(ours.out):
        raise Failure('stdout, ' + first_difference(clean(plain.out), clean(ours.out)))
    if 'err' in guest.same and clean(plain.err) != clean(ours.err):
        raise Failure('stderr, ' + first_difference(clean(plain.err), clean(ours.err)))


def left_behind(runtime):
    return [name for name in os.listdir(runtime) if name.startswith('countersink')]


def try_guest(guest):
    """Returns (passed, [lines of diagnostics], number of runs)."""
    missing = [name for name in guest.needs if not shutil.which(name) and not os.path.exists(name)]
    if missing:
        return False, ['needs %s: scripts/install-deps guests brings it' % ', '.join(missing)], 0
    reason = guest.skip and guest.skip()
    if reason:
        return True, [], 'skipped # SKIP ' + reason
    nr, problems = 0, []
    shm = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix='guest.') as directory, \
            tempfile.TemporaryDirectory(prefix='guest.', dir=shm) as runtime:
        os.chmod(runtime, 0o711)  # root's programs may become others'
        command = expand(guest.argv, directory)
        if guest.watch:
            command = [os.path.join(TARGETS, 'guest_watch')] + command
        env = environment(guest.env, runtime)
        plain = Run(expand(guest.plain, directory) if guest.plain else expand(guest.wrap, directory) + command, env, directory,
                    deadline=guest.deadline)
        if plain.status == 'hung':
            return False, ['hangs without us'], 1
        for engine in guest.engines:
            left, chances = guest.runs, 2
            while left:
                path = os.path.join(directory, 'profile.pb.gz')
                for old in (path, path + '.old'):
                    if os.path.exists(old):
                        os.unlink(old)
                words, more = guest.command(engine, path, command, directory)
                ours = Run(words, {k: v for k, v in dict(env, **more).items() if v is not None}, directory,
                           deadline=guest.deadline)
                nr += 1
                left -= 1
                try:
                    compare(guest, plain, ours)
                    check_profile(guest, engine, path, directory, runtime, ours.stolen_ns)
                    if left_behind(runtime):
                        raise Failure('left behind: %s' % left_behind(runtime))
                except (Failure, OSError, ValueError, LookupError) as e:
                    if isinstance(e, Shortfall) and chances:
                        chances -= 1
                        left += 1
                        continue
                    problems.append('%s: %s' % (engine, e))
                    if len(problems) > 3:
                        return False, problems, nr
    return not problems, problems, nr


def become(user):
    """Go on as another user, who may need a copy of the build to see it at all."""
    global BUILD, COUNTERSINK, LIBRARY, TARGETS
    copy = tempfile.mkdtemp(prefix='guest-build.')
    os.chmod(copy, 0o755)
    for room in ('bin', 'lib', os.path.join('tests', 'targets')):
        # Links stay links: the library has a name for each platform, and guests that preload it by another one would have two.
        shutil.copytree(os.path.join(BUILD, room), os.path.join(copy, room), symlinks=True)
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        shutil.rmtree(copy)
        sys.exit(status if status >= 0 else 128 - status)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.chdir('/')
    BUILD = copy
    COUNTERSINK, LIBRARY = os.path.join(copy, 'bin', 'countersink'), os.path.join(copy, 'lib', 'libcountersink.so')
    TARGETS = os.path.join(copy, 'tests', 'targets')


def main(guests):
    # What a shell runs in the background ignores SIGQUIT, by which guests end.
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if os.environ.get('GUEST_USER') and os.geteuid() == 0:
        become(int(os.environ['GUEST_USER']))
    wanted = sys.argv[1:]
    chosen = [g for g in guests if not wanted or any(re.search(w, g.name) for w in wanted)]
    if os.geteuid() != 0:
        chosen = [g for g in chosen if not g.root]
    print('1..%d' % len(chosen))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get('JOBS', '2'))) as pool:
        for n, (guest, done) in enumerate([(g, pool.submit(try_guest, g)) for g in chosen], 1):
            try:
                passed, lines, nr = done.result()
            except OSError as e:
                passed, lines, nr = False, ['cannot be run: %s' % e], 0
            runs = nr if isinstance(nr, str) else '%d run%s' % (nr, '' if nr == 1 else 's')
            print('%s %d - %s: %s' % ('ok' if passed else 'not ok', n, guest.name, runs))
            for line in lines:
                print('#   ' + line)
            sys.stdout.flush()
            failed += not passed
    return 1 if failed else 0

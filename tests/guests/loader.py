"""Guests that a loader, an allocator, a sanitizer, a debugger, a tracer or another profiler has a hand in."""
import os
import re
import subprocess
import sysconfig

from harness import ENGINES, Failure, Guest

LIBS = os.path.join('/usr/lib', sysconfig.get_config_var('MULTIARCH') or '')
if not os.path.isdir(LIBS):
    LIBS = '/usr/lib64' if os.path.isdir('/usr/lib64') else '/usr/lib'
INNER = '{T}/plugs/inner'
WORK = ['{T}/guest_memory', 'work']
AUTO = ('auto',)


def loader(name, *words, **more):
    more.setdefault('hot', {'plug_work': 45, 'guest_burn': 5})
    return Guest('loader: ' + name, ['{T}/guest_loader', *words], watch=True, **more)


# ---- memory ----------------------------------------------------------------------------------------------------------

def library(name):
    return os.path.join(LIBS, name)


def memory(name, argv, **more):
    more.setdefault('hot', {'guest_work': 50})
    return Guest('memory: ' + name, argv, **more)


def allocator(name, file):
    first, last = '%s:{LIB}' % library(file), '{LIB}:%s' % library(file)
    plain = ['env', 'LD_PRELOAD=' + library(file)] + WORK
    return [memory('%s preloaded %s us' % (name, where), ['env', 'LD_PRELOAD=' + order] + WORK, plain=plain,
                   needs=[library(file)])
            for where, order in (('before', first), ('after', last))]


def without_addresses(text):
    """What differs from run to run in reports of sanitizers, valgrind and gdb."""
    text = re.sub(r'(==|--)\d+(==|--)', r'\1PID\2', text)
    text = re.sub(r'(0x|\(|: )[0-9a-fA-F]{6,}', 'ADDRESS', text)
    text = re.sub(r'\((BuildId:|Build ID:) [0-9a-f]+\)', '', text)
    # Where the shadow's rows begin depends on the heap's address alone.
    text = re.sub(r'(?m)^(=>|  )ADDRESS: .*\n', '', text)
    return re.sub(r'(LWP|[Pp]rocess|tid=|pid=) ?\d+', r'\1 N', text)


def valgrinds(text):
    """A thread has 16 bytes more where a library more has variables for each thread."""
    return re.sub(r'[0-9,]+ bytes allocated', 'some bytes allocated', without_addresses(text))


def gdbs(text):
    """gdb reports threads when it notices them, before or after what they print, and the process that makes the profile."""
    return re.sub(r'(?m)^\[(New Thread|Thread|Switching to Thread|Detaching after) .*\n', '', without_addresses(text))


def sanitizers(text):
    """Below a thread's first function there is one of ours in its stack, as there are libc's."""
    text = re.sub(r'(?m)^ +#\d+ .*libcountersink\.so.*\n', '', without_addresses(text))
    return re.sub(r'(?m)^( +#)\d+', r'\1', text)


def mistake(sanitizer, name, way):
    """Its report is the product: it must be the same, to the line."""
    kind = {'AddressSanitizer': 'address', 'ThreadSanitizer': 'thread', 'LeakSanitizer': 'leak',
            'UndefinedBehaviorSanitizer': 'undefined'}[sanitizer]
    return memory('%s finds %s' % (sanitizer, name), ['{T}/guest_memory_' + kind, way], clean=sanitizers, runs=3,
                  engines=('auto', 'signal', 'timer'), hot={'guest_work': 5})


def under_valgrind(*words):
    return ['valgrind', '--error-exitcode=9', *words]


# ---- those who look on -----------------------------------------------------------------------------------------------

def gdb(*commands, argv=WORK):
    # What the program prints goes elsewhere first, or the two write into each other's lines.
    commands = ['set args %s >{D}/printed' % ' '.join(argv[1:]), *commands, 'shell cat {D}/printed']
    words = [word for command in commands for word in ('-ex', command)]
    return ['gdb', '-nx', '-batch', '-ex', 'set confirm off', *words, '--args', *argv]


class Alone(Guest):
    """Without countersink's command: what loads the library says so itself."""

    def command(self, engine, path, command, directory):
        return [word.replace('{PROFILE}', path) for word in command], {}


def interrupts(directory, name='prof'):
    """Samples that gperftools took. Source: its documentation of the file's format."""
    with open(os.path.join(directory, name), 'rb') as f:
        words = memoryview(f.read(8 << 20))
    words = words[:len(words) // 8 * 8].cast('Q')
    at, total = 5, 0
    while at + 1 < len(words) and (words[at], words[at + 1]) != (0, 1):
        total += words[at]
        at += 2 + words[at + 1]
    return total


def gperftools_has_its_own(profile, directory):
    # 300 ms of work and more, at 100 Hz, whoever else samples.
    if interrupts(directory) < 15:
        raise Failure('gperftools took %d samples' % interrupts(directory))


def perf_has_its_own(profile, directory):
    text = subprocess.run(['perf', 'report', '-i', os.path.join(directory, 'perf.data'), '--stdio', '-F', 'overhead,sym'],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    shares = [float(share) for share in re.findall(r'(\d+\.\d+)% +\[\.\] guest_work', text)]
    if sum(shares) < 30:
        raise Failure('perf has %.1f %% in guest_work' % sum(shares))


def without_perf(text):
    return re.sub(r'(?m)^\[ perf record: .*\n', '', text)


def without_interrupts(text):
    return re.sub(r'(?m)^PROFILE: interrupts.*\n', '', text)


def strace_saw_all(profile, directory):
    with open(os.path.join(directory, 'trace'), errors='replace') as f:
        text = f.read()
    if '+++ exited with 5 +++' not in text or text.count('clone') < 4:
        raise Failure('strace lost something: %r' % text[-300:])


ATTACH = r'''
{T}/guest_memory work_until sign >out & pid=$!
timeout -s KILL 100 gdb -nx -batch -p $pid -ex 'bt' -ex 'shell touch sign' -ex 'detach' >gdb.out 2>&1 </dev/null
echo "gdb: $?, $(grep -c 'main (' gdb.out) main"
touch sign
wait $pid
echo "status $?"
cat out
'''

# As countersink(7) advises: it runs on under the debugger, which stops at its own breakpoints alone.
ATTACH_AND_STAY = r'''
{T}/guest_memory work_until sign >out & pid=$!
timeout -s KILL 100 gdb -nx -batch -p $pid -ex 'set confirm off' -ex 'handle SIG62 nostop noprint pass' \
	-ex 'break churn' -ex 'shell touch sign' -ex 'continue' -ex 'delete' -ex 'continue' >gdb.out 2>&1 </dev/null
echo "gdb: $?, $(grep -c '^Thread .*hit Breakpoint 1, churn' gdb.out) breakpoint, $(grep -c 'received signal' gdb.out) signals"
grep -o 'exited with code .*' gdb.out
touch sign
wait $pid
echo "status $?"
cat out
'''

GUESTS = [
    Guest('loader: a program and a library with functions of their own by the names of libc\'s', ['{T}/guest_names'],
          watch=True, hot={'guest_work': 50}),
    Guest('loader: the same without a launcher: no SIGCHLD at the end', ['{T}/guest_names'], alone=True,
          hot={'guest_work': 50}),
    loader('a RUNPATH of $ORIGIN, and one of an object\'s own', 'runpath'),
    loader('RTLD_DEEPBIND', 'deepbind', INNER),
    loader('RTLD_DEEPBIND, lazily', 'lazily', INNER),
    loader('RTLD_DEEPBIND by a RUNPATH', 'runpath', 'deepbind', hot={'plug_work': 25, 'guest_burn': 5},
           facts={'warning': 'DEEPBIND.*bypass the library'}),
    loader('dlmopen', 'namespace', INNER, hot={'plug_work': 20, 'guest_burn': 5}, facts={'warning': 'dlmopen.*bypass the library'}),
    Guest('loader: objects come and go', ['{T}/dlstorm', '1', '3'], hz=10000, hot={'crc32_z': 5}),

    *allocator('jemalloc', 'libjemalloc.so.2'),
    *allocator('tcmalloc', 'libtcmalloc_minimal.so.4'),
    *[memory(name, ['{T}/guest_memory_' + kind, 'work'])
      for kind, name in (('address', 'AddressSanitizer'), ('thread', 'ThreadSanitizer'), ('leak', 'LeakSanitizer'),
                         ('undefined', 'UndefinedBehaviorSanitizer'))],
    *[memory('mappings that come and go' + name, ['{T}/guest_memory' + kind, 'maps'], hz=10000)
      for kind, name in (('', ''), ('_address', ', AddressSanitizer'), ('_undefined', ', UndefinedBehaviorSanitizer'))],
    mistake('AddressSanitizer', 'a block used after free', 'after_free'),
    mistake('AddressSanitizer', 'a leak', 'leak'),
    mistake('LeakSanitizer', 'a leak', 'leak'),
    mistake('ThreadSanitizer', 'a race', 'race'),
    mistake('UndefinedBehaviorSanitizer', 'an overflow', 'undefined'),

    memory('a static program', ['{T}/static_spin', '0.3'], engines=('auto', 'timer'), hot={'main': 90},
           facts={'outside': 'static', 'engine': 'from outside'},
           by_engine={'timer': {'hot': {}, 'facts': {'unprofiled': 'static'}}}, unused='static, by timers'),

    Guest('onlookers: countersink -- valgrind', under_valgrind(*WORK), engines=AUTO, clean=valgrinds, hot={},
          unused='none is taken', facts={'engine': 'none.*valgrind'}, needs=['valgrind']),
    Guest('onlookers: countersink -- valgrind, sampled by its timer', under_valgrind(*WORK), engines=('timer',),
          clean=valgrinds, hot={'guest_work': 30}, needs=['valgrind']),
    Guest('onlookers: valgrind finds a block that was not set', under_valgrind('{T}/guest_memory', 'unset'),
          engines=('auto', 'timer'), clean=valgrinds, unused='in auto', needs=['valgrind']),
    Guest('onlookers: valgrind -- countersink', WORK, engines=AUTO, wrap=['valgrind', '-q'], hot={'guest_work': 50},
          clean=without_addresses, needs=['valgrind']),
    Guest('onlookers: valgrind -- countersink, and all that it starts', WORK, engines=AUTO, hot={}, unused='none',
          wrap=['valgrind', '-q', '--trace-children=yes'], clean=without_addresses, facts={'engine': 'none.*valgrind'},
          needs=['valgrind']),

    Guest('onlookers: countersink -- gdb', gdb('run', 'info inferiors'), engines=AUTO, clean=gdbs,
          hot={'guest_work': 30}, facts={'engine': 'signal.*debugger'}, needs=['gdb']),
    Guest('onlookers: countersink -- gdb, with breakpoints', gdb(
        'break main', 'run', 'bt 1', 'next', 'next', 'break fork', 'continue', 'up', 'delete',
        'continue'), engines=AUTO, clean=gdbs,
        hz=100, hot={'guest_work': 20}, needs=['gdb']),
    Alone('onlookers: gdb, which preloads the library', gdb(
        'set environment LD_PRELOAD {LIB}', 'set environment COUNTERSINK_OUTPUT {PROFILE}',
        'set environment COUNTERSINK_QUIET 1', 'run', 'info inferiors'), plain=gdb('run', 'info inferiors'),
        engines=AUTO, clean=gdbs, hot={'guest_work': 40}, facts={'engine': 'signal.*debugger'},
        needs=['gdb']),
    Guest('onlookers: gdb is attached', ['bash', '-c', ATTACH], hot={'guest_work': 30}, needs=['gdb', 'bash']),
    Guest('onlookers: gdb is attached, and stays', ['bash', '-c', ATTACH_AND_STAY], engines=('signal',), runs=3,
          hot={'guest_work': 30}, needs=['gdb', 'bash']),
    Guest('onlookers: countersink -- strace', ['strace', '-f', '-o', '{D}/trace'] + WORK, engines=AUTO,
          hot={'guest_work': 40}, check=strace_saw_all, facts={'engine': 'signal.*debugger'}, needs=['strace']),
    Guest('onlookers: strace -- countersink', WORK, engines=AUTO, wrap=['strace', '-f', '-o', '{D}/trace'],
          hot={'guest_work': 40}, check=strace_saw_all, facts={'engine': 'signal.*debugger'}, needs=['strace']),

    *[Guest('onlookers: gperftools %s us' % where, ['env', 'LD_PRELOAD=' + order, 'CPUPROFILE={D}/prof'] + WORK,
            plain=['env', 'LD_PRELOAD=' + library('libprofiler.so.0'), 'CPUPROFILE={D}/prof'] + WORK,
            clean=without_interrupts, hot={'guest_work': 50}, check=gperftools_has_its_own,
            needs=[library('libprofiler.so.0')])
      for where, order in (('before', library('libprofiler.so.0') + ':{LIB}'),
                           ('after', '{LIB}:' + library('libprofiler.so.0')))],
    Guest('onlookers: countersink -- perf record', ['perf', 'record', '-o', '{D}/perf.data'] + WORK,
          clean=without_perf, hot={'guest_work': 30}, check=perf_has_its_own, needs=['perf']),
    Guest('onlookers: perf record -- countersink', WORK, wrap=['perf', 'record', '-o', '{D}/perf.data'],
          clean=without_perf, hot={'guest_work': 50}, check=perf_has_its_own, needs=['perf']),
    Guest('onlookers: a program with perf events and breakpoints of its own', ['{T}/guest_perf'],
          engines=ENGINES, hot={'guest_work': 60}),
]

"""Guests that start programs that cannot be injected, and are started by them: every way across, and back."""
from harness import Failure, Guest

DYNAMIC, STATIC = '{T}/chain', '{T}/static_chain'
WORK = '0.05'


def once(profile, directory):
    """Nothing has the tree's CPU time twice, and each kind of program has its part."""
    total = profile.total()
    for name in ('leaf', 'other'):
        if not profile.in_function(name):
            raise Failure('no sample in %s()' % name)
    if profile.in_function('leaf') + profile.in_function('other') > 1.02 * total:
        raise Failure('more in functions than in all')


def guest(name, argv, least=70, **more):
    more.setdefault('hot', {'work': least})
    more.setdefault('check', once)
    more.setdefault('engines', ('sigtrap', 'signal'))
    return Guest('boundary: ' + name, argv, **more)


def there_and_back(how):
    return guest('dynamic, static, dynamic, static by ' + how,
                 [DYNAMIC, WORK, how, STATIC, WORK, how, DYNAMIC, WORK, how, STATIC, WORK, '7'], watch=True)


def shell(name, script, least, needs=(), **more):
    """From busybox's shell, which is static, where it is."""
    more.setdefault('hot', {})
    more.setdefault('check', None)
    return guest('static shell, ' + name, ['busybox', 'sh', '-c', script], least, needs=('busybox', *needs), **more)


COMPILE = ('printf "int f(int a) { return a * 2; } int main(void) { return f(21) - 42; }" >a.c && gcc -O2 -c a.c && '
           'gcc a.o -o a && ./a; echo $?')
PYTHON = "python3 -c 'import subprocess; print(subprocess.run([\"%s\", \"0.05\", \"3\"]).returncode)'"
M32 = """printf '%s' 'int execv(const char *, char *const []); static volatile long sum;
__attribute__((noinline)) void work(void) { for (long i = 0; i < 100000000; i++) sum += i; }
int main(int nr, char **argv) { work(); return nr > 1 ? execv(argv[1], argv + 1) : 0; }' >m.c
gcc -m32 -O1 -static m.c -o m 2>/dev/null
if [ -x m ]; then ./m {T}/chain 0.05 spawn ./m {T}/static_chain 0.05 5; else {T}/chain 0.3 5; fi; echo $?"""

GUESTS = [
    *[there_and_back(how) for how in ('exec', 'fork', 'vfork', 'spawn', 'popen', 'system', 'at', 'thread')],
    guest('an exec that fails, and one that does not', [DYNAMIC, WORK, 'fail', STATIC, WORK, 'fail', DYNAMIC, WORK, '4']),
    guest('nothing is there to be executed', [STATIC, WORK, 'fork', '{T}/no_such_program'], watch=True),
    guest('a pipeline of both', ['sh', '-c', '%s %s | %s %s; %s %s & wait; echo $?' % (
        (DYNAMIC, WORK, STATIC, WORK, STATIC, WORK))]),
    guest('a daemon that is static', ['sh', '-c', '(%s 0.1 3 & ) ; %s %s 0; exit 6' % (STATIC, DYNAMIC, WORK)],
          same=('out', 'err', 'status', 'sum'), hot={}, check=None),
    guest('a set-user-ID program that is static', ['sh', '-c', 'cp %s ./s && chown 65534 ./s && chmod 4755 ./s && '
          './s %s 5; echo $?; %s %s 0' % (STATIC, WORK, STATIC, WORK)], root=True, hot={'work': 20}, facts={'unprofiled': 's \\('},
          check=None),
    guest('#! with a static interpreter', ['sh', '-c', 'printf "#!%s 0.1\\n" {T}/static_chain >script && chmod +x script && '
          './script; echo $?']),
    guest('few descriptors', ['bash', '-c', 'ulimit -n 8; exec %s %s spawn %s %s 8' % (DYNAMIC, WORK, STATIC, WORK)]),
    guest('32-bit, dynamic, 32-bit, static', ['sh', '-c', M32], needs=('gcc',)),
    shell('python3 and back', PYTHON % STATIC, 10),
    shell('gcc', COMPILE, 0, needs=('gcc',)),
    shell('psql', 'psql --version; psql -h /nowhere -c "select 1"; echo $?', 0, needs=('psql',)),
    shell('pipes, loops and functions', 'f() { echo $1; }; for i in 1 2 3; do f $i; done | sort -r; seq 300 | while read n; do '
          'echo $((n * n)); done | tail -1; (exit 5); echo $?', 0, unused='it may end before a sample'),
]

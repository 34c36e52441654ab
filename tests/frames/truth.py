"""A program whose samples are known: before each page fault that it causes on purpose, it writes down the stack that
the interpreter itself reports. Run under `countersink -e page-faults -c 1`, each of these stacks must be in the profile.

usage: truth.py FILE      writes the stacks, JSON: [[function, file, line], innermost first]
"""
import functools
import json
import mmap
import re
import sys
import threading

PAGES = mmap.mmap(-1, 4096 * 4096)
HAS_QUALNAME = sys.version_info >= (3, 11)
stacks = []
next_page = [0]


def note(frame):
    stack = []
    while frame:
        code = frame.f_code
        stack.append([code.co_qualname if HAS_QUALNAME else code.co_name, code.co_filename, frame.f_lineno or 0])
        frame = frame.f_back
    stacks.append(stack)
    next_page[0] += 4096
    return next_page[0]


def here():
    PAGES[note(sys._getframe())] = 1


def recurse(n):
    if n == 0:
        here()
        return 0
    return 1 + recurse(n - 1)


def generate(n):
    for i in range(n):
        here()
        yield i


def delegate(n):
    yield from generate(n)


async def inner(n):
    here()
    return n


async def outer(n):
    return await inner(n) + 1


class Meta(type):
    def __new__(mcs, name, bases, namespace):
        here()
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *args):
        here()
        return super().__call__(*args)


class Made(metaclass=Meta):
    def __init__(self, x=0):
        here()
        self.x = x

    def __del__(self):
        here()

    def __getattr__(self, name):
        here()
        return 1

    @property
    def value(self):
        here()
        return 2

    def __lt__(self, other):
        here()
        return self.x < other.x


def wrapped(f):
    @functools.wraps(f)
    def wrapper(*args):
        here()
        return f(*args)
    return wrapper


@wrapped
def decorated():
    here()


def größe():
    here()


def 関数():
    größe()


def raises():
    try:
        here()
        raise ValueError
    except ValueError:
        here()
    finally:
        here()


class Context:
    def __enter__(self):
        here()

    def __exit__(self, *args):
        here()
        return True


def callbacks():
    sorted([3, 1, 2], key=lambda x: (here(), x)[1])
    re.sub('a', lambda match: (here(), 'b')[1], 'banana')
    functools.reduce(lambda a, b: (here(), a + b)[1], range(4))
    list(map(lambda x: here(), range(3)))
    [here() for _ in range(2)]
    {x: here() for x in range(2)}
    list(here() for _ in range(2))


def compiled():
    exec('def made():\n    here()\nmade()\n')
    eval('here()')
    exec(compile('\n\n\nhere()\n', 'another file.py', 'exec'))
    # Each is freed before the next one is made: they get the same addresses.
    for i in range(40):
        exec(compile('\n' * (i % 7) + 'def made_%d():\n    here()\nmade_%d()\n' % (i, i), 'made %d.py' % (i % 5), 'exec'),
             {'here': here})


def over_lines(a,
               b=0):
    return (a +
            (here() or 0) +
            b)


def run_coroutine():
    coroutine = outer(1)
    try:
        coroutine.send(None)
    except StopIteration:
        pass


def everything():
    here()
    recurse(5)
    recurse(60)
    list(generate(3))
    list(delegate(3))
    run_coroutine()
    a, b = Made(1), Made(2)
    a < b
    sorted([b, a])
    a.nothing
    a.value
    del a
    decorated()
    関数()
    raises()
    with Context():
        raise KeyError
    callbacks()
    compiled()
    over_lines(
        1,
        2)


if __name__ == '__main__':
    for _ in range(5):
        everything()
    thread = threading.Thread(target=everything)
    thread.start()
    thread.join()
    with open(sys.argv[1], 'w') as out:
        json.dump(stacks, out)

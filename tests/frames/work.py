"""Work whose calls are known: what steps a stack may have is written down by the interpreter itself, by sys.setprofile.

usage: work.py trace FILE              writes the legal steps, JSON: [[caller, its file, line, function, its file], ...]
       work.py run SECONDS THREADS     works for so many seconds of CPU time, in so many threads besides the main one
       work.py stress SECONDS          the same, with threads that start and end, forked children, deep recursion that
                                       crosses chunks of the stack of frames, and garbage collection
Recursion, generators, coroutines, exceptions, classes, callbacks from C, exec and eval, deep recursion, and calls
without the global lock.
"""
import functools
import gc
import json
import os
import re
import sys
import threading
import time
import zlib

HAS_QUALNAME = sys.version_info >= (3, 11)
SOURCE = compile('def made():\n    return spin(4)\nmade()\nmade()\n', 'made.py', 'exec')


def spin(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total


def recurse(n):
    if n == 0:
        return spin(20)
    return recurse(n - 1) + 1


def generate(n):
    for _ in range(n):
        yield spin(5)


def delegate(n):
    yield from generate(n)


async def inner(n):
    return spin(n)


async def outer(n):
    first = await inner(n)
    return first + await inner(n)


class Node:
    __slots__ = ('x', 'next')

    def __init__(self, x, following=None):
        self.x = x
        self.next = following

    def total(self):
        return self.x + (self.next.total() if self.next else 0)

    def __lt__(self, other):
        return self.x < other.x

    def __del__(self):
        spin(1)


def throw(n):
    if n == 0:
        raise ValueError(n)
    try:
        throw(n - 1)
    finally:
        spin(3)


def catch():
    try:
        throw(5)
    except ValueError:
        spin(3)


def key(x):
    return -x


def throwing_key(x):
    if x == 7:
        raise KeyError(x)
    return x


def replace(match):
    return match.group(0) * 2


def add(a, b):
    return a + b


def callbacks():
    sorted(range(30), key=key)
    re.sub('a', replace, 'banana' * 5)
    functools.reduce(add, range(20))
    sum(map(key, range(20)))
    sorted([Node(3), Node(1), Node(2)])
    [spin(2) for _ in range(3)]
    try:
        sorted(range(10), key=throwing_key)
    except KeyError:
        pass


def made_code():
    exec(SOURCE)
    eval('spin(3)')


def without_lock():
    zlib.compress(b'abc' * 2000, 1)


def chain():
    node = None
    for i in range(10):
        node = Node(i, node)
    return node.total()


def coroutine():
    try:
        outer(5).send(None)  # made and run in one line: profiling shows that it runs, a sample may show that it is made
    except StopIteration:
        pass


def everything():
    recurse(30)
    sum(generate(10))
    sum(delegate(5))
    coroutine()
    catch()
    callbacks()
    made_code()
    without_lock()
    chain()


def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        everything()


def in_threads(seconds, nr_threads):
    threads = [threading.Thread(target=work, args=(seconds,)) for _ in range(nr_threads)]
    for thread in threads:
        thread.start()
    work(seconds)
    for thread in threads:
        thread.join()


# ---- what is legal

steps = set()


def name(code):
    return code.co_qualname if HAS_QUALNAME else code.co_name


def on_event(frame, event, _):
    caller = frame.f_back
    if event == 'call' and caller:
        steps.add((name(caller.f_code), caller.f_code.co_filename, caller.f_lineno or 0, name(frame.f_code),
                   frame.f_code.co_filename))


def trace(file, job):
    threading.setprofile(on_event)
    sys.setprofile(on_event)
    job()
    sys.setprofile(None)
    with open(file, 'w') as to:
        json.dump(sorted(steps), to)


# ---- stress

def deep():
    for depth in (40, 90, 140, 400):
        recurse(depth)


def collect():
    ring = [[] for _ in range(50)]
    for a, b in zip(ring, ring[1:] + ring[:1]):
        a.append(b)
    gc.collect(0)


def short_thread():
    everything()
    deep()


def fork():
    pid = os.fork()
    if not pid:
        everything()
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        sys.exit('work.py: a forked child was killed')


def stress(seconds):
    end = time.process_time() + seconds
    rounds = 0
    while time.process_time() < end:
        threads = [threading.Thread(target=short_thread) for _ in range(2)]
        for thread in threads:
            thread.start()
        short_thread()
        collect()
        if rounds % 20 == 0:
            fork()
        for thread in threads:
            thread.join()
        rounds += 1


def main():
    if sys.argv[1] == 'trace':
        trace(sys.argv[2], lambda: in_threads(0.5, 1))
    elif sys.argv[1] == 'stress':
        stress(float(sys.argv[2]))
    else:
        in_threads(float(sys.argv[2]), int(sys.argv[3]))
    print('done')


if __name__ == '__main__':
    main()

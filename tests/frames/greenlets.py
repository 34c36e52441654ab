"""Stacks that are switched by greenlet and gevent, of which steps.py knows the legal calls.

usage: greenlets.py trace FILE        writes the legal steps as work.py does
       greenlets.py run SECONDS       works for so many seconds of CPU time
Greenlets that switch in deep recursion and in callbacks from C, that throw and are thrown into, that are killed; with
gevent, pools, queues, events and timers.
"""
import sys
import time

import greenlet

import work

try:
    import gevent
    import gevent.event
    import gevent.pool
    import gevent.queue
except ImportError:
    gevent = None


def deep(n):
    if n:
        return deep(n - 1) + work.spin(2)
    return greenlet.getcurrent().parent.switch(work.spin(3)) or 0


def in_greenlet(n):
    while True:
        deep(n)


def switches():
    made = [greenlet.greenlet(in_greenlet) for _ in range(5)]
    for _ in range(4):
        for n, one in enumerate(made):
            one.switch(5 * n)
            work.spin(2)


def compare(x):
    greenlet.getcurrent().parent.switch(x)
    return -x


def in_sorted():
    return sorted(range(10), key=compare)


def callbacks():
    one = greenlet.greenlet(in_sorted)
    while not one.dead:
        one.switch()
        work.spin(3)


def in_catching():
    try:
        deep(3)
    except ValueError:
        work.spin(3)


def throws():
    one = greenlet.greenlet(in_catching)
    one.switch()
    one.throw(ValueError)


def in_pool(n):
    gevent.sleep(0)
    return work.spin(n)


def in_producer(queue):
    for n in range(5):
        queue.put(work.spin(n))
        gevent.sleep(0)


def in_consumer(queue):
    for _ in range(5):
        work.spin(queue.get() % 5)


def pools():
    pool = gevent.pool.Pool(4)
    pool.map(in_pool, range(8))
    queue = gevent.queue.Queue(1)
    gevent.joinall([gevent.spawn(in_producer, queue), gevent.spawn(in_consumer, queue)])
    event = gevent.event.Event()
    waiting = gevent.spawn(event.wait)
    event.set()
    waiting.join()
    gevent.with_timeout(1, in_pool, 3)


def everything():
    switches()
    callbacks()
    throws()
    if gevent:
        pools()


def run(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        everything()


if __name__ == '__main__':
    if sys.argv[1] == 'trace':
        work.trace(sys.argv[2], lambda: run(0.3))
    else:
        run(float(sys.argv[2]))
    print('done')

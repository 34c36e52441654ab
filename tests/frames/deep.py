"""deep.py DEPTH SECONDS [many]: works DEPTH Python frames deep, for so many seconds of CPU time.

The frames are those of one function that calls itself; "many": of as many functions.
"""
import sys
import time

SECONDS = float(sys.argv[2])
STEP = """
def step_{0}(first, *others, key=1):
    pair = [first, others]
    if key < 0:
        raise ValueError("no {0}")
    return len(pair) + {1}
"""


def work():
    end = time.process_time() + SECONDS
    total = 0
    while time.process_time() < end:
        for i in range(2000):
            total += i * i % 7
    return total


def deeper(n):
    return work() if n <= 1 else deeper(n - 1) + 1


def deeper_by_many(n):
    names = {"work": work}
    for i in range(n):
        exec(STEP.format(i, "step_%d(first, key)" % (i - 1) if i else "work()"), names)
    return names["step_%d" % (n - 1)](n)


# The module and work() are frames, too.
if len(sys.argv) > 3:
    deeper_by_many(int(sys.argv[1]) - 3)
else:
    deeper(int(sys.argv[1]) - 2)

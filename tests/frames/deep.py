"""deep.py DEPTH SECONDS: works DEPTH Python frames deep, for so many seconds of CPU time."""
import sys
import time

SECONDS = float(sys.argv[2])


def work():
    end = time.process_time() + SECONDS
    total = 0
    while time.process_time() < end:
        for i in range(2000):
            total += i * i % 7
    return total


def deeper(n):
    return work() if n <= 1 else deeper(n - 1) + 1


deeper(int(sys.argv[1]) - 2)  # the module and work() are frames, too

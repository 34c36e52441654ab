"""A program of known functions, for reports: score() by three callers, one of them in a forked child.

usage: slow.py [ROUNDS]
"""
import os
import sys

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 300000


def score(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total


class Parser:
    def parse(self, n):
        return score(n)


def in_child():
    return score(ROUNDS)


def main():
    total = Parser().parse(ROUNDS) + max(map(lambda n: score(n), [ROUNDS]))
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        in_child()
        os._exit(0)
    os.waitpid(pid, 0)
    print(total)


main()

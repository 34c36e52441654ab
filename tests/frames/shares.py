"""Works in two functions of known cost, 3 : 1, until it is killed or for ROUNDS; prints a line before: shares.py [ROUNDS]."""
import sys


def work(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total


def three(n):
    return work(3 * n)


def one(n):
    return work(n)


def main():
    print('ready', flush=True)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else -1
    while rounds:
        rounds -= 1
        n = 1000 + rounds * 7919 % 2000  # of no length that a sampling period could follow
        three(n)
        one(n)


main()

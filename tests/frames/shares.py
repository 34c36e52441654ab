"""Works in two functions of known cost, 3 : 1, until it is killed; prints a line before."""
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
    while True:
        three(2000)
        one(2000)


main()

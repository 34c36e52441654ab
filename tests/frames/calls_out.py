"""Two functions, in turn, whose system calls return structs on the stack."""
import os
import time


def stats():
    for _ in range(1000):
        os.stat('/')


def times():
    for _ in range(2000):
        time.thread_time()


while True:
    stats()
    times()

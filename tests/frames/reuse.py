"""Starts a thread with the number of one that has ended, while a third thread, which has the memory of the first one's
state mostly, sleeps. For a PID namespace of its own, in which the next number can be chosen.
"""
import gc
import os
import threading
import time


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(i * i % 7 for i in range(1000))


def number():
    return int(os.readlink('/proc/thread-self').split('/')[-1])


def former():
    numbers.append(number())
    burn(0.1)


def sleeper():
    is_asleep.set()
    is_done.wait()


def latter():
    if number() == numbers[0]:
        numbers.append(number())
        burn(0.5)


numbers, is_asleep, is_done = [], threading.Event(), threading.Event()
thread = threading.Thread(target=former)
thread.start()
thread.join()
del thread
gc.collect()
asleep = threading.Thread(target=sleeper)
asleep.start()
is_asleep.wait()
for _ in range(100):  # the kernel frees the number a moment after the thread's end
    with open('/proc/sys/kernel/ns_last_pid', 'w') as last:
        last.write(str(numbers[0] - 1))
    thread = threading.Thread(target=latter)
    thread.start()
    thread.join()
    if len(numbers) > 1:
        break
    time.sleep(0.01)
is_done.set()
asleep.join()
print('the number is reused' if len(numbers) > 1 else 'the number is not reused')

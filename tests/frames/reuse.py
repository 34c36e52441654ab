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


def former():
    numbers.append(int(os.readlink('/proc/thread-self').split('/')[-1]))
    burn(0.1)


def sleeper():
    is_asleep.set()
    is_done.wait()


def latter():
    numbers.append(int(os.readlink('/proc/thread-self').split('/')[-1]))
    burn(0.5)


numbers, is_asleep, is_done = [], threading.Event(), threading.Event()
threads = [threading.Thread(target=function) for function in (former, sleeper, latter)]
threads[0].start()
threads[0].join()
threads[0] = None
gc.collect()
while os.path.exists('/proc/self/task/%d' % numbers[0]):
    time.sleep(0.001)
threads[1].start()
is_asleep.wait()
with open('/proc/sys/kernel/ns_last_pid', 'w') as last:
    last.write(str(numbers[0] - 1))
threads[2].start()
threads[2].join()
is_done.set()
threads[1].join()
print('the number is reused' if numbers[0] == numbers[1] else 'not reused: %d, %d' % tuple(numbers))

#!/usr/bin/env python3
"""Lets tests/targets/soak churn under countersink and looks from inside and outside for what grows: TAP. Arguments: for
how many seconds, and a leak for the target to have (its head comment), which must then be found.

What may grow is what a profile needs: the recording, by some bytes for each thread, row and node; the index of rows and
nodes, by levels whose sizes follow from their number; the launcher's account of each process. All else must stay as it
was at half time, so that a hundred bytes lost with each fork, or with each thread or object, are found."""
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time

import pprof
from harness import COUNTERSINK, TARGETS, environment

FILES = 1000        # from so many recordings on, they are read while the command runs
HZ = 1000
HEAP_BYTES = 4096   # what the second half may add to the target's heap
DATA_KB = 64        # and to its private memory, less the index
RECORD_BYTES = {'rec_threads': 192, 'rows': 64, 'nodes': 32}  # at most
PROCESS_BYTES = 1024   # of the launcher's, for each process
LAUNCHER_KB = 1024     # and for what comes once


def levels_kb(entries):
    """What preload/core/record/hash_index.c maps for an index: four times the last one, once that is half full."""
    size, total, mapped = 256, 0, 0
    while entries > mapped + size // 2:
        mapped += size // 2
        size *= 4
        total += size * 16 // 1024
    return total


def index_kb(look):
    """All that it can be: two threads may find one node at once, and a crowded level is left before it is half full."""
    return {levels_kb(rows) + levels_kb(nodes)
            for rows, nodes in itertools.product(*([n, n * 5 // 4] for n in (look['rows'], look['nodes'])))}


def unexplained_kb(half, last):
    """The growth of private memory that is no level of the index."""
    growth = last['data_kb'] - half['data_kb']
    levels = {b - a for a in index_kb(half) for b in index_kb(last)} | {0}
    return min((abs(growth - kb), growth - kb) for kb in levels)[1]


def status_of(pid):
    with open('/proc/%d/status' % pid) as f:
        text = f.read()
    return int(re.search(r'VmRSS:\s+(\d+)', text).group(1)), len(os.listdir('/proc/%d/fd' % pid))


def watch(process):
    """(seconds since it began, RSS, descriptors) of the launcher, until it ends."""
    seen, began = [], time.monotonic()
    while process.poll() is None:
        try:
            seen.append((time.monotonic() - began, *status_of(process.pid)))
        except (OSError, AttributeError):
            pass
        time.sleep(0.5)
    return seen


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def say(self, passed, words):
        self.n += 1
        self.failed += not passed
        print('%s %d - %s' % ('ok' if passed else 'not ok', self.n, words))
        sys.stdout.flush()


def churn(seconds, leak, directory, runtime):
    """(exit status, what the target said, its looks, the launcher's sizes, the profile, what is left behind)."""
    path, scratch = os.path.join(directory, 'profile.pb.gz'), os.path.join(directory, 'tmp')
    os.mkdir(scratch)
    with open(os.path.join(directory, 'out'), 'w+') as out:
        process = subprocess.Popen([COUNTERSINK, '-q', '-F', str(HZ), '-o', path, '--', os.path.join(TARGETS, 'soak'),
                                    str(seconds)] + leak, stdout=out, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, env=environment({'TMPDIR': scratch}, runtime), cwd=directory)
        launcher = watch(process)
        out.seek(0)
        text = out.read()
    looks = [dict((key, int(n)) for key, n in re.findall(r'(\w+) (\d+)(?: |$)', line.split(': ', 1)[1]))
             for line in text.splitlines() if line.startswith('at ')]
    return process.returncode, text, looks, launcher, path, os.listdir(runtime) + os.listdir(scratch)


def private(tap, half, last):
    """The two lines that a leak breaks."""
    heap, kb = last['heap_bytes'] - half['heap_bytes'], unexplained_kb(half, last)
    tap.say(heap <= HEAP_BYTES, 'the heap of the longest-lived process grew by %d bytes in the second half, to %d' %
            (heap, last['heap_bytes']))
    tap.say(kb <= DATA_KB, 'its private memory by %d KiB, of which %d are not the index of %d rows and %d nodes' %
            (last['data_kb'] - half['data_kb'], kb, last['rows'], last['nodes']))


def main():
    seconds, leak = float(sys.argv[1]) if len(sys.argv) > 1 else 600, sys.argv[2:]
    shm = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='soak.') as directory, \
            tempfile.TemporaryDirectory(prefix='soak.', dir=shm) as runtime:
        status, text, looks, launcher, path, left = churn(seconds, leak, directory, runtime)
        for line in text.splitlines():
            print('# ' + line)
        half, last = looks[len(looks) // 2 - 1], looks[-1]
        forks = (last['processes'] - half['processes']) // 3
        if leak:
            private(tap, half, last)
            print('# %s: %s' % (' '.join(leak), 'found' if tap.failed else 'NOT FOUND'))
            return 0 if tap.failed else 1
        print('1..11')
        growth = {key: last[key] - half[key] for key in last}
        profile = pprof.Profile(path)
        kernel = sum(int(profile.facts.get(key, [0])[0]) for key in ('user_ns', 'sys_ns', 'unwaited_ns'))
        tap.say(status == 0 and ' wrong 0' in text, '%d processes, all as they should be' % last['processes'])
        tap.say(100 * forks > DATA_KB << 10, '%d forks in the second half: enough to see 100 bytes lost with each' % forks)
        private(tap, half, last)
        tap.say(growth['maps'] <= 4, 'its mappings: %d more' % growth['maps'])
        tap.say(growth['fds'] == 0 and growth['threads'] == 0, 'its file descriptors: %d more, its threads: %d more' %
                (growth['fds'], growth['threads']))
        most = sum(nr * last[key] for key, nr in RECORD_BYTES.items()) + (64 << 10)
        tap.say(last['rec_bytes'] < most, 'its recording: %d KiB for %d threads, %d rows, %d nodes: %d bytes a thread' %
                (last['rec_bytes'] >> 10, last['rec_threads'], last['rows'], last['nodes'],
                 growth['rec_bytes'] / max(growth['rec_threads'], 1)))
        rate = last['processes'] / seconds
        tap.say(max(look['files'] for look in looks) < FILES + 2 * 10 * rate + 1000,
                'recordings in the run directory: %d at most, %d KiB' %
                (max(look['files'] for look in looks), max(look['files_kb'] for look in looks)))
        # It has to account for each process, under its pid; what it needs to make the profile at the end is another thing.
        running = [rss for at, rss, _ in launcher if seconds / 2 <= at <= seconds]
        tap.say((running[-1] - running[0]) * 1024 < PROCESS_BYTES * growth['processes'] + LAUNCHER_KB * 1024 and
                max(fds for _, _, fds in launcher[2:]) <= 32,
                'the launcher grew by %d KiB for %d processes in the second half, to %d, at the end %d; it has %d descriptors'
                % (running[-1] - running[0], growth['processes'], running[-1], launcher[-1][1], launcher[-1][2]))
        tap.say(not left, 'nothing is left behind: %s' % (left or 'nothing'))
        tap.say(abs(profile.total() - kernel) < 0.03 * kernel, 'the profile has %.2f s of the %.2f s that the kernel '
                'accounted, in %d bytes' % (profile.total() / 1e9, kernel / 1e9, os.path.getsize(path)))
    return 1 if tap.failed else 0


if __name__ == '__main__':
    sys.exit(main())

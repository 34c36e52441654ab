#!/usr/bin/env python3
"""Lets tests/targets/soak churn under countersink and looks from inside and outside for what grows: TAP. The argument
is for how many seconds."""
import os
import re
import subprocess
import sys
import tempfile
import time

import pprof
from harness import COUNTERSINK, TARGETS, environment

FILES = 1000   # from so many recordings on, they are read while the command runs
HZ = 1000


def status_of(pid):
    with open('/proc/%d/status' % pid) as f:
        text = f.read()
    return int(re.search(r'VmRSS:\s+(\d+)', text).group(1)), len(os.listdir('/proc/%d/fd' % pid))


def watch(process):
    """(RSS, descriptors) of the launcher, until it ends."""
    seen = []
    while process.poll() is None:
        try:
            seen.append(status_of(process.pid))
        except (OSError, AttributeError):
            pass
        time.sleep(0.5)
    return seen


def say(n, passed, words):
    print('%s %d - %s' % ('ok' if passed else 'not ok', n, words))
    sys.stdout.flush()
    return 0 if passed else 1


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600
    shm = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix='soak.') as folder, \
            tempfile.TemporaryDirectory(prefix='soak.', dir=shm) as runtime:
        path = os.path.join(folder, 'profile.pb.gz')
        with open(os.path.join(folder, 'out'), 'w+') as out:
            process = subprocess.Popen([COUNTERSINK, '-q', '-F', str(HZ), '-o', path, '--', os.path.join(TARGETS, 'soak'),
                                        str(seconds)], stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       env=environment({}, runtime), cwd=folder)
            launcher = watch(process)
            out.seek(0)
            text = out.read()
        for line in text.splitlines():
            print('# ' + line)
        looks = [dict((key, int(n)) for key, n in re.findall(r'(\w+) (\d+)(?: |$)', line.split(': ', 1)[1]))
                 for line in text.splitlines() if line.startswith('at ')]
        first, last = looks[1], looks[-1]
        growth = {key: last[key] - first[key] for key in first}
        profile = pprof.Profile(path)
        kernel = sum(int(profile.facts[key][0]) for key in ('user_ns', 'sys_ns'))
        print('1..9')
        failed = say(1, process.returncode == 0 and ' wrong 0' in text, '%d processes, all as they should be' %
                     last['processes'])
        # What it records of objects that come and go is part of it.
        failed += say(2, growth['rss_kb'] < 8192 + last['processes'], 'resident memory of the longest-lived process grew by %d KiB to %d' %
                      (growth['rss_kb'], last['rss_kb']))
        # The index of the stacks that were seen grows fourfold when it is half full.
        failed += say(3, growth['data_kb'] < 24576 and growth['maps'] < 16,
                      'its private memory grew by %d KiB, its mappings by %d' % (growth['data_kb'], growth['maps']))
        failed += say(4, growth['fds'] == 0, 'its file descriptors: %d more' % growth['fds'])
        failed += say(5, growth['threads'] == 0, 'its threads: %d more' % growth['threads'])
        rate = last['processes'] / seconds
        most = FILES + 2 * 10 * rate + 1000
        failed += say(6, max(look['files'] for look in looks) < most, 'recordings in the run folder: %d at most, %d KiB' %
                      (max(look['files'] for look in looks), max(look['files_kb'] for look in looks)))
        early, late = launcher[len(launcher) // 4], launcher[-1]
        # It has to account for each process, under its pid: some KiB each.
        failed += say(7, late[0] - early[0] < 8192 + 5 * last['processes'] and max(fds for _, fds in launcher[2:]) <= 32,
                      'the launcher grew by %d KiB to %d, and has %d descriptors' % (late[0] - early[0], late[0], late[1]))
        left = os.listdir(runtime)
        failed += say(8, not left, 'nothing is left behind: %s' % (left or 'nothing'))
        failed += say(9, abs(profile.total() - kernel) < 0.03 * kernel, 'the profile has %.2f s of the %.2f s that the '
                      'kernel accounted, in %d bytes' % (profile.total() / 1e9, kernel / 1e9, os.path.getsize(path)))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

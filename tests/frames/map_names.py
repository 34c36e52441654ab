"""Compares names of compiled Java methods with those that HotSpot wrote for perf (-XX:+DumpPerfMapAtExit).

usage: map_names.py PROFILE      of a run with --frames=both      prints: N frames compared, N differ, and some that do
In such a profile an address of compiled code has its name from /tmp/perf-PID.map, and outwards of it are the methods that
countersink found there: those that were inlined, then the compiled one. Exit status 1: more than 1 in 1,000 (or three)
differ: code of a method handle may be made where other code was.
"""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
import pprof  # noqa: E402


def is_java(place):
    return place[1].endswith('.java') or 'java/lang/invoke/' in place[1] or place[1] == '[jvm]'


def map_name(name):
    """Of "int Work.fib(int)": Work.fib. None: it is no method's."""
    found = re.match(r'\S+ (\S+\.[^.(]+)\(', name)
    if not found or '::' in name:
        return None
    return re.sub(r'(\$\$Lambda).*(\.[^.]*)$', r'\1\2', re.sub(r'[+/]0x[0-9a-f]+', '', found.group(1)))


def main():
    profile = pprof.Profile(sys.argv[1])
    nr, differ = 0, collections.Counter()
    for stack, count in zip(profile.lines, profile.counts):
        for i, place in enumerate(stack):
            want = None if is_java(place) else map_name(place[0])
            if not want:
                continue
            end = i + 1
            while end < len(stack) and is_java(stack[end]):
                end += 1
            nr += count
            if end == i + 1 or stack[end - 1][0] != want:
                differ[(want, stack[end - 1][0])] += count
    print('%d frames compared, %d differ' % (nr, sum(differ.values())))
    for (want, got), count in differ.most_common(5):
        print('%6d %s: %s' % (count, want, got))
    return 1 if not nr or sum(differ.values()) > max(3, nr / 1e3) else 0


sys.exit(main())

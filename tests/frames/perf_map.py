"""Compares the names of JavaScript's functions with those that V8 itself gave to the code that ran them.

usage: perf_map.py PROFILE MAP      of: countersink --frames=both -- node --perf-basic-prof --interpreted-frames-native-stack ...
prints: N frames, N with a name by V8, N equal, N differ

Such a profile has a function's frame, and beside it the native frame that ran it, whose address is looked up in the map that V8
wrote. The map lacks builtin functions, and what the interpreter runs from node 22 on. V8 uses the addresses of code that it throws
away again, so that all that the map has at an address are names of it. Exit status 1: more than 1 in 1,000 differ.
"""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
import pprof  # noqa: E402

# KIND:MARKNAME FILE:LINE:COLUMN; where a function has no name or file, those are missing.
BY_V8 = re.compile(r'^(?:JS|LazyCompile|Function|Eval|Script):[*~^+\']*(?P<name>.*?)(?: (?P<file>\S.*?))?(?::\d+)?(?::\d+)?$')


def is_function(place):
    return bool(re.search(r'\.[cm]?js$|^node:|^\[eval\]$|^evalmachine', place[1]))


def file_of(name):
    return name[len('file://'):] if name.startswith('file://') else name


def is_equal(place, match):
    # Where a function has no name, V8's map has that of its file alone, or nothing.
    names = {match['name'], '(anonymous)' if not match['name'] else match['name']}
    if match['file'] and ' ' in place[0] and '%s %s' % (match['name'], match['file']) == '%s %s' % (place[0], file_of(place[1])):
        return True  # "get size": the match takes its second word for the file's first
    if place[1] == '[eval]' or not match['file']:
        return place[0] in names or place[0] == '(anonymous)'
    return place[0] in names and place[1] == file_of(match['file'])


class Map:
    def __init__(self, path):
        self.pages = collections.defaultdict(list)
        with open(path, errors='replace') as f:
            for line in f:
                start, size, name = line.rstrip('\n').split(' ', 2)
                start, size = int(start, 16), int(size, 16)
                for page in range(start >> 12, (start + size >> 12) + 1):
                    self.pages[page].append((start, start + size, name))

    def names(self, address):
        return [name for start, end, name in self.pages[address >> 12] if start <= address < end]


def main():
    profile, by_address = pprof.Profile(sys.argv[1]), Map(sys.argv[2])
    total = collections.Counter()
    different = collections.Counter()
    for stack, addresses, nr in zip(profile.lines, profile.addresses, profile.counts):
        for i, address in enumerate(addresses[:-1]):
            if is_function(stack[i + 1]):
                total['frames'] += nr
            if is_function(stack[i]) or not is_function(stack[i + 1]):
                continue
            end = i + 1
            while end < len(stack) and is_function(stack[end]):
                end += 1
            # A frame of optimized code runs the functions that are inlined, then the one that V8 names.
            place = stack[end - 1]
            matches = list(filter(None, map(BY_V8.match, by_address.names(address))))
            if not matches:
                continue
            total['named'] += nr
            if any(is_equal(place, match) for match in matches):
                total['equal'] += nr
            else:
                different[(place, matches[-1][0])] += nr
    differ = sum(different.values())
    print('%d frames, %d with a name by V8, %d equal, %d differ' % (total['frames'], total['named'], total['equal'], differ))
    for (place, name), nr in different.most_common(int(os.environ.get('SHOW', '5'))):
        print('%d: %s %s:%d, by V8: %s' % (nr, *place, name))
    return 1 if differ > total['named'] / 1000 or not total['named'] else 0


sys.exit(main())

"""Compares the profile of truth.go with the stacks that it wrote down.

usage: compare_go.py STACKS PROFILE      prints: N stacks, N frames, N missing, N false, N without a root
Stacks are compared from here() on, without the functions of Go's runtime and those of C between them, which Go does not
report. A stack is missing if the program wrote it down and the profile does not have it; it is false if the profile has
it and the program did not write it down. A root is where goroutines begin. Exit status 1: there are such stacks.
"""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
import pprof  # noqa: E402


def shown(stack):
    """What both report: functions of the program and of other packages, but not what the compiler and cgo made."""
    return tuple((name, os.path.basename(file), line) for name, file, line in stack
                 if '.' in name and name != 'main.here' and not name.startswith(('runtime.', 'runtime/cgo.', '_cgo'))
                 and file.endswith('.go') and not file.endswith('_cgo_gotypes.go'))


def main():
    with open(sys.argv[1]) as f:
        want = collections.Counter(shown(stack) for stack in json.load(f))
    got, without = set(), 0
    for stack in pprof.Profile(sys.argv[2]).lines:
        if stack and stack[0][0] == 'main.here':
            got.add(shown(stack))
            without += stack[-1][0] != 'runtime.goexit'
    missing = [stack for stack in want if stack not in got]
    false = [stack for stack in got if stack not in want]
    print('%d stacks, %d frames, %d missing, %d false, %d without a root' %
          (sum(want.values()), sum(len(stack) * n for stack, n in want.items()), len(missing), len(false), without))
    for word, stacks in (('missing', missing), ('false', false)):
        for stack in stacks[:3]:
            print('%s: %s' % (word, ' < '.join('%s:%d' % (name, line) for name, _, line in stack)))
    return 1 if missing or false or without else 0


sys.exit(main())

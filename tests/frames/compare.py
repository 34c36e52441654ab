"""Compares the profile of truth.py, truth.php, truth.pl, truth.rb or truth.js with the stacks that it wrote down.

usage: compare.py STACKS PROFILE [no-lines]      prints: N stacks, N frames, N missing, N false
A stack is missing if the program wrote it down and the profile does not have it; it is false if the profile has it with
here() as its innermost frame, and the program did not write it down. Distinct stacks are compared, not how often each
was sampled. Exit status 1: some are missing or false.
"""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
import pprof  # noqa: E402


def is_source(file):
    return (file.endswith(('.py', '.php', '.pl', '.rb', '.js', '.mjs', "eval()'d code", '<anonymous>')) or
            file.startswith(('<', '(eval', '[eval]', '[internal', 'node:')))


def main():
    has_lines = sys.argv[3:] != ['no-lines']

    def shown(place):
        return tuple(place) if has_lines else (place[0], place[1], 0)

    with open(sys.argv[1]) as f:
        want = collections.Counter(tuple(map(shown, stack)) for stack in json.load(f))
    got = {tuple(shown(place) for place in lines if is_source(place[1])) for lines in pprof.Profile(sys.argv[2]).lines}
    missing = [stack for stack in want if stack not in got]
    # here() calls note() in the same line: page faults in note() are left out.
    false = [stack for stack in got if stack and stack[0][0] in ('here', 'main::here') and stack not in want]
    print('%d stacks, %d frames, %d missing, %d false' %
          (sum(want.values()), sum(len(stack) * n for stack, n in want.items()), len(missing), len(false)))
    for word, stacks in (('missing', missing), ('false', false)):
        for stack in stacks[:3]:
            print('%s: %s' % (word, ' < '.join('%s:%d' % (place[0], place[2]) for place in stack)))
    return 1 if missing or false else 0


sys.exit(main())

"""Compares the profile of truth.py, truth.php, truth.pl, truth.rb, truth.js or Truth.java with the stacks that it wrote down.

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


def of_java(lines):
    """The frames of Java: without what runs a virtual thread, and from here() on, which causes a page fault by callees.
    Those of a virtual thread that are in the heap are not in its stack: then, what is there, and whether more is missing."""
    stack = [place for place in lines if place[1].endswith('.java') or 'java/lang/invoke/' in place[1] or place[1] == '[jvm]']
    names = [place[0] for place in stack]
    is_cut = '[callers in the heap]' in names
    for end in ('[callers in the heap]', 'jdk.internal.vm.Continuation.enterSpecial'):
        if end in names:
            stack = stack[:names.index(end)]
    stack = [place for place in stack if place[0][0] != '[']
    names = [place[0] for place in stack]
    if 'Truth.here' in names and 'Truth.note' not in names:
        stack = stack[names.index('Truth.here'):]
    return tuple(stack), is_cut


def compare_java(want, lists):
    """As compare(), for stacks of which some are cut."""
    got = {of_java(lines) for lines in lists}
    begins = {stack[:n] for stack in want for n in range(1, len(stack) + 1)}
    cut = {stack for stack, is_cut in got if is_cut}
    whole = {stack for stack, is_cut in got if not is_cut}
    missing = [stack for stack in want if stack not in whole and not any(stack[:n] in cut for n in range(1, len(stack)))]
    false = [stack for stack, is_cut in got
             if stack and stack[0][0] == 'Truth.here' and stack not in (begins if is_cut else want)]
    return missing, false


def main():
    has_lines = sys.argv[3:] != ['no-lines']

    def shown(place):
        return tuple(place) if has_lines else (place[0], place[1], 0)

    with open(sys.argv[1]) as f:
        want = collections.Counter(tuple(map(shown, stack)) for stack in json.load(f))
    lists = pprof.Profile(sys.argv[2]).lines
    got = {tuple(shown(place) for place in lines if is_source(place[1])) for lines in lists}
    missing = [stack for stack in want if stack not in got]
    # here() calls note() in the same line: page faults in note() are left out.
    false = [stack for stack in got if stack and stack[0][0] in ('here', 'main::here') and stack not in want]
    if any(place[1] == 'Truth.java' for stack in want for place in stack):
        missing, false = compare_java(want, lists)
    print('%d stacks, %d frames, %d missing, %d false' %
          (sum(want.values()), sum(len(stack) * n for stack, n in want.items()), len(missing), len(false)))
    for word, stacks in (('missing', missing), ('false', false)):
        for stack in stacks[:3]:
            print('%s: %s' % (word, ' < '.join('%s:%d' % (place[0], place[2]) for place in stack)))
    return 1 if missing or false else 0


sys.exit(main())

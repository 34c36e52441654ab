"""Judges the stacks of a profile of work.php, work.pl, work.rb or Work.java, taken at any moment, by the list of their calls.

usage: calls.py CALLS PROFILE [ONE_IN]      prints: N stacks judged, N wrong, N without a root, N lost, and some of them
wrong: a function calls one that it does not. Without a root: the outermost function of the language is another;
a fiber that is being suspended has left its caller's frames already. Lost: no
function of the language, but two calls of its evaluator; one alone may be on its way in or out.
Exit status 1: more than 1 in ONE_IN (default 1,000; or two) are not right.
"""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
import pprof  # noqa: E402

EVALUATORS = ('execute_ex', 'Perl_runops_standard', 'rb_vm_exec')


def is_work(place):
    return os.path.basename(place[1]).startswith(('work.php', 'work.pl', 'work.rb', 'Work.java', '(eval', '[internal', '<internal:kernel', '<internal:gc'))


def judge(stack, calls, roots):
    """None: not judged; '': right; else what is wrong."""
    # Ruby's own files are loaded before the program.
    names = [place[0].replace(' ', '_') for place in stack
             if is_work(place) and not place[0].startswith(('<internal', '<module'))]
    if not names:
        evaluators = sum(place[0] in EVALUATORS for place in stack)
        return 'lost: %d evaluators' % evaluators if evaluators > 1 else None
    for callee, caller in zip(names, names[1:]):
        if callee not in calls.get(caller, ()):
            return 'wrong: %s calls %s' % (caller, callee)
    return '' if names[-1] in roots or 'Fiber::suspend' in names else 'without a root: ' + names[-1]


def main():
    with open(sys.argv[1]) as f:
        lists = [line.split() for line in f if not line.startswith('#')]
    calls = {words[0]: words[1:] for words in lists}
    roots = [lists[0][0]] + calls.get('&', [])
    profile = pprof.Profile(sys.argv[2])
    judged, bad = 0, collections.Counter()
    for stack, count in zip(profile.lines, profile.counts):
        verdict = judge(stack, calls, roots)
        judged += count if verdict is not None else 0
        if verdict:
            bad[verdict] += count
    kinds = [sum(n for text, n in bad.items() if text.startswith(kind)) for kind in ('wrong', 'without', 'lost')]
    print('%d stacks judged, %d wrong, %d without a root, %d lost' % (judged, *kinds))
    for text, n in bad.most_common(5):
        print('%6d %s' % (n, text))
    return 1 if sum(kinds) > max(2, judged / (float(sys.argv[3]) if len(sys.argv) > 3 else 1e3)) else 0


sys.exit(main())

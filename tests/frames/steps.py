"""Judges the stacks of a profile of work.py or greenlets.py, taken at any moment, by the steps that the interpreter itself says are
legal.

usage: steps.py STEPS PROFILE      prints: N stacks judged, N wrong, N without a root, N lost, N marked, and some of them
A stack is judged if it has a function of work.py below main(), or an evaluator without any Python frame.
wrong: a function of work.py calls another from a line that does not. Without a root: the outermost Python frame begins
neither the program nor a thread nor a greenlet. Lost: no Python frame, but two evaluators; one alone may be on its way in or out.
marked: how many stacks the profile itself reports as incomplete, of any kind. What attach reports as stacks without their
functions may be lost, and is not counted.
Exit status 1: more than 1 in 10,000 (or two) are not right, or more than 1 in 100,000 (or one) are neither right nor
marked.
"""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
import pprof  # noqa: E402

PROGRAMS = ('work.py', 'greenlets.py', 'made.py')
OUTERMOST = ('<module>', 'main', 'in_threads', 'trace')


def is_python(place):
    return place[1].endswith('.py') or place[1].startswith('<')


def is_work(place):
    return os.path.basename(place[1]) in PROGRAMS


def is_root(place):
    """A program, a thread, what a greenlet runs, or gevent's greenlet that runs the others."""
    name, file, _ = place
    return (name == '<module>' and is_work(place) or name.endswith('_bootstrap') and 'threading' in file
            or name.startswith('in_') and file.endswith('/greenlets.py') or '/gevent/' in file)


def judge(stack, steps):
    """None: not judged; '': right; else what is wrong."""
    python = [place for place in stack if is_python(place)]
    if not any(is_work(place) and place[0] not in OUTERMOST for place in python):
        evaluators = sum('_PyEval_EvalFrameDefault' in place[0] for place in stack)
        return 'lost: %d evaluators' % evaluators if not python and evaluators > 1 else None
    for function, caller in zip(python, python[1:]):
        step = (caller[0], caller[1], caller[2], function[0], function[1])
        if is_work(caller) and caller[0] not in OUTERMOST and step not in steps:
            return 'wrong: %s, line %d, calls %s' % (caller[0], caller[2], function[0])
    if not is_root(python[-1]):
        return 'without a root: %s' % ' < '.join(place[0] for place in python[:5])
    return ''


def marked(profile):
    return sum(int(re.match('[0-9]+', text).group()) for text in profile.facts.get('loss', [])
               if re.match('[0-9]+ stacks? ', text))


def unread(profile):
    """Of an attach: stacks without Python frames, as its note says."""
    notes = [re.match('Python functions are missing in ([0-9]+) of ', text) for text in profile.facts.get('note', [])]
    return sum(int(note.group(1)) for note in notes if note)


def main():
    with open(sys.argv[1]) as f:
        steps = set(map(tuple, json.load(f)))
    profile = pprof.Profile(sys.argv[2])
    judged, bad = 0, collections.Counter()
    for stack, count in zip(profile.lines, profile.counts):
        verdict = judge(stack, steps)
        judged += count if verdict is not None else 0
        if verdict:
            bad[verdict] += count
    kinds = [sum(n for text, n in bad.items() if text.startswith(kind)) for kind in ('wrong', 'without', 'lost')]
    kinds[2] -= min(kinds[2], unread(profile))
    nr_marked = marked(profile)
    print('%d stacks judged, %d wrong, %d without a root, %d lost, %d marked' % (judged, *kinds, nr_marked))
    for text, n in bad.most_common(5):
        print('%6d %s' % (n, text))
    all_bad = sum(kinds)
    return 1 if all_bad > max(2, judged / 1e4) or all_bad - nr_marked > max(1, judged / 1e5) else 0


sys.exit(main())

"""Makes functions by exec() and drops them, so that later ones have the addresses of former ones.

usage: made.py run N            makes and calls N functions, each for a few ms
       made.py judge PROFILE    prints: N functions, N samples, N wrong
A sample is wrong if its function has not the file and one of the lines that belong to its name.
"""
import os
import sys


def source(k):
    """f_K, with K % 7 empty lines before it, and K % 5 in it."""
    return '\n' * (k % 7) + 'def f_%d(n):\n    total = 0\n%s    for i in range(n):\n        total += i\n' % (
        k, '\n' * (k % 5)) + '    return total\n'


def run(nr):
    for k in range(nr):
        names = {}
        exec(compile(source(k), 'made_%d.py' % (k % 3), 'exec'), names)
        names['f_%d' % k](50000)


def judge(path):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
    import pprof
    seen, nr, wrong = set(), 0, []
    profile = pprof.Profile(path)
    for stack, count in zip(profile.lines, profile.counts):
        for name, file, line in stack:
            if name[:2] != 'f_' or not file.startswith('made_'):
                continue
            k = int(name[2:])
            first = 1 + k % 7
            seen.add(k)
            nr += count
            if file != 'made_%d.py' % (k % 3) or line not in (first, first + 1, *range(first + 2 + k % 5, first + 5 + k % 5)):
                wrong.append((name, file, line))
    print('%d functions, %d samples, %d wrong' % (len(seen), nr, len(wrong)))
    for place in wrong[:5]:
        print('wrong: %s, %s:%d' % place)


if sys.argv[1] == 'run':
    run(int(sys.argv[2]))
else:
    judge(sys.argv[2])

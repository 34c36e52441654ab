"""Makes functions by exec() and drops them, so that later ones have the addresses of former ones.

usage: made.py run N            makes and calls N functions, each for a few ms
       made.py nested N         the same within other functions, alike in all but their names, each for 3 ms or more
       made.py judge PROFILE    prints: N functions, N samples, N wrong
A sample is wrong if its function has not the file and one of the lines that belong to its name. Profiles of jobs.php,
jobs.pl and jobs.rb, which make such functions, too, are judged alike.
"""
import os
import re
import sys
import time


def source(k):
    """f_K, with K % 7 empty lines before it, and K % 5 in it."""
    return '\n' * (k % 7) + 'def f_%d(n):\n    total = 0\n%s    for i in range(n):\n        total += i\n' % (
        k, '\n' * (k % 5)) + '    return total\n'


def run(nr):
    for k in range(nr):
        names = {}
        exec(compile(source(k), 'made_%d.py' % (k % 3), 'exec'), names)
        names['f_%d' % k](50000)


def inner():
    total = 0
    for i in range(20000):
        total += i
    return total


def nested(nr):
    """No caller asks for the hash of these functions' qualified names, which 3.11 shows."""
    for k in range(nr):
        code = inner.__code__.replace(co_name='g_%04d' % k, **{'co_qualname': 'outer.<locals>.g_%04d' % k}
                                      if hasattr(inner.__code__, 'co_qualname') else {})
        function = type(inner)(code, {'range': range})
        end = time.process_time() + 0.003
        while time.process_time() < end:
            function()
        del code, function


def files():
    """Of functions whose number is k, the file's name has files()[k % 3] in it."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'jobs.php')) as f:
        lines = [number for number, line in enumerate(f, 1) if 'eval(' in line and '*' not in line]
    return [('made_%d.' % k, 'jobs.php(%d)' % line) for k, line in enumerate(lines)]


def judge(path):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guests'))
    import pprof
    seen, inner, nr, wrong = set(), set(), 0, []
    profile = pprof.Profile(path)
    names = files()
    for stack, count in zip(profile.lines, profile.counts):
        for name, file, line in stack:
            inner.update(re.findall(r'(?:^|\.)g_([0-9]+)\b', name))
            made = re.search(r'^(?:main::)?f_([0-9]+)\b', name)
            if not made:
                continue
            k = int(made.group(1))
            first = 1 + k % 7
            body = first + 2 + k % 5
            seen.add(k)
            nr += count
            if not any(text in file for text in names[k % 3]) or line not in (first, first + 1, *range(body, body + 6)):
                wrong.append((name, file, line))
    print('%d functions, %d samples, %d wrong' % (len(seen), nr, len(wrong)) if not inner else '%d nested functions' % len(inner))
    for place in wrong[:5]:
        print('wrong: %s, %s:%d' % place)


if sys.argv[1] == 'run':
    run(int(sys.argv[2]))
elif sys.argv[1] == 'nested':
    nested(int(sys.argv[2]))
else:
    judge(sys.argv[2])

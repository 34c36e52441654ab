#!/usr/bin/env python3
# What the tools that formats are for make of our exports: speedscope, the Firefox Profiler, flame graph tools and
# callgrind_annotate, all of them real ones. The functions of burn share its time 60 : 30 : 10; the report says how exactly.
import base64
import json
import os
import re
import subprocess
import sys
import time

from cdp import Browser, Page
from pages import BUILD, COUNTERSINK, SHOTS, SRC, directory, tap

NPM = os.environ.get('NPM', BUILD + '/npm') + '/node_modules'
TIMEOUT = 120
UNITS = {'s': 1e9, 'ms': 1e6, 'µs': 1e3, 'ns': 1, '': 1}
os.chdir(directory.name)
os.environ['HOME'] = directory.name


def run(*words, **options):
    result = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, **options)
    if result.returncode:
        print('# %s\n# status %d: %s' % (' '.join(words), result.returncode, result.stderr[-1000:]), file=sys.stderr)
    return result


def shares_of_report(profile):
    """{function: total %} of burn's functions."""
    out = run(COUNTERSINK, 'report', '--all', profile).stdout
    return {m[2]: float(m[1]) for m in re.finditer(r'^ +[0-9.]+ +[0-9.]+ m?s +([0-9.]+) .* (burn_\d+)$', out, re.M)}


def agree(got, name, tolerance=0.1):
    tap.ok(sorted(got) == sorted(WANTED) and all(abs(got[f] - WANTED[f]) <= tolerance for f in WANTED), name,
           'got %s\nwant %s' % (got, WANTED))


def test_callgrind():
    run(COUNTERSINK, 'export', '-o', 'callgrind.out.burn', 'x.pb.gz')
    out = run('callgrind_annotate', '--inclusive=yes', 'callgrind.out.burn')
    tap.same(out.returncode, 0, 'callgrind_annotate reads it')
    agree({m[2]: float(m[1]) for m in re.finditer(r'\( *([0-9.]+)%\).*:(burn_\d+) ', out.stdout)}, 'callgrind_annotate: the shares of the report')
    whole = re.search(r'^([0-9,]+) \(100.0%\).*PROGRAM TOTALS', out.stdout, re.M)
    tap.same(whole and int(whole[1].replace(',', '')), WHOLE, 'callgrind_annotate: the whole')
    out = run('callgrind_annotate', '--tree=both', '--inclusive=yes', 'callgrind.out.burn').stdout
    tap.ok(re.search(r'< .*:main \(1x\)', out) and re.search(r'> .*:burn_60 \(1x\)', out), 'callgrind_annotate: callers and callees', out[-3000:])
    out = run('callgrind_annotate', 'callgrind.out.burn', os.path.join(SRC, 'tests/targets/work.h')).stdout
    tap.ok(re.search(r'%\).*for \(uint64_t i = 0; i < rounds; i\+\+\)', out), 'callgrind_annotate: the source with its costs', out[-3000:])


def test_folded():
    folded = run(COUNTERSINK, 'export', '-f', 'folded', 'x.pb.gz').stdout
    out = run('node', NPM + '/stackvis/cmd/stackvis', 'collapsed', 'flamegraph-svg', input=folded)
    tap.same(out.returncode, 0, 'stackvis reads folded stacks')
    drawn = {m[1]: float(m[2]) for m in re.finditer(r'<rect [^>]*;(burn_\d+)(?:;spin)? \(\d+ samples, ([0-9.]+)%\)', out.stdout)}
    agree(drawn, 'stackvis: its flame graph has the shares of the report', 0.02)
    sums = {}
    for line in folded.splitlines():
        stack, weight = line.rsplit(' ', 1)
        for f in WANTED:
            if f in stack.split(';'):
                sums[f] = sums.get(f, 0) + int(weight)
    agree({f: 100 * sums[f] / WHOLE for f in sums}, 'folded: the shares of the report', 0.01)


def test_speedscope(browser):
    for ending, what in (('speedscope.json', 'speedscope\'s own format'), ('folded', 'folded stacks'), ('pb.gz', 'pprof')):
        name = 'x.' + ending
        run(COUNTERSINK, 'export', '-o', name, 'x.pb.gz') if ending != 'pb.gz' else None
        with open(name, 'rb') as file, open('load.js', 'w') as script:
            script.write('speedscope.loadFileFromBase64(%s, "%s");\n' % (json.dumps(name), base64.b64encode(file.read()).decode()))
        page = Page(browser)
        page.open('file://%s/speedscope/dist/release/index.html#localProfilePath=%s' % (NPM, os.path.abspath('load.js')),
                  "document.body.innerText.includes('Sandwich')")
        page.key('3')
        page.wait("document.querySelectorAll('table tr').length > 3")
        rows = page.run("Array.from(document.querySelectorAll('table tr'), (r) => Array.from(r.querySelectorAll('td'), (c) => c.innerText))")
        shares = {}
        for row in rows:
            function = re.search(r'burn_\d+', ' '.join(row))
            values = [float(m[1]) * UNITS[m[2]] for m in map(re.compile(r'([0-9.]+)([a-zµ]*)').match, (cell.replace(',', '') for cell in row[:2])) if m]
            if function and values:
                shares[function[0]] = 100 * max(values) / WHOLE
        agree(shares, 'speedscope: %s has the shares of the report' % what)
        tap.same([e for e in page.events('Runtime.exceptionThrown')], [], 'speedscope: %s without an error' % what)
        if ending == 'speedscope.json':
            page.key('1')
            page.shot(SHOTS + '/speedscope.png')


def test_firefox():
    profiler = lambda *words: run('node', NPM + '/@firefox-devtools/profiler-cli/dist/profiler-cli.js', *words)
    run(COUNTERSINK, 'export', '-o', 'x.json', 'x.pb.gz')
    try:
        # It leaves a daemon behind, and gives up early on one that starts slowly.
        profiler('load', 'x.json')
        until = time.monotonic() + TIMEOUT
        while profiler('status').returncode and time.monotonic() < until:
            time.sleep(0.1)
        tap.same(profiler('status').returncode, 0, 'the Firefox Profiler loads its format')
        tap.ok('burn' in profiler('thread', 'list').stdout, 'the Firefox Profiler lists the thread')
        functions = profiler('thread', 'functions', '--thread', 't-0').stdout
        sums = {m[1]: float(m[2]) for m in re.finditer(r'burn!(burn_\d+) - self: .*total: ([0-9.]+)ms', functions)}
        agree({f: 100 * v * 1e6 / WHOLE for f, v in sums.items()}, 'the Firefox Profiler: the shares of the report')
        info = profiler('profile', 'info').stdout
        tap.ok(re.search(r't-0: burn \[tid \d+\] - [1-9][0-9.]*ms', info), 'the Firefox Profiler: the thread\'s CPU time', info)
    finally:
        profiler('stop', '--all')


run(COUNTERSINK, '-q', '--timeline', '-o', 'x.pb.gz', '--', BUILD + '/tests/targets/burn', '1500')
WANTED = shares_of_report('x.pb.gz')
WHOLE = sum(int(line.rsplit(' ', 1)[1]) for line in run(COUNTERSINK, 'export', '-f', 'folded', 'x.pb.gz').stdout.splitlines())
tap.same(sorted(WANTED), ['burn_10', 'burn_30', 'burn_60'], 'the report has the three functions to compare')
test_callgrind()
test_folded()
test_firefox()
browser = Browser()
try:
    test_speedscope(browser)
finally:
    browser.close()
tap.done()

#!/usr/bin/env python3
# The page of `countersink history --html` in a real browser: charts, change points, keys, themes, hostile names. Pictures of
# it are kept in $BUILD/browser, for eyes.
import json
import random
import subprocess

from cdp import Browser, Page
from pages import COUNTERSINK, SHOTS, no_complaints, path, tap, text

READY = 'window.countersinkHistory'
EVIL = '</script><script>alert(1)</script><img src=x onerror=alert(2)>'


def made_history(name, lines=80, evil=''):
    """Two cases; in the first one crc32_of is slower by 8 % from line 50 on, in the second one nothing changes."""
    chance = random.Random(11)
    parent, commits = None, []

    def figure(level, deviation, *more):
        ratio = level * chance.gauss(1, deviation)
        return [ratio, ratio * (1 - 2 * deviation), ratio * (1 + 2 * deviation), *more]

    with open(path(name), 'w') as file:
        for i in range(lines):
            commit, level = '%040x' % chance.getrandbits(160), 1.08 if i >= 50 else 1
            cases = {
                './bench sort' + evil: {
                    'figures': {'cpu': figure(1 + (level - 1) / 4, 0.005, 1e8, 'nanoseconds')},
                    'functions': {'crc32_of in bench': figure(level, 0.006, 0.25), 'steady' + evil: figure(1, 0.006, 0.1)},
                    'command': ['./bench', 'sort' + evil]},
                './bench hash': {'figures': {'cpu': [1.5, None, None, 1e8, 'nanoseconds']}, 'functions': {}}}
            file.write(json.dumps({
                'v': 1, 'commit': commit, 'parent': parent, 'committed': '2026-%02d-%02dT08:00:00Z' % (1 + i // 28, 1 + i % 28),
                'time': '2026-11-01T00:00:00Z', 'anchor': 'v1' + evil, 'machine': {'cpu': 'A CPU' + evil, 'cpus': 2, 'kernel': '6'}, 'cases': cases}) + '\n')
            commits.append(commit)
            parent = commit
    return commits


def export(history, page):
    subprocess.run([COUNTERSINK, 'history', '--html', path(page), path(history)], check=True, stdout=subprocess.DEVNULL)
    return 'file://' + path(page)


def count(page, selector):
    return page.run('document.querySelectorAll(%s).length' % json.dumps(selector))


def test_page(browser):
    commits = made_history('made.jsonl')
    page = Page(browser)
    page.scheme('light')
    page.open(export('made.jsonl', 'made.html'), READY)
    tap.same(page.run('document.title'), path('made.jsonl'), "the title of the page is the history's file")
    tap.same(text(page, '#summary'), '80 lines from 2026-01-01 to 2026-03-24', 'the page has the number of lines and their days')
    tap.same(page.run("[...document.querySelectorAll('h3')].map((h) => h.firstChild.textContent)"), ['cpu ', 'crc32_of in bench ', 'steady '],
             'a chart a figure and function of the first case')
    tap.same(count(page, '#charts svg:nth-of-type(1) .point'), 240, 'a point a commit')
    tap.same(count(page, '.interval'), 240, 'an interval a point')

    # ---- change points
    tap.same(count(page, '#changes li'), 1, 'one change point')
    change = page.run('countersinkHistory.data.changes[0]')
    tap.ok(49 <= change['line'] <= 51, 'the change point is within a commit of the true one', change)
    item = text(page, '#changes li')
    tap.has(item, commits[change['line']][:12], 'the change point has its commit')
    tap.ok(item.index('crc32_of in bench +') < item.index('cpu +'), 'the change point has what moved, the clearest first', item)
    tap.has(text(page, '#changes code'), 'git checkout --detach %s && perf-gate.sh %s -- ./bench sort'
            % (commits[change['line'] + 1], commits[change['line'] - 2]), 'the command that confirms a change is shown')
    tap.same(count(page, '.change.slower'), 2, 'the change is marked in the charts of what changed')
    x, low, high = page.run('''(() => { const svg = document.querySelectorAll('#charts svg')[1], mark = svg.querySelector('.change').x1.baseVal.value;
        const points = [...svg.querySelectorAll('.point')].map((p) => [p.cx.baseVal.value, p.cy.baseVal.value]);
        const mean = (those) => those.reduce((sum, p) => sum + p[1], 0) / those.length;
        return [mark, mean(points.filter((p) => p[0] >= mark)), mean(points.filter((p) => p[0] < mark))]; })()''')
    tap.ok(high - low > 40, 'points behind the change are higher: slower is up', (x, low, high))
    page.click_on('#changes button')
    tap.same([count(page, 'li.chosen'), count(page, '.change.chosen')], [1, 2], 'a click on a change point marks it in the charts')
    page.shot(SHOTS + '/history-light.png')

    # ---- points
    page.run("document.querySelectorAll('#charts svg')[1].focus()")
    tap.has(text(page, '#detail'), commits[79] + ' 2026-03-24: crc32_of in bench +', 'the chart that has the focus shows its latest commit')
    page.key('ArrowLeft')
    tap.has(text(page, '#detail'), commits[78], 'the left arrow goes to the commit before')
    page.key('Home')
    tap.has(text(page, '#detail'), commits[0], 'Home goes to the first commit')
    page.key('ArrowLeft')
    tap.has(text(page, '#detail'), commits[0], 'there is none before the first one')
    tap.has(text(page, '#detail'), ' % (95 % CI ', 'a commit has its interval')
    tap.has(text(page, '#detail'), 'against v1; A CPU', 'a commit has its anchor and its machine')
    x, y = page.run('''(() => { const svg = document.querySelectorAll('#charts svg')[0], point = svg.querySelectorAll('.point')[40];
        svg.scrollIntoView({block: 'center'}); const box = point.getBoundingClientRect(); return [box.x + 3, box.y + 20]; })()''')
    page.mouse('mouseMoved', x, y)
    page.settle()
    tap.has(text(page, '#detail'), commits[40] + ' 2026-02-13: cpu ', 'the commit below the pointer is described')
    tap.same(count(page, '.point.chosen'), 1, 'the commit below the pointer is marked')

    # ---- another case
    page.run("(() => { const s = document.getElementById('case'); s.value = 1; s.dispatchEvent(new Event('change')); })()")
    tap.same([count(page, 'svg'), count(page, '.interval'), count(page, '.point')], [1, 0, 80], 'another case: its charts; no interval where none is known')
    tap.same(text(page, '#changes'), 'none', 'another case: no change points')
    no_complaints(page, 'made')
    page.scheme('dark')
    tap.same(page.run("getComputedStyle(document.body).backgroundColor"), 'rgb(21, 23, 27)', 'the page is dark where the reader wants that')
    page.run('countersinkHistory.show(0)')
    page.size(390, 800)
    tap.ok(page.run('document.documentElement.scrollWidth <= window.innerWidth'), 'a narrow window: no line is wider')
    page.shot(SHOTS + '/history-dark.png')


def test_hostile(browser):
    made_history('evil.jsonl', evil=EVIL)
    page = Page(browser)
    page.open(export('evil.jsonl', 'evil.html'), READY)
    page.click_on('#changes button')
    page.run("document.querySelectorAll('#charts svg')[2].focus()")
    tap.same(page.run('countersinkHistory.data.cases[0].name'), './bench sort' + EVIL, 'hostile: names are unchanged')
    tap.has(text(page, '#detail'), EVIL, 'hostile: names are shown as text')
    tap.same([count(page, 'img'), count(page, 'script')], [0, 2], 'hostile: no name became an element or a script')
    tap.same(page.events('Page.javascriptDialogOpening'), [], 'hostile: no script of a name ran')
    no_complaints(page, 'hostile')


def test_small(browser):
    made_history('one.jsonl', lines=1)
    page = Page(browser)
    page.open(export('one.jsonl', 'one.html'), READY)
    tap.same([count(page, 'svg'), count(page, '.point'), text(page, '#changes')], [3, 3, 'none'], 'a history of one line: its points, no change')
    no_complaints(page, 'one line')


browser = Browser()
try:
    test_page(browser)
    test_hostile(browser)
    test_small(browser)
finally:
    browser.close()
tap.done()

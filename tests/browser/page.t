#!/usr/bin/env python3
# The page of `countersink export --format html` in a real browser: search, click, zoom, brush, keys, themes, print. What is
# asserted is the page's state; pictures of it are kept in $BUILD/browser, for eyes.
import json
import os
import shutil
import subprocess

from cdp import Browser, Page
from make_profile import Profile, many_stacks
from pages import COUNTERSINK, SHOTS, no_complaints, path, tap, text

READY = 'window.countersink && countersink.app.readyMs > 0'


def export(profile, page, *options):
    subprocess.run([COUNTERSINK, 'export', '-o', path(page), *options, path(profile)], check=True)
    return 'file://' + path(page)


def made_profile(name, scale=(1, 1, 1)):
    """Two processes, three threads, ten seconds in which first alpha, then beta, then both work."""
    profile = Profile([('samples', 'count'), ('task-clock', 'nanoseconds')])
    main, alpha, beta, leaf, again = (profile.function(n) for n in ('main', 'alpha(int)', 'beta<char>', 'leaf_work', 'again'))
    other = profile.function('memcpy', '/lib/libc.so.6')
    profile.comment('command: made --up')
    profile.comment('wall_ns: 10000000000')
    who = [dict(pid=10, tid=10, process='made', thread='first'), dict(pid=10, tid=11, process='made', thread='second'),
           dict(pid=20, tid=20, process='child', thread='child')]
    for i in range(1000):
        time = 1700000000000000000 + i * 10000000
        for nr, (stack, thread) in enumerate([((leaf, alpha, main), 0), ((other, beta, main), 1), ((again, again, again, main), 2)]):
            if (nr == 0 and i >= 600) or (nr == 1 and i < 400):
                continue
            profile.sample(stack, [1, 1000000 * scale[nr]], timestamp=time, **who[thread])
    profile.sample((profile.function('[not sampled]'),), [0, 5000000], pseudo='not sampled', pid=10, process='made')
    profile.write(path(name))


NODE = '''(() => { const {flames, app} = countersink, t = app.model.tree;
	for (let i = 1; i < t.n; i++) if (app.model.frames.name[t.frame[i]] === %s) return i; })()'''
PLACE = '''(() => { const f = countersink.flames.%s, box = f.canvas.getBoundingClientRect(), node = %s;
	for (let row = 0; row < f.rows.length; row++) for (const [n, x, w] of f.rows[row] || [])
		if (n === node) return [box.x + x + w / 2, box.y + f.rowTop(row) + 10, w]; return null; })()'''


def node(page, name):
    return page.run(NODE % json.dumps(name))


def place(page, name, flame='flame'):
    return page.run(PLACE % (flame, NODE % json.dumps(name)))


def test_made(browser):
    made_profile('made.pb.gz')
    page = Page(browser)
    page.scheme('light')
    page.open(export('made.pb.gz', 'made.html'), READY)
    whole = 600e6 + 600e6 + 1000e6 + 5e6
    tap.same(page.run('document.title'), 'made --up', 'the title of the page is the command')
    tap.near(page.run('countersink.app.whole[0]'), whole, 'the total is that of the profile')
    tap.has(text(page, '#verdict'), '2.205 s of task-clock · in 10.00 s', 'the verdict has the CPU time and the duration')
    page.shot(SHOTS + '/made-light.png')

    # ---- search ----
    page.key('/')
    tap.same(page.run('document.activeElement.id'), 'search', '/ goes to the search')
    page.type('alpha')
    tap.has(text(page, '#found'), '1 function, 27.21 %', 'a search shows how many functions match, and their share')
    tap.near(page.run('countersink.app.matched'), 600e6, 'a search sums the weight of its matches')
    page.run("document.getElementById('search').select()")
    page.type('main /')
    tap.has(text(page, '#found'), '0 functions', 'a search of two words needs both')
    page.run("document.getElementById('search').select()")
    page.type('/^(alpha|leaf_)/')
    tap.has(text(page, '#found'), '2 functions, 27.21 %', 'a pattern selects functions; callees of a match count once')
    page.run("document.getElementById('search').select()")
    page.type('/(/')
    tap.has(text(page, '#found'), 'not a regular expression', 'an invalid pattern is reported')
    page.shot(SHOTS + '/made-search.png')
    page.key('Escape')
    tap.same([text(page, '#found'), page.run('countersink.app.search')], ['', None], 'Escape ends the search')

    # ---- click, zoom, hover ----
    x, y, width = place(page, 'alpha(int)')
    page.mouse('mouseMoved', x, y)
    page.settle()
    tap.same(text(page, '#detail-name'), 'alpha(int)', 'the frame below the pointer is described')
    tap.has(text(page, '#detail-values'), 'total 600.0 ms (27.21 %), self 0 ns', "the description of a frame has the frame's values")
    page.click(x, y)
    tap.same(page.run('countersink.flames.flame.root'), node(page, 'alpha(int)'), 'a click on a frame zooms to it')
    tap.ok(place(page, 'alpha(int)')[2] > 3 * width, 'the frame is as wide as the graph')
    tap.has(text(page, '#path'), 'mainalpha(int)', 'the path to the zoomed frame is shown')
    page.key('Escape')
    tap.same(page.run('countersink.flames.flame.root'), 0, 'Escape shows the whole again')
    page.click_on('#flame-up')
    high, low = place(page, 'leaf_work')[1], place(page, 'main')[1]
    tap.ok(high < low, 'the flame graph has callers below callees')
    page.shot(SHOTS + '/made-flame.png')
    page.key('i')
    tap.ok(place(page, 'leaf_work')[1] > place(page, 'main')[1], 'key I turns the graph upside down')
    order = lambda: [place(page, 'again')[0], place(page, 'alpha(int)')[0], place(page, 'beta<char>')[0]]
    again, alpha, beta = order()
    tap.ok(again < alpha and again < beta, 'by weight: the heaviest callee is the first')
    page.click_on('#by-name')
    again, alpha, beta = order()
    tap.ok(again < alpha < beta, 'by name: callees are in alphabetical order')
    page.key('o')

    # ---- keys ----
    page.run("countersink.flames.flame.canvas.focus()")
    for key, name in (('Home', 'all'), ('ArrowDown', 'main'), ('ArrowDown', 'again'), ('ArrowRight', 'alpha(int)'), ('ArrowRight', 'beta<char>'),
                      ('ArrowLeft', 'alpha(int)'), ('ArrowDown', 'leaf_work'), ('ArrowUp', 'alpha(int)')):
        page.key(key)
        tap.same(text(page, '#detail-name'), name, '%s goes to %s' % (key, name))
    tap.has(text(page, '#announce'), 'alpha(int), made, total 600.0 ms (27.21 %)', 'a frame that is reached by keys is announced to screen readers')
    page.key('Enter')
    tap.same(page.run('countersink.flames.flame.root'), node(page, 'alpha(int)'), 'Enter zooms to the frame')
    page.key('Backspace')
    tap.same(page.run('countersink.flames.flame.root'), node(page, 'main'), 'Backspace goes out by one')
    page.key('Escape')
    page.key('c')
    tap.same(page.run('countersink.app.view'), 'sandwich', 'C shows callers and callees')
    tap.has(text(page, '#sandwich-of'), 'alpha(int)', 'C shows callers and callees of the selected frame')
    page.key('1')
    tap.same(page.run('countersink.app.view'), 'flame', '1 is the flame graph')
    page.key('?')
    tap.ok(page.run("document.getElementById('help-dialog').open"), '? lists the keys')
    page.shot(SHOTS + '/help.png')
    page.key('Escape')
    tap.ok(not page.run("document.getElementById('help-dialog').open"), 'Escape closes the list')
    page.run("document.activeElement.blur()")
    reached = set()
    for _ in range(25):
        page.key('Tab')
        reached.add(page.run("(document.activeElement.id || document.activeElement.tagName)"))
    tap.ok({'type', 'threads', 'search', 'theme', 'help', 'tab-flame', 'CANVAS', 'flame-up'} <= reached, 'Tab reaches everything', reached)

    # ---- callers and callees ----
    page.run('window.scrollTo(0, 0)')
    x, y, _ = place(page, 'again')
    page.click(x, y, 2)
    tap.same(page.run('[countersink.app.view, countersink.app.model.frames.name[countersink.app.picked]]'), ['sandwich', 'again'],
             'a double click picks a function')
    totals = page.run('[countersink.flames.callers.weights[0], countersink.flames.callees.weights[0]]')
    tap.same(totals, [1000e6, 1000e6], 'a recursive function counts once on both sides')
    callers = page.run('Array.from(countersink.flames.callers.tree.frame, (f) => countersink.app.model.frames.name[f])')
    tap.same(callers, ['again', 'main'], 'a picked function has its callers')
    callees = page.run('Array.from(countersink.flames.callees.tree.frame, (f) => countersink.app.model.frames.name[f])')
    tap.same(callees, ['again', 'again', 'again'], 'a picked function has its callees')
    page.shot(SHOTS + '/sandwich.png')

    # ---- the table ----
    page.click_on('#tab-table')
    names = lambda: page.run("countersink.table.rows.map((f) => countersink.app.model.frames.name[f])")
    tap.same(names()[:3], ['again', 'leaf_work', 'memcpy'], 'the table is ordered by self time')
    row = page.run("Array.from(document.querySelectorAll('.body .tr')[1].querySelectorAll('.td'), (c) => c.textContent)")
    tap.same(row, ['leaf_work', 'made', '600.0 ms', '27.21 %', '600.0 ms', '27.21 %'], 'a row of the table has all columns')
    page.click_on('[data-column=name]')
    tap.same(names(), sorted(names(), key=str.lower), 'a click on the name column orders the table by name')
    tap.same(page.run("document.querySelector('[role=columnheader]').getAttribute('aria-sort')"), 'ascending', 'the ascending order is announced (aria-sort)')
    page.click_on('[data-column=name]')
    tap.same(names(), sorted(names(), key=str.lower, reverse=True), 'a second click on the name column reverses the order')
    page.click_on('[data-column=total]')
    tap.same(names()[0], 'main', 'a click on the total column orders the table by total time')
    page.key('/')
    page.type('libc')
    tap.same(names(), ['memcpy'], 'a search for a module limits the table to its functions')
    page.shot(SHOTS + '/table.png')
    page.key('Escape')
    page.run("document.getElementById('table').focus()")
    page.key('Home')
    page.key('ArrowDown')
    second = names()[1]
    page.key('Enter')
    tap.has(text(page, '#sandwich-of'), second, 'Enter on a row shows its callers and callees')
    page.key('1')

    # ---- timeline ----
    page.key('Escape')
    tap.ok(place(page, 'beta<char>') is not None, 'without a selection the whole profile is shown')
    box = page.run("(() => { const b = document.querySelector('#timeline canvas').getBoundingClientRect(), t = countersink.timeline;"
                   " return [b.x + t.left, b.y, t.plotWidth]; })()")
    at = lambda share: box[0] + box[2] * share
    tap.same(page.run('countersink.timeline.lanes.length'), 3, 'a lane for each thread')
    page.drag(at(0.0), box[1] + 20, at(0.2), box[1] + 20)
    span = page.run('countersink.app.choice.span')
    tap.ok(span and abs(span[1] - span[0] - 2e6) < 4e4, 'a drag selects two seconds', span)
    tap.ok(abs(page.run('countersink.app.whole[0]') - 400e6) < 8e6, 'a selected span of time limits what is counted', page.run('countersink.app.whole[0]'))
    tap.same(place(page, 'beta<char>'), None, 'the graph shows the selected span only')
    tap.has(text(page, '#verdict'), '(a part is selected)', 'the verdict says that a part is selected')
    tap.has(text(page, '#span'), ' s of 9.991 s', 'the selected span is printed in seconds')
    page.drag(at(0.2), box[1] + 20, at(0.5), box[1] + 20)
    tap.ok(abs(page.run('countersink.app.choice.span[1]') - 5e6) < 4e4, 'a drag moves the edge of the selected span')
    tap.ok(place(page, 'beta<char>') is not None, 'a longer span shows more functions')
    page.drag(at(0.25), box[1] + 20, at(0.75), box[1] + 20)
    tap.ok(abs(page.run('countersink.app.choice.span[0]') - 5e6) < 4e4, 'a drag moves the selected span as a whole')
    page.shot(SHOTS + '/brush.png')
    page.run("document.querySelector('#timeline canvas').focus()")
    before = page.run('countersink.app.choice.span')
    page.key('ArrowLeft')
    after = page.run('countersink.app.choice.span')
    tap.ok(after[0] < before[0] and abs((after[1] - after[0]) - (before[1] - before[0])) < 1, 'an arrow key moves the selected span')
    page.key('ArrowLeft', shift=True)
    tap.ok(page.run('countersink.app.choice.span[1]') < after[1], 'Shift and an arrow key move the end of the span')
    tap.has(page.run("document.querySelector('#timeline canvas').getAttribute('aria-valuetext')"), ' of 9.99', 'a span that is moved by keys is announced to screen readers')
    page.key('Escape')
    tap.near(page.run('countersink.app.whole[0]'), whole, 'Escape selects all again')

    # ---- threads and processes ----
    tap.has(text(page, '#threads'), 'all 4', 'all threads are shown')
    page.click_on('#threads')
    tap.same(page.run("document.querySelectorAll('#threads-dialog .process').length"), 2, 'the dialog lists both processes')
    page.shot(SHOTS + '/threads.png')
    page.click_on('#threads-dialog li:nth-child(1) button')
    tap.near(page.run('countersink.app.whole[0]'), 1205e6, 'one process alone can be selected')
    page.click_on('#threads-dialog li:nth-child(2) input')
    tap.near(page.run('countersink.app.whole[0]'), 605e6, 'a thread can be deselected')
    tap.has(text(page, '#threads'), '2 of 4', 'the button of threads shows how many are selected')
    page.key('Escape')
    page.click_on('#threads')
    page.click_on('#threads-dialog .dialog-head button')
    page.key('Escape')
    tap.near(page.run('countersink.app.whole[0]'), whole, 'the dialog selects all threads again')

    # ---- another event ----
    page.run("(() => { const s = document.getElementById('type'); s.value = '0'; s.dispatchEvent(new Event('change')); })()")
    tap.near(page.run('countersink.app.whole[0]'), 2200, 'the other event can be chosen')
    no_complaints(page, 'a page in use')
    return page


def test_looks(page):
    # ---- themes ----
    paper = "getComputedStyle(document.body).backgroundColor"
    page.scheme('light')
    light = page.run(paper)
    page.scheme('dark')
    dark = page.run(paper)
    tap.same([light, dark], ['rgb(255, 255, 255)', 'rgb(21, 23, 27)'], 'the page is light or dark like the system')
    page.key('t')
    tap.same(page.run(paper), light, 'key T makes the page light on a dark system')
    page.key('t')
    page.key('t')
    contrast = '''(() => { const {app, contrast} = countersink, out = [];
        const css = (v) => { const c = document.createElement('i'); c.style.color = getComputedStyle(document.documentElement).getPropertyValue(v);
            document.body.append(c); const rgb = getComputedStyle(c).color.match(/[0-9.]+/g).slice(0, 3).map(Number); c.remove(); return rgb; };
        for (let i = -1; i < app.model.nrFrames; i++) out.push(contrast(app.colors.frame(i), app.colors.text));
        for (let hue = 0; hue < 360; hue++) { const was = app.colors.hueOf; app.colors.hueOf = {get: () => hue}; app.colors.cache.clear();
            out.push(contrast(app.colors.frame(0), app.colors.text)); app.colors.hueOf = was; app.colors.cache.clear(); }
        for (let c = -1; c <= 1; c += 0.1) out.push(contrast(app.colors.change(c), app.colors.text));
        for (const [a, b] of [['--ink', '--paper'], ['--dim', '--paper'], ['--dim', '--raised'], ['--ink', '--raised'], ['--accent-ink', '--accent'],
            ['--ink', '--grew'], ['--ink', '--shrank']]) out.push(contrast(css(a), css(b)));
        return Math.min(...out); })()'''
    for scheme in ('light', 'dark'):
        page.scheme(scheme)
        least = page.run(contrast)
        tap.ok(least >= 4.5, '%s: every text stands out from its ground, 4.5:1 and more' % scheme, least)
        tap.note('%s: the least contrast is %.1f:1' % (scheme, least))
    page.shot(SHOTS + '/made-dark.png')

    # ---- narrow ----
    for width, height in ((390, 844), (800, 600), (1920, 1080)):
        page.size(width, height)
        for view in 1, 2, 3, 4:
            page.key(str(view))
            page.settle()
            tap.ok(page.run('document.documentElement.scrollWidth <= innerWidth'), 'view %d fits %d columns of pixels' % (view, width))
        page.key('1')
        if width == 390:
            page.shot(SHOTS + '/narrow.png')
    page.size(1280, 800)

    # ---- names for those who listen ----
    tree = page.send('Accessibility.getFullAXTree')['nodes']
    nameless = [n['role']['value'] for n in tree if not n.get('ignored') and n.get('role', {}).get('value') in
                ('button', 'tab', 'combobox', 'searchbox', 'slider', 'application', 'grid', 'checkbox') and not n.get('name', {}).get('value')]
    tap.same(nameless, [], 'every control has an accessible name')
    roles = {n['role']['value'] for n in tree if not n.get('ignored') and 'role' in n}
    tap.ok({'slider', 'tab', 'tablist', 'searchbox', 'main', 'button'} <= roles, 'every control has an accessible role', roles)

    # ---- paper ----
    page.size(1280, 400)
    page.scheme('dark', 'print')
    page.run("document.documentElement.classList.add('print'); countersink.flames.flame.draw()")
    tap.same(page.run("[countersink.flames.flame.canvas.clientHeight, countersink.flames.flame.rows.length * 20]"), [100, 100],
             'paper has the whole graph, however small the window')
    page.run("document.documentElement.classList.remove('print')")
    page.size(1280, 800)
    page.key('2')
    tap.same(page.run("getComputedStyle(document.querySelector('.tools')).display"), 'none', 'paper has no buttons')
    page.scheme('dark')
    page.run('''window.printed = null; window.addEventListener('beforeprint', () => setTimeout(() => 0) && (window.printed = [
        document.documentElement.dataset.theme, document.querySelectorAll('.body .tr').length]))''')
    for view in 1, 2:
        page.key(str(view))
        size = len(page.send('Page.printToPDF', printBackground=True)['data'])
        tap.ok(size > 5000, 'view %d prints' % view, size)
    tap.same(page.run('window.printed'), ['light', 6], 'printing is in light colours, with the rows of the table')
    tap.same(page.run('document.documentElement.dataset.theme'), 'dark', 'after printing the screen is dark again')


def test_diff(browser):
    made_profile('base.pb.gz')
    made_profile('now.pb.gz', (2, 1, 0))
    page = Page(browser)
    page.scheme('light')
    page.open(export('now.pb.gz', 'diff.html', '--base', path('base.pb.gz')), READY)
    tap.same(page.run('countersink.app.whole'), [2205e6, 1805e6], 'diff: the totals of both profiles')
    said = text(page, '#compare')
    for part in ('base.pb.gz', 'now.pb.gz', '▲ grew', '▼ shrank', 'what is gone has no width'):
        tap.has(said, part, 'diff: the legend has the text: ' + part)
    tap.same(place(page, 'again'), None, 'diff: with the new widths, a function that is gone has no frame')
    color = "(() => { const f = countersink.flames.flame, i = %s; return f.look.color(f.tree.frame[i], i); })()"
    mark = "(() => { const f = countersink.flames.flame, i = %s; return f.look.mark(f.tree.frame[i], i); })()"
    grew, same = (page.run(color % (NODE % json.dumps(n))) for n in ('alpha(int)', 'beta<char>'))
    tap.ok(grew[0] > grew[2] + 40 and max(same) - min(same) < 8, 'diff: a frame that grew is orange, an unchanged one grey', [grew, same])
    tap.same([page.run(mark % (NODE % json.dumps(n))) for n in ('alpha(int)', 'beta<char>', 'again')], ['▲ ', '', '▼ '], 'diff: frames that grew and shrank are marked')
    page.shot(SHOTS + '/diff-light.png')
    page.click_on('#compare .switch button:nth-child(2)')
    tap.ok(place(page, 'again') is not None, 'diff: with the old widths, a function that is gone has a frame')
    tap.has(text(page, '#compare'), 'Widths are base.pb.gz', 'diff: the legend names the profile of the widths')
    page.click_on('#tab-table')
    row = page.run("Array.from(document.querySelectorAll('.body .tr')[0].querySelectorAll('.td'), (c) => c.textContent)")
    tap.same(row, ['again', 'made', '1.000 s', '0 ns', '▼ −1.000 s', 'gone', '▼ −1.000 s'], 'diff: the table has the largest change first')
    page.shot(SHOTS + '/diff-table.png')
    page.click_on('#compare .switch:last-child button:last-child')
    row = page.run("Array.from(document.querySelectorAll('.body .tr')[1].querySelectorAll('.td'), (c) => c.textContent)")
    tap.same(row[:6], ['leaf_work', 'made', '27.21 %', '66.48 %', '▲ +39.27 pp', '+144 %'], 'diff: shares of the whole')
    page.scheme('dark')
    page.click_on('#tab-flame')
    page.shot(SHOTS + '/diff-dark.png')
    no_complaints(page, 'diff')


LANGUAGES = '''(() => { const {app} = countersink, out = {};
        for (let i = 0; i < app.model.nrFrames; i++) out[app.model.frames.name[i]] = (app.colors.language(i) || {}).name;
        return out; })()'''


def test_languages(browser):
    profile = Profile([('samples', 'count'), ('task-clock', 'nanoseconds')])
    files = {'Python': '/srv/tool', 'PHP': '/srv/page.inc', 'Perl': '/srv/daemon.py', 'Ruby': '/srv/Rakefile', 'JavaScript': '[eval]',
             'Java': 'Main.java', 'Erlang': '/srv/later.erl', 'other.py': '/srv/other.py'}
    stack = [profile.function(name, file, file, None if name == 'other.py' else name) for name, file in files.items()]
    stack.append(profile.function('Go', '/srv/server', '/srv/main.go', 'Go'))
    profile.sample([profile.function('PyNumber_Add', '/usr/bin/python3.11', 'Objects/abstract.c')] + stack, [1, 1000000], pid=1)
    profile.write(path('languages.pb.gz'))
    page = Page(browser)
    page.scheme('light')
    page.open(export('languages.pb.gz', 'languages.html'), READY)
    languages = page.run(LANGUAGES)
    tap.same(languages, {**{name: name for name in files}, 'Go': 'Go', 'Erlang': 'other scripts', 'other.py': 'other scripts',
                         'PyNumber_Add': 'native code'}, 'a function has the language of the profile, whatever its file is called')
    hues = page.run('[...new Set(countersink.app.model.frames.name.map((_, i) => countersink.app.colors.language(i).hue))].length')
    tap.same(hues, 9, 'each language has its colour')
    gaps = page.run('''(() => { const {app} = countersink, gap = (name) => {
            const c = app.colors.frame(app.model.frames.name.indexOf(name)); return Math.max(...c) - Math.min(...c); };
        return [gap('PyNumber_Add'), gap('Python'), gap('Perl')]; })()''')
    tap.ok(gaps[0] < 30 < min(gaps[1:]), 'native code is nearly grey beside interpreted functions', gaps)
    page.shot(SHOTS + '/languages.png')
    no_complaints(page, 'languages')


def test_programs(browser):
    """Programs that run; the scripts' names have no ending of their language."""
    programs = {
        'Python': ('python3', 'tool', 'def work(n):\n    return sum(i * i % 7 for i in range(n))\nwork(3000000)\n'),
        'Perl': ('perl', 'daemon', 'sub work { my $s = 0; $s += $_ * $_ % 7 for 1 .. $_[0] } work(3_000_000);\n'),
        'PHP': ('php', 'page.inc', '<?php function work($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s += $i * $i % 7; } work(20000000);\n'),
        'Ruby': ('ruby', 'Rakefile', 'def work(n)\n  i = 0\n  i += 1 while i < n\nend\nwork(30_000_000)\n'),
        'JavaScript': ('node', 'served', 'function work(n) { let s = 0; for (let i = 0; i < n; i++) s = (s + i * i) % 7; } work(1e8);\n'),
        'Java': ('java', 'Work.java', 'class Work { static int s; static void work(int n) { for (int i = 0; i < n; i++) s += i * s % 7; }\n'
                 'public static void main(String[] a) { for (int i = 0; i < 300; i++) work(1000000); } }\n'),
        'Go': ('go', 'work.go', 'package main\nvar s int\n//go:noinline\nfunc work(n int) { for i := 0; i < n; i++ { s += i * s % 7 } }\n'
               'func main() { work(200000000) }\n'),
    }
    for language, (command, name, source) in programs.items():
        if not shutil.which(command):
            tap.ok(True, '%s: a recorded program has its language # SKIP %s is not installed' % (language, command))
            continue
        with open(path(name), 'w') as file:
            file.write(source)
        run = [command, path(name)]
        if language == 'Go':
            subprocess.run(['go', 'build', '-o', path('server'), path(name)], check=True,
                           env={**os.environ, 'GO111MODULE': 'off', 'GOCACHE': path('cache')})
            run = ['--outside=auto', path('server')] # it is static
        subprocess.run([COUNTERSINK, '-q', '-F', '2000', '-o', path('program.html'), *run], check=True)
        page = Page(browser)
        page.open('file://' + path('program.html'), READY)
        languages = page.run(LANGUAGES)
        work = {'Perl': 'main::work', 'Java': 'Work.work', 'Go': 'main.work'}.get(language, 'work')
        tap.same(languages.get(work), language,
                 '%s: a recorded program has its language' % language)


def test_hostile(browser):
    profile = Profile([('samples', 'count')])
    names = ['<img src=x onerror=alert(1)>', '</script><script>alert(2)</script>', '"><svg onload=alert(3)>', "';alert(4)//", '\u202eright to left',
             '&lt;b&gt;', '<!--', '__proto__', 'a' * 3000]
    for nr, name in enumerate(names):
        profile.sample([profile.function(name, '/<b>lib%d</b>.so' % nr)], [nr + 1], process='<i>process</i>', thread='</script>', pid=nr + 1)
    profile.comment('command: </title><script>alert(5)</script>')
    profile.write(path('hostile.pb.gz'))
    page = Page(browser)
    page.open(export('hostile.pb.gz', 'hostile.html'), READY)
    shown = [name.replace('\u202e', '\\xe2\\x80\\xae') for name in names]
    tap.same(sorted(page.run('countersink.app.model.frames.name')), sorted(shown),
             'hostile: names are unchanged, except for escaped bidirectional controls')
    tap.same(page.run('document.title'), '</title><script>alert(5)</script>', 'hostile: the title of the page is unchanged')
    for view in '1234':
        page.key(view)
    page.click_on('#threads')
    page.key('Escape')
    tap.same(page.run("document.querySelectorAll('img, svg, b, i, iframe, object').length"), 0, 'hostile: no name became an element')
    tap.same(page.run("document.querySelectorAll('script').length"), 2, 'hostile: no name became a script')
    tap.same(page.events('Page.javascriptDialogOpening'), [], 'hostile: no script of a name ran')
    blocked = page.run("""(async () => { let refused = false; document.addEventListener('securitypolicyviolation', () => refused = true);
        const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);
        await new Promise((done) => setTimeout(done)); return [window.ran === undefined, refused]; })()""")
    tap.same(blocked, [True, True], 'hostile: the policy would not let a script run that is not the page\'s own')


def test_large(browser):
    many_stacks(path('large.pb.gz'), 100000)
    url = export('large.pb.gz', 'large.html')
    page = Page(browser)
    page.open(url, READY)
    nodes, samples = page.run('[countersink.app.model.tree.n, countersink.app.model.samples.node.length]')
    tap.same(samples, 100000, 'large: 100,000 distinct stacks')
    paint = page.run("""new Promise((done) => new PerformanceObserver((list) => done(list.getEntries()[0].startTime))
        .observe({type: 'paint', buffered: true}))""")
    tap.ok(paint > 0, 'large: the graph is painted')
    draw, zoom, find, pick = page.run('''(() => { const {flames, app} = countersink, out = [];
        const time = (what) => { const t = performance.now(); what(); out.push(performance.now() - t); };
        time(() => flames.flame.draw());
        time(() => flames.flame.zoom(flames.flame.rows[6][0][0]));
        flames.flame.zoom(0);
        time(() => { const s = document.getElementById('search'); s.value = 'function_7'; s.dispatchEvent(new Event('input')); });
        time(() => document.getElementById('tab-sandwich').click());
        return out; })()''')
    recount = page.run('countersink.app.recountMs')
    tap.note('large: %d nodes, %.1f MB; first paint %.0f ms, ready %.0f ms; recount %.0f, redraw %.1f, zoom %.1f, callers and callees %.0f ms'
             % (nodes, os.path.getsize(path('large.html')) / 1e6, paint, page.run('countersink.app.readyMs'), recount, draw, zoom, pick))
    page.key('1')
    page.settle()
    tap.has(text(page, '#found'), 'functions', 'large: a search finds functions')
    drawn = page.run('countersink.flames.flame.rows.reduce((n, row) => n + row.length, 0)')
    tap.ok(10 < drawn < 50000, 'large: only visible frames are drawn', drawn)
    page.shot(SHOTS + '/large.png')
    page.click_on('#tab-table')
    page.settle()
    tap.ok(page.run("document.querySelectorAll('.body .tr').length") < 80, 'large: the table has elements for the rows in sight')
    no_complaints(page, 'large')


browser = Browser()
try:
    page = test_made(browser)
    test_looks(page)
    test_diff(browser)
    test_languages(browser)
    test_programs(browser)
    test_hostile(browser)
    test_large(browser)
finally:
    browser.close()
tap.done()

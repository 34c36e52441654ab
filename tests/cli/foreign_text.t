#!/usr/bin/env python3
# Names, command lines and notes chosen by other programs and users come out of every command and format without a
# character that controls a terminal, a table, a page or a CI system, and otherwise unchanged.
import csv
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SRC = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get('BUILD', SRC + '/build'))
COUNTERSINK = os.fsencode(BUILD + '/bin/countersink')
sys.path.insert(0, SRC + '/tests/browser')
sys.dont_write_bytecode = True
import make_profile

for name in [n for n in os.environ if n.startswith('COUNTERSINK_')] + ['LD_PRELOAD']:
    os.environ.pop(name, None)
os.environ.update(LC_ALL='C.UTF-8', TERM='dumb', PATH=BUILD + '/bin:' + os.environ['PATH'])

nr = failed = 0


def point(passed, name, *more):
    global nr, failed
    nr += 1
    failed += not passed
    print('%sok %d - %s' % ('' if passed else 'not ', nr, name), flush=True)
    if not passed:
        for text in more:
            print('#  ', repr(text)[:600], file=sys.stderr)


# By the terminal, by other readers, by both: each must come out as something else.
SEQUENCES = {
    'escape': b'\x1b[31m', 'title': b'\x1b]0;x\x07', 'clipboard': b'\x1b]52;c;eA==\x1b\\', 'return': b'\r', 'newline': b'\n',
    'tab': b'\t', 'backspace': b'\b', 'delete': b'\x7f', 'c1': b'\xc2\x9b31m', 'next line': b'\xc2\x85', 'raw c1': b'\x9b31m',
    'override': '\u202e'.encode(), 'isolate': '\u2066'.encode(), 'mark': '\u200f'.encode(), 'letter mark': '\u061c'.encode(),
    'zero-width': '\u200b'.encode(), 'joiner': 'a\u200db'.encode(), 'word joiner': '\u2060'.encode(), 'bom': '\ufeff'.encode(),
    'soft hyphen': '\u00ad'.encode(), 'filler': '\u3164'.encode(), 'tag': '\U000e0041'.encode(), 'line': '\u2028'.encode(),
    'paragraph': '\u2029'.encode(), 'interlinear': '\ufff9'.encode(), 'nonchar': '\uffff'.encode(), 'fdd0': '\ufdd0'.encode(),
    'plane': '\U0001fffe'.encode(), 'overlong': b'\xc0\xaf', 'overlong 3': b'\xe0\x80\xaf', 'overlong 4': b'\xf0\x80\x80\xaf',
    'surrogate': b'\xed\xa0\x80', 'pair': b'\xed\xa0\xbd\xed\xb8\x80', 'beyond': b'\xf4\x90\x80\x80', 'five': b'\xf8\x88\x80\x80\x80',
    'cut': b'\xe2\x82', 'latin-1': b'caf\xe9', 'lone': b'\x80', 'fe': b'\xfe\xff',
}
MARKED = ['=1+1', '+1+1', '-1+1', '@SUM(1)', ' =1+1', '\uff1d1+1', '</script><script>alert(1)</script>', '<!--', '<img src=x onerror=y>',
          '`code` | cell', '[a](http://x.y/)', '![i](http://x.y/)', '@octocat', 'see #12', 'www.example.org', 'a@b.org', '&lt;&amp;&#64;',
          '**bold** _it_ ~~no~~', '# T' 'ODO skip', 'x # SKIP all', '::error::x', '##[error]x', ';semi;colon', '"quoted", \'too\'', '(1) one',
          '%0A::error::x', '{"a":1}', ']]>', '\\']
# Names of real programs.
PLAIN = ['operator+(A const&, B)', 'operator=(C)', 'operator@plain', '<T as U>::f', 'core::ops::{closure#0}', 'größe', 'функция', '関数',
         'क्षि', 'שלום', 'e\u0301', '😀', '👩\u200d💻', '❤\ufe0f', 'std::vector<int>::operator[]', 'operator<=>']
HIDDEN = re.compile('[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164'
                    '\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001fffe\U000e0000-\U000e0fff]')
ALL = b'|'.join(SEQUENCES.values())


def hidden(output, page=False):
    """What must not be in it, or None. A page's own lines are indented by tabs."""
    try:
        text = output.decode()
    except UnicodeDecodeError as e:
        return output[max(e.start - 20, 0):e.start + 20]
    text = text.replace('👩\u200d💻', '')
    found = HIDDEN.search(re.sub('(?m)^\t+', '', text) if page else text)
    return found and text[max(found.start() - 30, 0):found.start() + 30]


def run(*args, status=(0,), **more):
    done = subprocess.run([COUNTERSINK] + [a if isinstance(a, bytes) else a.encode() for a in args], capture_output=True,
                          timeout=300, stdin=subprocess.DEVNULL, **more)
    name = ' '.join(a if isinstance(a, str) else '<foreign>' for a in args)[:70]
    if status is not None and done.returncode not in status:
        point(False, name + ': status', done.returncode, done.stderr)
    for stream, what in ((done.stdout, 'output'), (done.stderr, 'messages')):
        found = hidden(stream, stream.lower().startswith(b'<!doctype'))
        if stream:
            point(found is None, '%s: no control characters in its %s' % (name, what), found)
    return done


def make(path, shift=0):
    types = [('samples', 'count'), (b'ev' + SEQUENCES['escape'], b'u' + SEQUENCES['override']), ('=cmd|x', 'count'),
             ('cpu-time', 'nanoseconds')]
    p = make_profile.Profile(types)
    names = [b'f' + s + b'g' for s in SEQUENCES.values()] + list(SEQUENCES.values()) + [m.encode() for m in MARKED + PLAIN]
    main = p.function(b'main', b'/bin/made')
    for i, text in enumerate(names):
        value = 1000000 * (i + 1 + shift * (i % 3))
        p.sample([p.function(text, b'/lib/' + text, b'/src/' + text), main], [1, 2 * i + 1, 3, value], thread=text, process=text, phase=text,
                 pid=100 + i, tid=200 + i)
    for key in ('command', 'exit', 'host', 'kernel', 'cpu', 'sampled_by', 'sampled_every', 'event_chosen', 'engine', 'unwind', 'user_only',
                'scaled', 'refused', 'counters_lack', 'loss', 'unprofiled', 'warning', 'note', 'filter'):
        p.comment(key.encode() + b': ' + ALL)
    p.comment(b'counter: ' + b'ev\x1b[31m 5 count')
    p.comment(b'counter: ' + b'n\x9bm 5 \xe2\x80\xae')
    p.comment(b'sampled_by: cpu-time')
    p.comment(b'cpu_time: cpu-time')
    p.comment(ALL)
    p.write(path)


def keeps_plain(what, text):
    """All names of real programs are in it."""
    missing = [n for n in PLAIN if n not in text]
    point(not missing, what + ': names of real programs stay as they are', missing)


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield k
            yield from strings(v)
    elif isinstance(value, list):
        for v in value:
            yield from strings(v)


def check_json(what, text, keeps=True):
    try:
        got = list(strings(json.loads(text.decode('utf-8', 'strict'))))
    except ValueError as e:
        point(False, what + ': the output is JSON', e)
        return []
    point(True, what + ': the output is JSON')
    point(not any(0xd800 <= ord(c) < 0xe000 for s in got for c in s), what + ': the JSON has no lone surrogate')
    if keeps:
        keeps_plain(what, '\n'.join(got))
    return got


def check_csv(what, text, first=0):
    rows = list(csv.reader(io.StringIO(text.decode('utf-8', 'replace'))))
    width = len(rows[0])
    point(all(len(r) == width for r in rows), what + ': all rows have %d cells' % width, [r for r in rows if len(r) != width][:2])
    cells = [c for r in rows for c in r]
    bad = [c for c in cells if re.match(r'\s*[=+@\uff1d\uff0b\uff20]|\s*-(?![\d.]+(e[-+]?\d+)?$)', c)]
    point(not bad, what + ': no cell is a formula', bad)
    return rows


def check_tables(a, b):
    for more in [[], ['--tree', '--fold=0'], ['--callers=main'], ['--callers=.', '--fold=0']] + [
            ['--by=' + by] for by in ('module', 'line', 'thread', 'process', 'phase')]:
        done = run('report', '--all', *more, a)
        if not more:
            keeps_plain('report', done.stdout.decode('utf-8', 'replace'))
            point(b'f\\x1b[31mg' in done.stdout and b'f\\xe2\\x80\\xaeg' in done.stdout and b'fcaf\\xe9g' in done.stdout,
                  'report: what is not shown is \\xNN', done.stdout[:300])
        check_json('report --json ' + ' '.join(more), run('report', '--all', '--json', *more, a).stdout,
                   keeps=not more)
        rows = check_csv('report --csv ' + ' '.join(more), run('report', '--all', '--csv', *more, a).stdout)
        if not more:
            keeps_plain('report --csv', '\n'.join(r[0] for r in rows))
            point(all(re.fullmatch(r'-?\d+', c) for r in rows[1:] for c in r[2:8]), 'report --csv: numbers are numbers')
    run('report', '--annotate=.', a)
    check_json('annotate', run('report', '--annotate=.', '--json', a).stdout, keeps=False)
    run('report', '--event=' + 'ev\x1b[31m', a)
    for more in [], ['--stacks'], ['--by=module'], ['--by=line'], ['--all']:
        run('diff', *more, a, b)
    check_json('diff --json', run('diff', '--all', '--json', a, b).stdout)
    run('diff', a, b, '--event=ev\x1b[31m')
    for color in '0', '1':
        done = subprocess.run([COUNTERSINK, b'report', b'--all', a], capture_output=True, env=dict(os.environ, CLICOLOR_FORCE=color))
        point(hidden(re.sub(rb'\x1b\[\d*m', b'', done.stdout) if color == '1' else done.stdout) is None
              and b'\x1b[31mg' not in done.stdout, 'report with CLICOLOR_FORCE=%s: nothing hidden but its colours' % color)


def text_formats():
    done = subprocess.run([COUNTERSINK, b'export', b'--format='], capture_output=True)
    names = re.search(r'\(one of: ([^)]*)\)', done.stderr.decode()).group(1).split(', ')
    return [name for name in names if name not in ('pprof', 'wire', 'otlp', 'perf.data')]


def check_exports(a, b):
    for format in text_formats():
        done = run('export', '--format=' + format, a)
        text = done.stdout.decode('utf-8', 'replace')
        if done.stdout[:1] in (b'[', b'{'):
            check_json(format, done.stdout)
        if format == 'callgrind':
            point(not [l for l in text.splitlines() if not re.match(r'(#|[\w]+[:=]|\d+( \d+)*$|$|calls=)', l)], 'callgrind: every line has the format')
            keeps_plain(format, text)
        if format == 'folded':
            lines = text.splitlines()
            point(all(re.fullmatch(r'.*\S \d+', l) for l in lines) and not any(l.startswith(('::', '#')) for l in lines),
                  'folded: each line is frames and a number', [l for l in lines if not re.fullmatch(r'.*\S \d+', l)])
            keeps_plain(format, text)
        if format == 'html':
            check_page('html', text)
    run('export', '--format=pprof', '-o', 'again.pb.gz', a)
    check_pprof('pprof', 'again.pb.gz')
    run('export', '--format=wire', '-o', 'wire.pb.gz', a)
    check_pprof('wire', 'wire.pb.gz')
    run('export', '--format=perf.data', '-o', 'a.perf.data', a)
    run('merge', '-o', 'merged.pb.gz', a, b)
    check_pprof('merge', 'merged.pb.gz')
    run('report', 'merged.pb.gz')
    run('diff', '--html=diff.html', a, b)
    with open('diff.html', 'rb') as page:
        text = page.read()
    point(hidden(text, True) is None, 'diff --html: no control characters', hidden(text, True))
    check_page('diff --html', text.decode('utf-8', 'replace'))


def check_page(what, text):
    # The page's own scripts, and one of data: a name ends none.
    point(text.count('<script') == text.count('</script') and 'alert(1)</' not in text and '<img' not in text,
          what + ': no name is mark-up')
    data = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.S)
    point(data is not None, what + ': the page has its data')
    if data:
        check_json(what, data.group(1).encode())


def check_pprof(what, path):
    import gzip
    raw, at, bad, seen = gzip.open(path).read(), 0, [], []

    def varint(at):
        value = shift = 0
        while True:
            value |= (raw[at] & 127) << shift
            shift += 7
            at += 1
            if raw[at - 1] < 128:
                return value, at
    while at < len(raw):
        key, at = varint(at)
        value, at = varint(at)
        if key & 7 == 2:
            if key >> 3 == 6:
                try:
                    seen.append(raw[at:at + value].decode())
                except UnicodeDecodeError as e:
                    bad.append(e)
            at += value
    point(not bad, what + ': strings are UTF-8, as protobuf requires', bad[:2])
    keeps_plain(what, '\n'.join(seen))


def check_gate(program):
    args = [program, b'-n', b'x'] + [ALL, b'caf\xe9', '\uffff'.encode(), b'\xed\xa0\x80', b'@octocat', b'# SKIP', b'a&b', b'::error::x']
    done = run('gate', '--quiet', '--runs=3', '--warmup=0', '--self-check', '--junit=j.xml', '--json=g.json', '--markdown=g.md', '--html=g.html',
               '--github', '--strict', '--threshold=0.01', '--', *args, status=(0, 3))
    point(not [l for l in done.stdout.decode('utf-8', 'replace').splitlines() if not re.match(r'(not )?ok \d+ - |# |  |TAP version 13|1\.\.\d+$', l)],
          'gate: each line is of TAP', done.stdout)
    for l in done.stdout.decode('utf-8', 'replace').splitlines():
        if re.match(r'(not )?ok ', l) and re.search(r'(?<!\\)#', l):
            point(False, 'gate: no description has a directive', l)
    point(not [l for l in done.stderr.decode('utf-8', 'replace').splitlines() if not re.match(r'::(error|warning) [^:]*::|countersink: |gate: ', l)],
          'gate --github: each line is a command', done.stderr)
    for path in 'j.xml', 'g.json', 'g.md', 'g.html':
        with open(path, 'rb') as f:
            text = f.read()
        point(hidden(text, path == 'g.html') is None, 'gate: no control characters in ' + path, hidden(text, path == 'g.html'))
    check_json('gate --json', open('g.json', 'rb').read(), keeps=False)
    if shutil.which('xmllint'):
        lint = subprocess.run(['xmllint', '--noout', '--schema', SRC + '/tests/gate/junit.xsd', 'j.xml'], capture_output=True)
        point(lint.returncode == 0, 'gate: its JUnit XML follows the schema', lint.stderr)
    else:
        xml.etree.ElementTree.parse('j.xml')
        point(True, 'gate: its JUnit XML follows the schema # SKIP no xmllint')
    text = open('g.md', encoding='utf-8').read()
    body = re.sub(r'&#\d+;|</?(details|summary|span)>|\\[\\|`*_\[\]]', '', text)
    point(not re.search(r'[@&<>`*_\[\]]', body) and not re.search(r'#(?!## countersink gate|\d)', body.replace('###', '')),
          'gate --markdown: no mention, entity or mark-up of a name', re.findall(r'.{20}[@&<>`*_\[\]#].{20}', body))
    rows = [re.sub(r'\\.', '', l) for l in text.splitlines() if l.startswith('|')]
    point(rows and all(l.count('|') == 9 for l in rows), 'gate --markdown: each row has its cells', rows[:2])
    plain = html.unescape(re.sub(r'</?span>', '', text))
    point('@octocat' in plain and 'a&b' in plain, 'gate --markdown: the text is readable', plain[-900:])


def check_program(directory):
    """A program whose file, functions, threads and arguments are foreign, in the commands that run one."""
    path = os.path.join(os.fsencode(directory), b'p' + SEQUENCES['escape'] + SEQUENCES['override'] + b'\xe9=@')
    source = '''#include <stdlib.h>
        #include <string.h>
        #include <sys/prctl.h>
        volatile unsigned long sum;
        void first_function(void) { for (long i = 0; i < 12000000; i++) sum += i; }
        void second_function(void) { for (long i = 0; i < 12000000; i++) sum ^= i; }
        int main(void) { prctl(PR_SET_NAME, "t\\x1b[1m\\xe9\\n=@"); first_function(); second_function(); return 0; }'''
    if not shutil.which('cc') or not shutil.which('objcopy'):
        point(True, 'programs # SKIP no cc or objcopy')
        return
    subprocess.run(['cc', '-O1', '-fno-inline', '-o', 'made', '-xc', '-'], input=source.encode(), check=True)
    subprocess.run([b'objcopy', b'--redefine-sym', b'first_function=f\x1b[31m\xe2\x80\xae@octocat|\xe9', b'--redefine-sym',
                    b'second_function==2+\x9b&<b>#SKIP\xef\xbf\xbf', b'made', path], check=True)
    run('run', '-o', 'run.pb.gz', path, ALL)
    run('run', '-o', b'r\x1b[31m\xe9.pb.gz', '--', path)
    run('report', b'r\x1b[31m\xe9.pb.gz')
    check_csv('report --csv of a run', run('report', '--csv', 'run.pb.gz').stdout)
    run('report', '--annotate=.', 'run.pb.gz')
    run('stat', '--', path, ALL)
    run('stat', '--per-thread', '--', path)
    run('stat', '--csv', '--per-thread', '-o', 'stat.csv', '--', path, ALL)
    for table in open('stat.csv', 'rb').read().split(b'\n\n'):
        check_csv('stat --csv', table)
    run('stat', '--json', '-o', 'stat.json', '--', path, ALL)
    check_json('stat --json', open('stat.json', 'rb').read(), keeps=False)
    check_gate(path)
    check_attach(path)


def check_attach(path):
    child = subprocess.Popen([shutil.which('bash'), '-c', 'exec -a "$0" "$@"', b'n\x1b[31m\xe9', shutil.which('sleep'), '60'])
    try:
        run('attach', '--duration=0.2', '-o', 'attach.pb.gz', '-p', str(child.pid), status=None)
        run('attach', '--list', status=None)
        run('attach', '--duration=0.2', b'n\x1b\\[31m', status=None)
        run('doctor', '-p', str(child.pid), status=None)
    finally:
        child.kill()
        child.wait()


def check_messages():
    """Everything that a command line may hold comes back in messages."""
    foreign = [ALL] + [b'rep' + s + b'ort' for s in SEQUENCES.values()]
    for text in foreign[:1] + foreign[1:6]:
        run(text, status=None)
        run('--' + 'focsu', text, status=None)
        run(b'--' + text, status=None)
        run(b'-' + text[:30], status=None)
        run('help', text, status=None)
        run('run', '-e', text, '--', 'true', status=None)
        run('events', text, status=None)
        run('completion', text, status=None)
    for command in 'report', 'export', 'diff', 'merge', 'gate', 'stat', 'attach', 'persist', 'reserve', 'doctor', 'run':
        run(command, ALL, ALL, status=None)
        run(command, b'--no-such' + ALL, status=None)
        run(command, b'--output=' + ALL, status=None)
        run(command, b'\xff', status=None)
    run('report', '--print-config', status=None, env=dict(os.environ, COUNTERSINK_DEBUGINFOD=os.fsdecode(SEQUENCES['escape'])))
    run('run', '--print-config', status=None, env=dict(os.environ, COUNTERSINK_OUTPUT=os.fsdecode(ALL)))
    run('report', '--callers=\x1b[31m', 'a.pb.gz', status=None)
    run('report', '--event=cpu\x1b[31mtime', 'a.pb.gz', status=None)
    run('report', '--thread=(\x1b', 'a.pb.gz', status=None)
    with open(b'bad\x1b[31m\xe9.pb.gz', 'wb') as f:
        f.write(b'\x1f\x8b\x08no')
    for command in 'report', 'export', 'merge':
        run(command, b'bad\x1b[31m\xe9.pb.gz', status=None)
    os.mkdir(b'd\x1b[31m\xe9')
    run('report', b'd\x1b[31m\xe9', status=None)
    env = dict(os.environ, LD_PRELOAD=BUILD + '/lib/libcountersink.so', COUNTERSINK_OUTPUT='/nowhere/\x1b[31m\u202e/x')
    done = subprocess.run(['true'], env=env, capture_output=True)
    point(hidden(done.stderr) is None, 'the library alone: no control characters in its messages', hidden(done.stderr))
    run('doctor', status=None)
    run('events', status=None)
    run('reserve', '--status', status=None)
    run('persist', 'list', status=None)
    long = b'x' * 2010
    for extra in range(24):
        done = subprocess.run([COUNTERSINK, long + b'y' * extra + 'ж\u202e'.encode() * 20], capture_output=True)
        if hidden(done.stderr) is not None or done.stderr.count(b'\n') != 1:
            point(False, 'a long message is cut between characters', done.stderr[-60:])
            break
    else:
        point(True, 'a long message is cut between characters')


def check_source():
    """One printer for foreign text: nothing else in the launcher prints a %s to people, but these, of texts of our own."""
    own = {'launcher/commands/help/cmd_help.c', 'launcher/commands/registry.c', 'launcher/base/message.c', 'launcher/base/options_print.c', 'launcher/commands/reserve/cmd_reserve.c',
           'launcher/base/text.c', 'launcher/session/hooks.c'}
    found = []
    for directory, _, files in os.walk(SRC + '/launcher'):
        for file in files:
            path = os.path.relpath(os.path.join(directory, file), SRC)
            if not file.endswith('.c') or path in own:
                continue
            text = open(os.path.join(SRC, path), encoding='utf-8').read()
            for call in re.finditer(r'(?<![a-z_])(?:f|d|v|vf)?printf\((?:[^;"]|"(?:[^"\\]|\\.)*")*;', text):
                if re.search(r'%[-+ #0]*(\*|\d+)?(\.(\*|\d+))?s', call.group()):
                    found.append(path + ':%d' % (text.count('\n', 0, call.start()) + 1))
    allowed = ['launcher/commands/completion/cmd_completion.c', 'launcher/commands/completion/', 'launcher/output/export_', 'launcher/output/html.c', 'launcher/base/json.c', 'launcher/commands/gate/gate_', 'launcher/commands/stat/stat_machine.c',
               'launcher/output/report_machine.c']
    found = [f for f in found if not f.startswith(tuple(allowed))]
    point(not found, 'source: only csink_text_print prints strings with %s', found)


def main():
    directory = tempfile.mkdtemp(prefix='countersink-test.')
    os.chdir(directory)
    try:
        make('a.pb.gz')
        make('b.pb.gz', 1)
        check_tables('a.pb.gz', 'b.pb.gz')
        check_exports('a.pb.gz', 'b.pb.gz')
        check_program(directory)
        check_messages()
        check_source()
    finally:
        os.chdir('/')
        shutil.rmtree(os.fsencode(directory))
    print('1..%d' % nr)
    return failed != 0


sys.exit(main())

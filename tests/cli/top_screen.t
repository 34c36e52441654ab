#!/usr/bin/env python3
"""countersink top on a terminal: keys, sizes, signals, the target's end, names that are hostile. The terminal is a pty; a small
emulator knows the sequences that top may write, and any other one fails."""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

SRC = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('BUILD', SRC + '/build')
COUNTERSINK = BUILD + '/bin/countersink'
PATIENCE_S = 90
nr, failed, children = 0, 0, []


def point(passed, name, *why):
    global nr, failed
    nr += 1
    failed += not passed
    print('%sok %d - %s' % ('' if passed else 'not ', nr, name), flush=True)
    for line in '' if passed else '\n'.join(map(str, why)).split('\n'):
        print('#   ' + line, file=sys.stderr)


class Screen:
    """What a terminal shows of what top writes."""
    KNOWN = re.compile(rb'\x1b\[(?:(?P<set>\?(?:1049|7|25)[hl])|(?P<home>H)|(?P<line>K)|(?P<all>2J)|(?P<style>[017]m))')

    def __init__(self, columns, rows):
        self.foreign, self.styles, self.wrapped, self.modes = [], 0, False, {}
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows, self.x, self.y = columns, rows, 0, 0
        self.cells = [[' '] * columns for _ in range(rows)]

    def erase(self, y, x):
        if y < self.rows:
            x = min(x, self.columns - 1)  # behind the last column the cursor is on it
            self.cells[y][x:] = [' '] * (self.columns - x)

    def feed(self, data):
        at = 0
        while at < len(data):
            if data[at] == 0x1b:
                found = self.KNOWN.match(data, at)
                if not found and len(data) - at < 8:
                    return data[at:]
                if not found:
                    self.foreign.append(data[at:at + 16])
                    at += 1
                    continue
                at = found.end()
                if found['set']:
                    self.modes[found['set'][1:-1]] = found['set'][-1:]
                elif found['home']:
                    self.x = self.y = 0
                elif found['line']:
                    self.erase(self.y, self.x)
                elif found['all']:
                    for y in range(self.rows):
                        self.erase(y, 0)
                else:
                    self.styles += 1
                continue
            byte = data[at]
            at += 1
            if byte == 0x0d:
                self.x = 0
            elif byte == 0x0a:
                self.y += 1
                self.wrapped |= self.y >= self.rows
            elif byte < 0x20 or byte == 0x7f:
                self.foreign.append(bytes([byte]))
            else:
                self.wrapped |= self.x >= max(self.columns, 20)  # the last column is overwritten then
                if self.x < self.columns and self.y < self.rows:
                    self.cells[self.y][self.x] = chr(byte)
                self.x += 1
        return b''

    def text(self):
        return '\n'.join(''.join(line).rstrip() for line in self.cells)


class Top:
    """countersink top as the foreground job of a shell: the child of a session leader, in a process group of its own."""

    def __init__(self, *args, size=(80, 24), env=None, is_foreground=True):
        self.screen, self.rest = Screen(*size), b''
        reports, report = os.pipe()
        asked, self.ask = os.pipe()
        pid, self.fd = pty.fork()
        if not pid:
            self.lead([COUNTERSINK, 'top', *args], size, {**os.environ, 'TERM': 'xterm', **(env or {})}, report, asked, is_foreground)
        os.close(report)
        os.close(asked)
        children.append(pid)
        self.reports = reports
        self.before = None
        self.pid = int(self.report())

    @staticmethod
    def lead(command, size, env, report, asked, is_foreground):
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', size[1], size[0], 0, 0))
        job = os.fork()
        if not job:
            os.setpgid(0, 0)
            if is_foreground:
                os.tcsetpgrp(0, os.getpgrp())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execve(command[0], command, env)
        os.write(report, b'%d\n' % job)
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            os.tcsetpgrp(0, os.getpgrp())
            if not os.WIFSTOPPED(status):
                os.write(report, b'ended %d\n' % (-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)))
                os.read(asked, 1)
                os._exit(0)
            os.write(report, b'stopped %d\n' % os.WSTOPSIG(status))
            os.read(asked, 1)
            os.tcsetpgrp(0, job)
            os.kill(job, signal.SIGCONT)

    def report(self):
        """The next line of the leader, while what top writes is read."""
        line, end = b'', time.monotonic() + PATIENCE_S
        while not line.endswith(b'\n') and time.monotonic() < end:
            self.take(0.05)
            if select.select([self.reports], [], [], 0)[0]:
                line += os.read(self.reports, 1)
        self.take(0)
        return line.decode().strip()

    def take(self, seconds):
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return
            self.rest = self.screen.feed(self.rest + data)
            seconds = 0

    def shows(self, pattern):
        """Wait until some line of the screen matches; the screen then."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            self.take(0.05)
            if re.search(pattern, self.screen.text(), re.M):
                return True
            if select.select([self.reports], [], [], 0)[0]:
                break  # it has ended or stopped
        print('# shown:\n' + re.sub('(?m)^', '#   ', self.screen.text()), file=sys.stderr)
        return False

    def key(self, keys, pattern, name):
        os.write(self.fd, keys.encode())
        point(self.shows(pattern), name)

    def resize(self, columns, rows):
        self.take(0)
        self.screen.resize(columns, rows)
        self.screen.wrapped = False
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def is_restored(self):
        modes = self.screen.modes
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO and termios.tcgetattr(self.fd)[3] & termios.ICANON and
                    modes.get(b'1049') == b'l' and modes.get(b'25') == b'h' and modes.get(b'7') == b'h')

    def ends(self, status, name):
        got = self.report()
        point(got == 'ended %d' % status and self.is_restored(), name, got, self.screen.modes, termios.tcgetattr(self.fd)[3])
        os.close(self.ask)
        os.close(self.fd)

    def is_ended_by_kill(self):
        """TERM and CONT, as a shell's kill sends them to a job that is stopped; the terminal is another job's."""
        os.kill(self.pid, signal.SIGTERM)
        os.kill(self.pid, signal.SIGCONT)
        is_gone, end = False, time.monotonic() + PATIENCE_S
        while not is_gone and time.monotonic() < end:
            is_gone = 'State:\tZ' in open('/proc/%d/status' % self.pid).read()
            time.sleep(0.02)
        point(is_gone, 'TERM and CONT, as a shell\'s kill sends them, end it while it is stopped')
        os.write(self.ask, b'c')
        got = self.report()
        point(got == 'ended %d' % -signal.SIGTERM, 'it ends by TERM then', got)
        os.close(self.ask)
        os.close(self.fd)


def start(*command, **env):
    """A program without launcher, in a place of its own. Returns it and its run directory."""
    place = tempfile.mkdtemp(dir=TMP)
    os.chmod(place, 0o711)
    env = dict(os.environ, LD_PRELOAD=BUILD + '/lib/libcountersink.so', XDG_RUNTIME_DIR=place, COUNTERSINK_QUIET='1',
               COUNTERSINK_OUTPUT=place + '/p.pb.gz', **env)
    child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children.append(child.pid)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for name in os.listdir(place):
            # Its recording is there, but may not have a header yet.
            if not subprocess.run([COUNTERSINK, 'top', '--once', '-d', '0.01', place + '/' + name], capture_output=True).returncode:
                return child, place + '/' + name
        time.sleep(0.02)
    sys.exit('no recording of %s' % (command,))


def check_keys(directory):
    top = Top(directory)
    point(top.shows(r'^last [0-9.]+ s: [0-9.]+ % of one CPU; all '), 'the first interval is shown')
    point(top.shows(r'^   self% total%  self ms    all% total%  module +function$'), 'the titles are there')
    point(top.shows(r' 9?[0-9.]+ .* burn +spin$'), 'a function is there')
    point('burn 1000000' in top.screen.text().split('\n')[0], 'the first line names the command')
    top.key('t', r'process +thread$', 't shows threads')
    top.key('t', r'module +function$', 't again shows functions')
    top.key('p', r' \[no phase\]$', 'p shows phases')
    top.key('f', r'module +function$', 'f shows functions')
    top.key('h', r'^q +quit$', 'h shows the help')
    top.key('x', r'module +function$', 'any key leaves the help')
    top.key('s', r'sort: total', 's sorts by the next column')
    top.key('>', r'sort: all-self', '> sorts by the next column')
    top.key('<', r'sort: total', '< sorts by the one before')
    top.key('\x1b[D', r'sort: self', 'the left arrow as well')
    top.key('\x1b[C', r'sort: total', 'the right arrow sorts by the next one')
    top.key('j', r'^>', 'j selects a row')
    point(top.shows(r'\A(?:.*\n){4}>'), 'it is the first one')
    top.key('\x1b[B', r'\A(?:.*\n){5}>', 'the arrow selects the next one')
    top.key('k', r'\A(?:.*\n){4}>', 'k selects the one before')
    top.key('G', r'(?:.*\n)*>(?:.*\n){1,20}', 'G selects the last one')
    top.key('g', r'\A(?:.*\n){4}>', 'g selects the first one')
    top.key('\x1b[6~\x1b[5~', r'\A(?:.*\n){4}>', 'a page down and up')
    top.key('\x1b[6;5~', r'\A(?:.*\n){5,}>', 'a page down with Control')
    top.key('t', r'process +thread$', 'a view begins without a selection')
    point(not re.search('(?m)^>', top.screen.text()), 'no row is selected there')
    top.key('f ', r'^countersink top: paused: ', 'space pauses')
    top.key(' ', r'^countersink top: (?!paused)', 'space goes on')
    top.key('+', r'every 2\.0 s', '+ doubles the interval')
    top.key('-', r'every 1\.0 s', '- halves it')
    os.write(top.fd, b'd3000\r')
    top.shows(r'every 3000\.0 s')
    os.write(top.fd, b'-' * 15)
    point(top.shows(r'every 0\.1 s'), '- has a minimum')
    times = top.screen.text().split('\n')[1]
    point(top.shows(r'\A.*\n(?!%s)' % re.escape(times)), 'the interval that has begun is shorter, too')
    os.write(top.fd, b'd1\r')
    top.shows(r'every 1\.0 s')
    top.key('d0.x3', r'^interval in seconds: 0\.3_$', 'd asks for the interval')
    top.key('\x7f25\r', r'every 0\.2 s', 'the answer is taken')
    point(top.shows(r'^last 0\.[0-9] s: '), 'the interval is used')
    point(not top.screen.foreign and not top.screen.wrapped, 'nothing but known sequences, no line too long', top.screen.foreign)
    os.write(top.fd, b'q')
    top.ends(0, 'q ends it with status 0, and the terminal is as before')


def check_sizes(directory):
    top = Top('-d', '0.2', directory, size=(132, 30))
    point(top.shows(r' all +module +function$'), '132 columns have the time since the start')
    for columns, rows in ((80, 24), (40, 10), (80, 24), (20, 5), (1, 1), (500, 100), (40, 10)):
        top.resize(columns, rows)
        expected = r'function$' if columns >= 20 else r'\A' # smaller ones must not end it
        point(top.shows(expected) and not top.screen.wrapped, 'resized to %dx%d' % (columns, rows), top.screen.text())
    os.write(top.fd, b'\x1b[B')
    point(top.shows('^>'), 'a row is selected at 40x10')
    point(len(top.screen.text().split('\n')) == 10, 'all lines are in use')
    os.write(top.fd, b'q')
    top.ends(0, 'it ends after that')


def check_signals(directory):
    for signo, send in ((signal.SIGINT, b'\x03'), (signal.SIGQUIT, b'\x1c'), (signal.SIGTERM, None), (signal.SIGHUP, None)):
        top = Top('-d', '0.2', directory)
        top.shows('function$')
        if send:
            os.write(top.fd, send)
        else:
            os.kill(top.pid, signo)
        top.ends(-signo, '%s ends it, and the terminal is as before' % signo.name)
    top = Top('-d', '0.2', directory)
    top.shows('function$')
    os.write(top.fd, b'\x1a')
    got = top.report()
    point(got == 'stopped %d' % signal.SIGTSTP and top.is_restored(), '^Z stops it, and the terminal is as before', got)
    top.screen.resize(80, 24)
    os.write(top.ask, b'c')
    point(top.shows('function$') and top.screen.modes[b'1049'] == b'h', 'it is drawn again when it goes on')
    os.write(top.fd, b'q')
    top.ends(0, 'q ends it after that')
    top = Top(directory)
    top.shows('function$')
    os.write(top.fd, b'\x1a')
    top.report()
    top.is_ended_by_kill()
    top = Top(directory, is_foreground=False)
    got = top.report()
    point(got == 'stopped %d' % signal.SIGTTOU and not top.screen.modes, 'in the background it stops, and leaves the terminal as it is', got)
    top.is_ended_by_kill()


def check_end():
    child, directory = start(BUILD + '/tests/targets/burn', '1000000')
    top = Top('-d', '0.2', directory)
    top.shows('^last ')
    child.kill()
    child.wait()
    point(top.shows('^countersink top: the run has ended: '), 'the end of the run is shown')
    top.key('t', r'process +thread$', 'keys work after that')
    os.write(top.fd, b'q')
    top.ends(0, 'status 0 after the end of the run')
    child, directory = start(BUILD + '/tests/targets/burn', '1000000')
    top = Top('-d', '0.2', '-p', str(child.pid))
    top.shows('^last ')
    child.kill()
    child.wait()
    point(top.shows('^countersink top: the run has ended: '), 'the end of a process is shown')
    os.write(top.fd, b'q')
    top.ends(0, 'status 0 after the end of the process')


def check_attached():
    stat = subprocess.run([COUNTERSINK, 'stat', '-x', '-e', 'task-clock', '--', 'true'], capture_output=True, text=True)
    if 'task-clock,nanoseconds,counted' not in stat.stderr:
        point(True, 'a process that is sampled from outside # SKIP perf_event_open is refused here')
        return
    child = subprocess.Popen([BUILD + '/tests/targets/burn', '1000000'], stdout=subprocess.DEVNULL)
    children.append(child.pid)
    top = Top('-d', '0.2', '-p', str(child.pid))
    point(top.shows(r' burn +burn_60$'), 'a process that is sampled from outside: its functions')
    point(top.shows(r'^last [0-9.]+ s: [0-9.]+ % of one CPU; all '), 'its CPU time')
    top.key('t', r'  burn %d +burn %d$' % (child.pid, child.pid), 'its thread')
    top.resize(40, 10)
    top.key('t', r'all%  function$', 'resized')
    child.kill()
    child.wait()
    point(top.shows('^countersink top: the run has ended: '), 'its end')
    os.write(top.fd, b'q')
    top.ends(0, 'status 0 after its end')


def check_nothing():
    child, directory = start('sleep', '1000', COUNTERSINK_PERIOD='1000000000')
    top = Top('-d', '0.2', directory)
    point(top.shows('^no sample yet$'), 'without samples that is shown, and no table')
    top.key('jkGt', r'\A(?!(?:.*\n)*>)', 'there is nothing to select')
    os.write(top.fd, b'q')
    top.ends(0, 'q ends it')
    done = subprocess.run([COUNTERSINK, 'top', '--once', '-d', '0.1', directory], capture_output=True, text=True)
    point(done.returncode == 0 and done.stdout.endswith('\nno sample yet\n'), '--once says so, too', done)
    child.kill()
    child.wait()


EVIL = '''
import types
def spin():
    n = 0
    while True:
        for i in range(1000):
            n += i * i
evil = 'evil\\x1b[31m\\x1b]0;title\\x07\\r\\n\\x9b2J'
names = {'co_name': evil, 'co_qualname': evil} if hasattr(spin.__code__, 'co_qualname') else {'co_name': evil}
open('/proc/self/comm', 'w').write('th\\x1b[2Jread')
types.FunctionType(spin.__code__.replace(**names), globals())()
'''


def check_names():
    child, directory = start(sys.executable, '-c', EVIL, 'argument\x1b[2J\x1b]0;x\x07')
    top = Top('-d', '0.2', directory)
    top.shows(r'<string> .*2J$')
    top.key('j', r'^evil\\x1b\[31m\\x1b\]0;title\\x07\\x0d\\x0a.*2J  <string>$', 'a hostile name is shown with its bytes')
    top.resize(20, 24)
    point(top.shows(r'^evil.{13}\.\.\.\Z'), 'a name that is too long ends in the last column')
    top.resize(80, 24)
    os.write(top.fd, b't')
    top.shows('thread$')
    point(not top.screen.foreign, 'none of its sequences reach the terminal', top.screen.foreign)
    os.write(top.fd, b'q')
    top.ends(0, 'q ends it')
    child.kill()
    child.wait()


def check_refused(directory):
    def refused(name, message, env=None, **how):
        done = subprocess.run([COUNTERSINK, 'top', directory], stderr=subprocess.PIPE, text=True, env={**os.environ, 'TERM': 'xterm', **(env or {})}, **how)
        point(done.returncode == 1 and done.stderr == 'countersink: ' + message + '\n', name, done)

    master, slave = pty.openpty()
    refused('output that is no terminal', 'standard output is no terminal: use --once', stdin=slave, stdout=subprocess.DEVNULL)
    refused('input that is no terminal', 'standard input is no terminal, so that no key can end it: use --once', stdin=subprocess.DEVNULL, stdout=slave)
    refused('TERM=dumb', 'the terminal cannot move its cursor (TERM is dumb): use --once', {'TERM': 'dumb'}, stdin=slave, stdout=slave)
    os.close(slave)
    os.close(master)
    done = subprocess.run([COUNTERSINK, 'top', '-j', directory], capture_output=True, text=True)
    point(done.returncode == 2 and done.stderr == 'countersink: option --json needs --once\n', '--json without --once', done)
    top = Top('-d', '0.2', directory, env={'NO_COLOR': '1'})
    top.key('j', '^>', 'a row can be selected with NO_COLOR')
    os.write(top.fd, b'q')
    styles = top.screen.styles
    top.ends(0, 'q ends it')
    point(styles == 0, 'NO_COLOR: no styles')


def main():
    for name in [n for n in os.environ if n.startswith('COUNTERSINK_')]:
        del os.environ[name]
    for name in ('LD_PRELOAD', 'NO_COLOR', 'COLUMNS', 'LINES'):
        os.environ.pop(name, None)
    os.environ['LC_ALL'] = 'C'
    child, directory = start(BUILD + '/tests/targets/burn', '1000000')
    check_keys(directory)
    check_sizes(directory)
    check_signals(directory)
    check_refused(directory)
    child.kill()
    child.wait()
    check_end()
    check_attached()
    check_nothing()
    check_names()


TMP = tempfile.mkdtemp(prefix='countersink-test.')
os.chmod(TMP, 0o755)
try:
    main()
finally:
    for one in children:
        try:
            os.kill(one, signal.SIGKILL)
        except OSError:
            pass
    shutil.rmtree(TMP, ignore_errors=True)
print('1..%d' % nr)
sys.exit(failed != 0)

"""Real programs at work for suites.py: each function runs one in a given way and returns what it said, {result: text}."""
import hashlib
import http.client
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

SRC = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
SOURCES = os.path.join(SRC, 'tests', 'guests', 'sources')
PATIENCE = 60  # seconds, for what must come about


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def end_of(process):
    try:
        status = process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return 'hung'
    return 128 - status if status < 0 else status


def digest(path):
    with open(path, 'rb') as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


# ---- servers -----------------------------------------------------------------------------------------------------------

def redis(way):
    where = os.path.join(way.directory, 'redis.sock')

    def cli(*words, text=None):
        return subprocess.run(['redis-cli', '-s', where, *words], input=text, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=PATIENCE).stdout

    with open(os.path.join(way.directory, 'log'), 'w') as log:
        server = way.start(['redis-server', '--port', '0', '--unixsocket', where, '--save', '', '--dir', way.directory,
                            '--enable-debug-command', 'yes'], stdout=log, stderr=log)
    results = {}
    try:
        until(lambda: 'PONG' in cli('ping'), 'redis-server does not answer')
        commands = ''.join('SET key:%d %d\nLPUSH list:%d %d\nZADD set %d m%d\n' % (i, i * 7, i % 50, i, i % 97, i)
                           for i in range(5000))
        results['pipe'] = hashlib.sha256(cli(text=commands).encode()).hexdigest()
        results['digest'] = cli('debug', 'digest')
        bench = subprocess.run(['redis-benchmark', '-s', where, '-n', '20000', '-c', '20', '--csv', '-t',
                                'set,get,incr,lpush,lrange_100,mset'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, timeout=PATIENCE)
        results['benchmark'] = bench.returncode, sorted(re.findall(r'^"([^"]+)"', bench.stdout, re.M)), bench.stderr
        results['errors'] = cli('info', 'errorstats')
        for name, calls, failed in re.findall(r'cmdstat_([^:]+):calls=(\d+).*failed_calls=(\d+)', cli('info', 'commandstats')):
            if name not in ('info', 'ping'):
                results['calls of ' + name] = calls, failed
        results['counter'] = cli('get', 'counter:__rand_int__')
        results['save'] = cli('bgsave')
        until(lambda: 'rdb_bgsave_in_progress:0' in cli('info', 'persistence'), 'redis does not end its save')
        results['saved'] = re.findall(r'rdb_last_bgsave_status:\w+', cli('info', 'persistence'))
        results['rewrite'] = cli('bgrewriteaof')
        until(lambda: 'aof_rewrite_in_progress:0' in cli('info', 'persistence'), 'redis does not end its rewrite')
        results['rewritten'] = re.findall(r'aof_last_bgrewrite_status:\w+', cli('info', 'persistence'))
        cli('shutdown', 'nosave')
    finally:
        if server.poll() is None:
            try:
                server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
    results['status'] = end_of(server)
    return results


def number_in(path):
    """What a server writes there, some time after it answers."""
    text = ''

    def there():
        nonlocal text
        if os.path.exists(path):
            with open(path) as f:
                text = f.read()
        return text.endswith('\n')
    until(there, path)
    return int(text)


NGINX = '''
daemon off; worker_processes 2; error_log %(directory)s/error.log warn; pid %(directory)s/nginx.pid;
events { worker_connections 256; }
http { access_log off; client_body_temp_path %(directory)s/t1; proxy_temp_path %(directory)s/t2; fastcgi_temp_path %(directory)s/t3;
uwsgi_temp_path %(directory)s/t4; scgi_temp_path %(directory)s/t5;
server { listen 127.0.0.1:%(port)d; root %(directory)s/html; gzip on; gzip_min_length 1; gzip_types *; } }
'''


def nginx(way):
    port, html = free_port(), os.path.join(way.directory, 'html')
    os.mkdir(html)
    os.chmod(way.directory, 0o755)
    for n in range(10):
        with open(os.path.join(html, '%d.txt' % n), 'w') as f:
            f.write(('line %d of a file\n' % n) * (500 * n + 1))
    config = os.path.join(way.directory, 'nginx.conf')
    with open(config, 'w') as f:
        f.write(NGINX % {'directory': way.directory, 'port': port})
    server = way.start(['nginx', '-c', config, '-p', way.directory], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    answers, lock = {}, threading.Lock()

    def answering():
        try:
            socket.create_connection(('127.0.0.1', port), 1).close()
            return True
        except OSError:
            return False

    def ask(who):
        for i in range(400):
            name = '/%d.txt' % ((i + who) % 11)
            try:
                connection = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)
                connection.request('GET', name, headers={'Accept-Encoding': 'gzip'} if i & 1 else {})
                answer = connection.getresponse()
                seen = (name, answer.status, hashlib.sha256(answer.read()).hexdigest()[:12] if not i & 1 else 'packed')
                connection.close()
            except OSError as e:
                seen = (name, type(e).__name__, '')
            with lock:
                answers[seen] = answers.get(seen, 0) + 1

    until(answering, 'nginx does not answer')
    master = number_in(os.path.join(way.directory, 'nginx.pid'))
    for round in range(2):
        threads = [threading.Thread(target=ask, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.kill(master, signal.SIGHUP if round == 0 else signal.SIGQUIT)
    results = {'%s: %s %s' % seen: count for seen, count in answers.items()}
    results['status'] = end_of(server)
    with open(os.path.join(way.directory, 'error.log')) as f:
        results['errors'] = re.sub(r'\d+', 'N', f.read())
    return results


# ---- programs that run to their end -------------------------------------------------------------------------------------

SQL = '''
PRAGMA journal_mode=WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 200000)
INSERT INTO t SELECT i, (i * 7919) % 10007, hex(i * i), i / 3.0 FROM n;
CREATE INDEX ta ON t(a); CREATE INDEX tb ON t(b);
SELECT count(*), sum(a), min(b), max(b), round(avg(c), 3) FROM t;
SELECT a, count(*) FROM t GROUP BY a ORDER BY 2 DESC, 1 LIMIT 5;
UPDATE t SET a = a + 1 WHERE id % 3 = 0; DELETE FROM t WHERE id % 7 = 0;
SELECT count(*), sum(a) FROM t; SELECT x.a, y.b FROM t x JOIN t y ON x.id = y.id + 7 WHERE x.a < 5 ORDER BY 1, 2 LIMIT 9;
PRAGMA integrity_check; VACUUM; PRAGMA wal_checkpoint(TRUNCATE); SELECT 1/0, nothing FROM t;
'''


def sqlite(way):
    database = os.path.join(way.directory, 'base')
    script = os.path.join(way.directory, 'script')
    with open(script, 'w') as f:
        f.write(SQL)
    with open(script) as f:
        status, out = way.run(['sqlite3', database], stdin=f)
    return dict({'line %d' % n: line for n, line in enumerate(out.splitlines())}, status=status, database=digest(database))


def make(way):
    copy = os.path.join(way.directory, 'copy')
    # The directory may belong to another user than the one that the suites run as.
    files = subprocess.run(['git', '-c', 'safe.directory=' + SRC, 'ls-files', '-z'], cwd=SRC, stdout=subprocess.PIPE,
                           check=True).stdout.split(b'\0')
    for name in filter(None, files):
        to = os.path.join(copy.encode(), name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if os.path.isfile(os.path.join(SRC.encode(), name)):
            shutil.copy(os.path.join(SRC.encode(), name), to)
    env = {k: v for k, v in way.env.items() if not k.startswith(('MAKE', 'MFLAGS'))}
    status, out = way.run(['make', '-j2', '--output-sync=line', 'all'], cwd=copy, env=env)
    results = {'status': status, 'said': sorted(out.splitlines())}
    for directory, _, names in os.walk(os.path.join(copy, 'build')):
        for name in names:
            path = os.path.join(directory, name)
            results[os.path.relpath(path, copy)] = digest(path)
    if not way.engine and (status or len(results) < 50):
        raise RuntimeError('make does not work by itself: ' + out[-500:])
    return results


def lines_of(command, needs_file):
    def collect(way):
        shutil.copy(os.path.join(SOURCES, needs_file), way.directory)
        status, out = way.run(command, deadline=300)
        return dict({'line %d' % n: line for n, line in enumerate(out.splitlines())}, status=status)
    return collect


def compiled(compile_words, command, sources, env=()):
    def collect(way):
        for name in sources:
            shutil.copy(os.path.join(SOURCES, name), way.directory)
        subprocess.run(compile_words, cwd=way.directory, check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, GOCACHE=os.path.join(os.path.dirname(way.directory), 'suite-go-cache'),
                                GOFLAGS='-mod=mod', **dict(env)))
        status, out = way.run(command, deadline=300)
        return dict({'line %d' % n: line for n, line in enumerate(out.splitlines())}, status=status)
    return collect


# ---- a shell with job control on a terminal -------------------------------------------------------------------------------

# What is typed, and what must have come before the next is. The prompt comes once the command's job is over or stopped.
TYPED = [
    ('sleep 100\n', None), ('\x1a', 'Stopped'), ('jobs\n', r'Stopped +sleep 100'), ('bg\n', r'sleep 100 &'),
    ('jobs\n', r'Running +sleep 100'), ('fg\n', r'\nsleep 100\r\n'), ('\x03', r'ready> '), ('echo status $?\n', r'status \d+'),
    ('cat\n', None), ('typed\n', r'typed\r\ntyped\r\n'), ('\x1a', 'Stopped'), ('fg %cat\n', r'\ncat\r\n'),
    ('again\n', r'again\r\nagain\r\n'),
    ('\x04', r'ready> '), ('echo status $?\n', r'status \d+'),
    ('(sleep 0.2; echo from below) | cat & wait\n', 'Done'), ('sleep 100 | sleep 100\n', None), ('\x1a', 'Stopped'),
    ('kill -9 %1; sleep 0.5; jobs; echo none left\n', r'left\r'), ('trap "echo caught" INT; sleep 100\n', None), ('\x03', 'caught'),
    ('for i in 1 2 3; do (exit $i) & done; wait -n; wait; echo all\n', r'all\r'),
    ('set -o monitor; sleep 50 & kill -STOP $!; sleep 0.3; jobs; kill -CONT $!; kill $!; wait $!; echo status $?\n',
     r'status \d+'),
    ('stty -a | grep -c isig\n', r'\n\d'), ('exit 7\n', r'\nexit'),
]


def terminal(way):
    """Types to an interactive bash, and returns what each thing typed was answered."""
    shell = ['bash', '--norc', '--noprofile', '-i']
    env = dict(way.env, PS1='ready> ', HOME=way.directory, TERM='dumb', HISTFILE='', INPUTRC='/dev/null')
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(way.directory)
        os.execvpe(way.words(shell)[0], way.words(shell), env)
    seen = ''

    def read_until(pattern, start):
        nonlocal seen
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, seen[start:]):
            if not select.select([fd], [], [], max(end - time.monotonic(), 0))[0]:
                os.kill(pid, signal.SIGKILL)
                raise TimeoutError('no /%s/ in %r' % (pattern, seen[start:]))
            try:
                some = os.read(fd, 4096)
            except OSError:
                break
            seen += some.decode('utf-8', 'replace')

    results = {}
    read_until('ready> ', 0)
    for n, (typed, answer) in enumerate(TYPED):
        start = len(seen)
        # A job of the foreground must be there before it can be stopped.
        if typed in ('\x1a', '\x03', '\x04') or typed in ('typed\n', 'again\n'):
            until(lambda: os.tcgetpgrp(fd) not in (0, pid) and in_foreground(fd), 'no job in the foreground')
        os.write(fd, typed.encode())
        if answer:
            read_until(answer, start)
            if not answer.endswith('> ') and typed not in ('exit 7\n', 'typed\n', 'again\n', 'fg\n', 'fg %cat\n'):
                read_until('ready> $', start)
        results['%02d %r' % (n, typed)] = without_chance(seen[start:])
    # A terminal that goes away would end countersink before its profile is made.
    read_until('there is no such text', len(seen))
    results['status'] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return results


def without_chance(text):
    """Which of two ended jobs is the current one, and whether a prompt came in time to report an end, is chance."""
    text = re.sub(r'(?m)^\[\d+\][+-]? +(Exit|Done|Terminated).*\r?\n', '', re.sub(r'(\[\d+\])[+-]', r'\1 ', text))
    return sorted(re.sub(r'\b\d{2,}\b', 'N', text).splitlines())


def in_foreground(fd):
    """The terminal's foreground group is a job's, which has got to its own program."""
    try:
        with open('/proc/%d/comm' % os.tcgetpgrp(fd)) as f:
            return f.read().strip() in ('sleep', 'cat')
    except (OSError, ProcessLookupError):
        return False


def static_is_sampled(profile):
    if any('guest' in text for text in profile.facts.get('outside', [])):
        return []
    return ['nothing says that the static program was sampled from outside: %s' % profile.facts]


ENGINES = ('auto', 'signal', 'timer')
FAST = {'hz': 10000}
JAVA = ['java', '-Xmx256m', '-XX:+UseParallelGC', 'Guest']
GO_SOURCES = ['guest.go', 'work.go']
GO = ['go', 'build', '-o', 'guest'] + GO_SOURCES

SUITES = [
    (('redis-server under redis-benchmark', redis), {'engines': ENGINES, 'needs': ['redis-server', 'redis-benchmark'],
                                                     'hot': {'aeMain': 20}}),
    (('redis-server under redis-benchmark', redis), dict(FAST, needs=['redis-server', 'redis-benchmark'])),
    (('nginx, two workers, reloaded', nginx), {'engines': ENGINES, 'needs': ['nginx']}),
    (('nginx, two workers, reloaded', nginx), dict(FAST, needs=['nginx'])),
    (('sqlite3', sqlite), {'engines': ENGINES, 'needs': ['sqlite3']}),
    (('sqlite3', sqlite), dict(FAST, needs=['sqlite3'])),
    (('make -j2 of this project', make), {'needs': ['make', 'gcc']}),
    (('make -j2 of this project', make), dict(FAST, needs=['make', 'gcc'])),
    (('node: JIT, workers, children', lines_of(['node', '--max-semi-space-size=1', 'guest.js'], 'guest.js')), {'engines': ENGINES, 'needs': ['node']}),
    (('node: JIT, workers, children', lines_of(['node', '--max-semi-space-size=1', 'guest.js'], 'guest.js')), dict(FAST, needs=['node'])),
    (('java: JIT, collectors, children', compiled(['javac', 'Guest.java'], JAVA, ['Guest.java'])),
     {'engines': ENGINES, 'needs': ['java', 'javac']}),
    (('java: JIT, collectors, children', compiled(['javac', 'Guest.java'], JAVA, ['Guest.java'])),
     dict(FAST, needs=['java', 'javac'])),
    (('Go with cgo', compiled(GO, ['./guest'], GO_SOURCES, env={'CGO_ENABLED': '1'})),
     {'engines': ENGINES, 'needs': ['go'], 'hot': {'c_work': 5}}),
    (('Go with cgo', compiled(GO, ['./guest'], GO_SOURCES, env={'CGO_ENABLED': '1'})), dict(FAST, needs=['go'])),
    (('Go, static', compiled(['go', 'build', '-o', 'guest', 'static.go', 'work.go'], ['./guest'], ['static.go', 'work.go'],
                             env={'CGO_ENABLED': '0'})), {'needs': ['go'], 'check': static_is_sampled}),
    (('bash on a terminal: jobs', terminal), {'engines': ENGINES, 'needs': ['bash']}),
    (('bash on a terminal: jobs', terminal), dict(FAST, needs=['bash'])),
]

#!/usr/bin/env python3
"""What run has of trees with programs that cannot be injected: figures for RESULTS.md.

Arguments choose trees by name; OUTSIDE_USER=65534 measures as that user; OUTSIDE_ROUNDS=N takes so many paired rounds
for costs, of trees whose work is fixed; OUTSIDE_BARE='ALC,ALCB' adds what the events of bare_events.c cost by themselves."""
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SRC = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.environ.get('BUILD', os.path.join(SRC, 'build'))
COUNTERSINK = os.path.join(BUILD, 'bin', 'countersink')
TARGETS = os.path.join(BUILD, 'tests', 'targets')
ROUNDS = int(os.environ.get('OUTSIDE_ROUNDS', '0'))
DEADLINE = 600
# Trees whose work is fixed; the other trees' programs go on until a clock says so, whatever that costs.
FIXED_WORK = ('go build', 'go, dynamic', 'go, static', 'go execs go', 'sh, static', 'threads')

GO = '''package main
import ("fmt"; "os"; "strconv"; "time")
//go:noinline
func turn(n int) int { s := 0; for i := 0; i < n; i++ { s = s*31 + i ^ s>>3 }; return s }
func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	end, sum := time.Now().Add(time.Duration(seconds*1e9)), 0
	for time.Now().Before(end) { sum += turn(100000) }
	if sum == 1 { fmt.Println(sum) }
}
'''
START = '''package main
import ("os"; "os/exec"; "strconv"; "syscall")
func main() {
	n, _ := strconv.Atoi(os.Args[1])
	if os.Args[2] == "self" {
		for s, i := 0, 0; i < 3000000; i++ { s = s*31 + i ^ s>>3 }
		if n > 0 { syscall.Exec(os.Args[0], []string{os.Args[0], strconv.Itoa(n - 1), "self"}, os.Environ()) }
		return
	}
	for i := 0; i < n; i++ { exec.Command(os.Args[2], os.Args[3:]...).Run() }
}
'''
FIXED = '''#include <stdlib.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void turn(long n) { for (long i = 0; i < n; i++) sink = sink * 31 + (unsigned long)i; }
int main(int argc, char **argv) { for (long k = atol(argv[argc - 1]); k > 0; k--) turn(10000); return 0; }
'''
SWITCH = '''#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int there[2], back[2];
static void *answer(void *arg) { char c; while (read(there[0], &c, 1) == 1) if (write(back[1], &c, 1) != 1) break; return arg; }
int main(int argc, char **argv)
{
	pthread_t thread; char c = 0;
	if (pipe(there) || pipe(back)) return 1;
	pthread_create(&thread, NULL, answer, NULL);
	for (long i = atol(argv[argc - 1]); i > 0; i--) if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1) return 1;
	return 0;
}
'''
# Two of these at a time start all tools of the compiler, which are static.
BUILT = '''package main
import (_ "%s"; _ "%s")
func main() {}
'''


def run(words, **more):
    return subprocess.run(words, timeout=DEADLINE, **more)


def make_programs(where):
    """The programs of the trees that can be built here, as {name: path}."""
    made = {'dynamic': os.path.join(TARGETS, 'chain'), 'static': os.path.join(TARGETS, 'static_chain'),
            'spin': os.path.join(TARGETS, 'static_spin')}
    chain = [os.path.join(SRC, 'tests/targets/chain.c'), '-I' + SRC, '-O1', '-fno-inline']
    quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
    for name, words in (('musl', ['musl-gcc']), ('m32', ['gcc', '-m32', '-static']),
                        ('stripped', ['gcc', '-static', '-s'])):
        path = os.path.join(where, name)
        if shutil.which(words[0]) and not run(words + chain + ['-o', path], **quiet).returncode:
            made[name] = path
    for name, text, flags in (('fixed', FIXED, []), ('fixed_static', FIXED, ['-static']),
                              ('switch', SWITCH, ['-static', '-pthread'])):
        path = os.path.join(where, name)
        with open(path + '.c', 'w') as f:
            f.write(text)
        if not run(['gcc', '-O1', path + '.c', '-o', path, *flags], **quiet).returncode:
            made[name] = path
    if shutil.which('go'):
        with open(os.path.join(where, 'turn.go'), 'w') as f:
            f.write(GO)
        with open(os.path.join(where, 'start.go'), 'w') as f:
            f.write(START)
        for name, source, flags in (('go', 'turn.go', []), ('go_stripped', 'turn.go', ['-ldflags=-s -w']),
                                    ('start', 'start.go', [])):
            path = os.path.join(where, name)
            env = dict(os.environ, CGO_ENABLED='0', GO111MODULE='off', GOCACHE=os.path.join(where, 'cache'))
            if not run(['go', 'build', *flags, '-o', path, source], cwd=where, env=env, **quiet).returncode:
                made[name] = path
        with open(os.path.join(where, 'Makefile'), 'w') as f:
            f.write('all: a b\na b:\n\tGOCACHE=$$PWD/cache.$@ go build -a -o $@.out $@.go\n')
        for name, parts in (('a', ('net/http', 'encoding/json')), ('b', ('go/types', 'encoding/xml'))):
            with open(os.path.join(where, name + '.go'), 'w') as f:
                f.write(BUILT % parts)
    return made


def trees(made, where):
    """{name: shell script}; a script needs what it names."""
    lines = {name: '%s 0.4' % path for name, path in made.items()}
    kinds = [lines[name] for name in ('static', 'go', 'musl', 'm32', 'dynamic') if name in lines]
    found = {'mixed': '; '.join(kinds) + '; true'}
    for name in ('static', 'stripped', 'go', 'go_stripped', 'musl', 'm32'):
        if name in made:
            found['long ' + name] = '%s 2; true' % made[name]
    if shutil.which('busybox'):
        found['nested'] = "busybox sh -c '%s; %s; true'; %s; %s; true" % (
            lines['static'], lines['dynamic'], lines['static'], lines['dynamic'])
    if 'go' in made:
        found['go build'] = 'cd %s && rm -rf cache.* && make -s -j2' % where
    if 'start' in made:
        found['go, dynamic'] = '%(start)s 300 %(fixed)s 500' % made
        found['go, static'] = '%(start)s 300 %(fixed_static)s 500' % made
        found['go execs go'] = '%(start)s 500 self' % made
    found['sh, static'] = 'i=0; while [ $i -lt 500 ]; do %(fixed_static)s 300; i=$((i + 1)); done' % made
    found['threads'] = '%(switch)s 60000' % made
    found['short'] = 'i=0; while [ $i -lt 1000 ]; do %s 0.003; i=$((i + 1)); done' % made['spin']
    found['many'] = 'i=0; while [ $i -lt 10000 ]; do %s 0; i=$((i + 1)); done' % made['spin']
    return found


def as_user(words):
    user = os.environ.get('OUTSIDE_USER')
    return ['setpriv', '--reuid=' + user, '--regid=' + user, '--clear-groups', *words] if user else words


def timed(words):
    """CPU time of the launcher and all below, and of the wall, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = run(as_user(words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit('%s: status %d, %s' % (words, done.returncode, done.stderr.decode()[-300:]))
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - began


def figures(path):
    report = json.loads(subprocess.check_output([COUNTERSINK, 'report', '-j', '-a', '--no-pager', path]))
    facts = {}
    for fact in report['facts']:
        key, text = fact.split(': ', 1)
        facts.setdefault(key, []).append(text)
    usage = int(facts['user_ns'][0]) + int(facts['sys_ns'][0])
    rows = report['rows']
    brackets = {}
    for row in rows:
        if row['pseudo']:
            brackets[row['name']] = brackets.get(row['name'], 0) + row['self']
    unnamed = sum(row['self'] for row in rows if row['name'] == '[no symbol]')
    return usage, sum(row['self'] for row in rows), brackets, unnamed, facts.get('loss', [])


def measure(name, script, where):
    path = os.path.join(where, 'profile.pb.gz')
    cpu, wall = timed([COUNTERSINK, '-q', '-o', path, '--', 'sh', '-c', script])
    usage, total, brackets, unnamed, losses = figures(path)
    covered = total - sum(brackets.values())
    print('%s: %.3f s of rusage in %.1f s, launcher %.3f s; rows and brackets %.4f of it, covered %.2f %%, named %.2f %%' %
          (name, usage / 1e9, wall, cpu - usage / 1e9, total / usage, 100 * covered / usage,
           100 * (covered - unnamed) / usage))
    for what, ns in sorted(brackets.items(), key=lambda item: -item[1])[:6]:
        print('    %6.2f %%  %s' % (100 * ns / usage, what))
    for loss in losses:
        print('    lost: %s' % loss)
    sys.stdout.flush()


def costs(script, where):
    """The programs' CPU time under each profiler by that without, each pair one after the other."""
    path, data = os.path.join(where, 'profile.pb.gz'), os.path.join(where, 'perf.data')
    usage_of = [sys.executable, '-c', 'import resource, subprocess, sys\n'
                's = subprocess.call(sys.argv[2:])\nu = resource.getrusage(resource.RUSAGE_CHILDREN)\n'
                'open(sys.argv[1], "w").write(str(u.ru_utime + u.ru_stime))\nsys.exit(s)', os.path.join(where, 'usage')]
    command = [*usage_of, 'sh', '-c', script]

    def programs(words):
        """CPU time of the programs alone, and of all."""
        cpu = timed(words)[0]
        with open(os.path.join(where, 'usage')) as f:
            return float(f.read()), cpu

    bare_events = os.path.join(where, 'bare_events') if os.environ.get('OUTSIDE_BARE') else ''
    if bare_events:
        run(['cc', '-O1', '-D_GNU_SOURCE', os.path.join(SRC, 'tests/outside/bare_events.c'), '-o', bare_events], check=True)
    for hz in (1000, 10000):
        ways = {'countersink': [COUNTERSINK, '-q', '-F', str(hz), '-o', path, '--']}
        if shutil.which('perf'):
            ways['perf record -g'] = ['perf', 'record', '-q', '-g', '-F', str(hz), '-e', 'task-clock', '-o', data, '--']
        for events in os.environ.get('OUTSIDE_BARE', '').split(',') if bare_events else ():
            ways['bare events ' + events] = ['env', 'EVERY=%d' % (10 ** 9 // hz), 'COPY=%d' % (1024 if hz > 5000 else 8192),
                                             bare_events, events]
        for way, prefix in ways.items():
            ratios, with_all = [], []
            for _ in range(ROUNDS):
                bare = programs(command)[0]
                own, cpu = programs(prefix + command)
                ratios.append(own / bare)
                with_all.append(cpu / bare)
            print('    %d Hz, %s / bare: median %.3f of %d (%.3f to %.3f), with the profiler %.3f' % (
                hz, way, statistics.median(ratios), ROUNDS, min(ratios), max(ratios), statistics.median(with_all)))
            sys.stdout.flush()


def main():
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix='outside.') as where:
        os.chmod(where, 0o777)
        os.environ['CHAIN_LOG'] = os.path.join(where, 'log')
        made = make_programs(where)
        if os.environ.get('OUTSIDE_USER'):
            subprocess.run(['chmod', '-R', 'a+rwX', where], check=True)
            os.environ['HOME'] = where
        for name, script in trees(made, where).items():
            if wanted and name not in wanted:
                continue
            measure(name, script, where)
            if ROUNDS and name in FIXED_WORK:
                costs(script, where)


if __name__ == '__main__':
    main()

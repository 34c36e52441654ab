"""Guests of other languages, whose runtimes start programs each in a way of their own: none of 1,000 is killed."""
import os
import subprocess

from harness import Failure, Guest

FRAMES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'frames')
BUILT = '{T}/runtimes/'

PYTHON = '''
import collections, os, subprocess, sys
way, ended = sys.argv[1], collections.Counter()
for i in range(1000):
    if way == 'subprocess':
        ended[subprocess.run(['true']).returncode] += 1
        continue
    if way == 'spawn':
        pid = os.posix_spawn('/bin/true', ['true'], os.environ)
    else:
        pid = os.fork()
        if pid == 0:
            os.execv('/bin/true', ['true'])
    ended[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])] += 1
print(dict(ended))
'''
NODE = '''
const ended = {};
for (let i = 0; i < 1000; i++) {
    const end = require('child_process').spawnSync('true');
    ended[end.signal || end.status] = (ended[end.signal || end.status] || 0) + 1;
}
console.log(ended);
'''
PERL = 'my %e; $e{system("true")}++ for 1 .. 500; for (1 .. 500) { my $p = fork; exec "true" if !$p; waitpid $p, 0; $e{$?}++ } ' \
       'print map { "$_: $e{$_}\\n" } sort keys %e'
RUBY = 'e = Hash.new(0); 500.times { system("true"); e[$?.exitstatus] += 1 }; ' \
       '500.times { Process.wait(fork { exec "true" }); e[$?.exitstatus] += 1 }; p e'
# Sorts without the interpreter's lock. zlib would, too, but Ruby 3.1 aborts where that compresses during GC.compact.
RUBY_SORTS = '''
require "fiddle"
C = Fiddle.dlopen(nil)
COMPARE = C["strcmp"]
SORT = Fiddle::Function.new(C["qsort"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID)
def room(bytes) = Fiddle::Pointer.malloc(bytes, Fiddle::RUBY_FREE).tap { |room| room[0, bytes] = "\\0" * bytes }
'''
# Compaction makes pages of objects unreadable, while threads without the interpreter's lock are sampled, too.
RUBY_COMPACTS = RUBY_SORTS + '''
GC.auto_compact = true
def hold(n) = (1..n).map { |i| ["item #{i}" * 5, i] }.to_h
sort = 2.times.map { |t| Thread.new { own = room(1 << 20); 30.times.sum { |i| SORT.call(own, 1 << 17, 8, COMPARE); t + i } } }
work = Thread.new { 60.times.sum { |i| hold(3000).select { |k, v| v % 7 == i % 7 }.size } }
20.times { GC.compact; hold(2000) }
p [*sort, work].map(&:value)
'''
# The frames of a thread that has let the lock go refer to objects that move.
RUBY_MOVES_FRAMES = RUBY_SORTS + '''
ROOM = room(1 << 22)
100.times do
  objects = Array.new(100_000) { Object.new }
  100.times { |i| eval("def m#{i}(n) = n == 0 ? SORT.call(ROOM, 1 << 19, 8, COMPARE) : m#{(i + 1) % 100}(n - 1)", nil, "#{i}.rb") }
  thread = Thread.new { m0(99) }
  sleep 0.005
  objects = nil
  GC.compact
  thread.join
end
puts "all"
'''
BASH = 'for ((i = 0; i < 1000; i++)); do /bin/true || echo $?; done; echo all'


def guest(name, argv, **rest):
    rest.setdefault('engines', ('auto', 'signal'))
    # Most of the time is spent in what they start, which is over before it could be sampled.
    return Guest('runtimes: 1,000 programs started by ' + name, argv, hz=10000, deadline=400, same=('out', 'err', 'status', 'sum'),
                 **rest)


def is_named(profile, directory):
    """Of a virtual machine, all but 1 % of the CPU time, and two ticks of a timer, is in a file or in code with a name."""
    total = profile.total()
    unnamed = sum(ns for (ns, stack, _), objects in zip(profile.samples, profile.objects)
                  if stack and stack[0] == '?' and objects[0][0] == '[anon]')
    if unnamed > total / 100 + (8e6 if profile.facts['engine'][0].startswith('timer') else 0):
        raise Failure('%.1f of %.1f ms are in code without a name' % (unnamed / 1e6, total / 1e6))


def virtual(name, argv, **rest):
    return Guest('runtimes: ' + name, argv, deadline=400, same=('out', 'err', 'status'), check=is_named,
                 needs=[argv[0]], **rest)


def lacks_collector(option):
    if subprocess.run(['java', option, '-version'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        return 'this JDK has no ' + option


GUESTS = [
    *[guest('Python, ' + name, ['python3', '-c', PYTHON, way], needs=['python3'])
      for name, way in (('subprocess', 'subprocess'), ('posix_spawn', 'spawn'), ('fork and exec', 'fork'))],
    guest('node', ['node', '-e', NODE], needs=['node']),
    guest('Java', ['java', '-Xmx128m', '-cp', BUILT, 'Spawns'], needs=['java']),
    guest('Java, by vfork', ['java', '-Xmx128m', '-Djdk.lang.Process.launchMechanism=VFORK', '-cp', BUILT, 'Spawns'],
          needs=['java']),
    guest('Perl', ['perl', '-e', PERL], needs=['perl']),
    guest('Ruby', ['ruby', '-e', RUBY], needs=['ruby']),
    Guest('runtimes: Ruby, which moves its objects', ['ruby', '-e', RUBY_COMPACTS], hz=20000, deadline=400,
          same=('out', 'err', 'status'), needs=['ruby']),
    Guest('runtimes: Ruby, which moves what another thread has in its frames', ['ruby', '-e', RUBY_MOVES_FRAMES], hz=20000,
          deadline=400, same=('out', 'err', 'status'), needs=['ruby']),
    *[virtual('node, which evaluates functions and has workers' + name, ['node', *options, os.path.join(FRAMES, 'churn.js'), '1'],
              hot={'churn': 25})
      for name, options in (('', ()), (', with a small semi-space', ('--max-semi-space-size=1',)))],
    virtual('node, with children', ['node', os.path.join(FRAMES, 'jobs.js')], hot={'busy': 30}),
    *[virtual('Java, which loads classes, throws and has threads, by the collector ' + name,
              ['java', '-Xmx128m', '-XX:ReservedCodeCacheSize=8m', '-XX:+Use%sGC' % name, '-cp', BUILT, 'Work', '1', 'stress'],
              hot={'Work.churn': 20, 'Work.main': 5},
              skip=lambda name=name: lacks_collector('-XX:+Use%sGC' % name))
      for name in ('Serial', 'Parallel', 'G1', 'Z', 'Shenandoah')],
    virtual('Java, with a thread and a child', ['java', '-cp', BUILT, 'Jobs'], hot={'Jobs.spin': 30}),
    guest('bash', ['bash', '-c', BASH], needs=['bash']),
    guest('Go, 1,000 times replaced', [BUILT + 'go'], needs=['go'], env={'GOMAXPROCS': '2'}),
    guest('Rust, 1,000 times replaced', [BUILT + 'rust'], needs=['rustc']),
    *[Guest('runtimes: 1,000 execs ' + name, ['{T}/exec_chain', '1000', '120', way], hz=10000, engines=engines,
            hot={'link_work': 0.1}, same=('out', 'err', 'status', 'sum'), deadline=400)
      for name, way, engines in (('by syscall(2)', 'number', ('sigtrap', 'signal', 'timer')),
                                 ('past libc', 'own', ('signal', 'timer')))],
]

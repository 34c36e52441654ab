# Work whose calls are known: work.rb.calls lists them.
#
# usage: work.rb SECONDS [stress]     works for so many seconds of CPU time; stress: with forked children and compaction
#                                     besides
# Recursion, fibers, enumerators with next, threads, callbacks from C, exceptions with ensure, procs, define_method,
# method_missing, eval, garbage collection.
def three(n)
  sum = 0
  i = 0
  while i < 3 * n
    sum += i % 7
    i += 1
  end
  sum
end

def one(n)
  sum = 0
  i = 0
  while i < n
    sum += i % 7
    i += 1
  end
  sum
end

def recurse(n)
  n < 2 ? n : recurse(n - 1) + recurse(n - 2)
end

def fibers(n)
  fiber = Fiber.new do
    n.times do
      one(30)
      Fiber.yield
    end
  end
  n.times { fiber.resume }
end

def externals(n)
  from = Enumerator.new { |y| n.times { |i| y << one(i % 10) } }
  n.times { from.next }
end

class Point
  attr_reader :x

  def initialize(x)
    @x = x
  end

  def <=>(other)
    x <=> other.x
  end
  include Comparable

  define_method(:twice) { one(x % 10) * 2 }

  def method_missing(name, *arguments)
    one(arguments.size)
  end

  def respond_to_missing?(name, all = false) = true

  def inherited_call = one(3)
end

class Point3 < Point
  def initialize(x)
    super
    @z = one(2)
  end

  def inherited_call
    super + 1
  end
end

def objects(n)
  points = Array.new(n) { |i| Point3.new(i * 7 % n) }
  points.sort
  points.each(&:twice)
  points.each { |point| point.absent(1, 2) }
  points.map { |point| point.inherited_call }
end

def callbacks
  list = (1..200).to_a.reverse
  list.sort_by { |x| one(x % 5) }
  list.sort { |a, b| a <=> b }
  list.map { |x| [x].each { |y| one(y % 3) } }
  list.inject { |a, b| a + b }
  ('abc' * 50).gsub(/./) { |c| c.upcase }
  Hash.new { |h, k| h[k] = one(3) }[1]
  block = ->(x) { one(x) }
  list.each(&block)
  list.then { |x| x.size }.tap { |x| one(x % 3) }
end

def raises(depth)
  raise 'thrown' if depth == 0

  begin
    raises(depth - 1)
  ensure
    one(1)
  end
end

def exceptions(n)
  n.times do
    raises(20)
  rescue RuntimeError
    one(3)
  end
  n.times { catch(:done) { [1].each { throw :done } } }
end

def evaluated(n)
  n.times do |i|
    eval("one(5)")
    eval("def made(x)\n one(x)\nend\nmade(#{i % 5})")
  end
end

def threads
  Array.new(3) { Thread.new { three(500) } }.each(&:join)
end

def garbage
  GC.start
  1000.times.map { |i| "x#{i}" * 3 }
end

def cpu_time = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

def forks
  child = fork do
    recurse(15)
    objects(100)
    exit!(true)
  end
  Process.wait(child)
  abort 'work.rb: a forked child was killed' unless $?.success?
end

round = 0
while cpu_time < ARGV[0].to_f
  if ARGV[1]
    GC.compact
    forks if round % 20 == 0
    round += 1
  end
  three(10_000)
  one(10_000)
  recurse(15)
  fibers(100)
  externals(100)
  objects(300)
  callbacks
  exceptions(20)
  evaluated(20)
  threads
  garbage
end
puts 'done'

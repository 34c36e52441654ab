# As truth.py, for Ruby: before each page fault that it causes on purpose, it writes down what caller_locations() says.
#
# usage: truth.rb FILE      writes the stacks, JSON: [[label, file, line], innermost first]
Warning[:experimental] = false
PAGES = IO::Buffer.new(4096 * 4096)
STACKS = []

# Methods in C that the program calls. caller_locations() has them, too, with the place of their caller.
IN_C = %w[+ << call catch class_eval each each_entry each_slice each_with_index eval first gsub initialize inject instance_eval
          instance_exec load loop map method_missing new next public_send raise require select send sort sort_by
          synchronize throw times yield].freeze

def in_c?(at, caller)
  IN_C.include?(at.label) && (caller.nil? || (at.path == caller.path && at.lineno == caller.lineno))
end

def note(trace)
  ruby = trace.each_index.reject { |i| in_c?(trace[i], trace[i + 1]) }
  STACKS << ruby.map { |i| [trace[i].label, trace[i].path[%r{\A<internal:(/.*)>\z}, 1] || trace[i].path, trace[i].lineno] }
  4096 * STACKS.size
end

def here = PAGES.set_value(:U8, note(caller_locations(0)), 1)

def recurse(n)
  if n == 0
    here
    return 0
  end
  1 + recurse(n - 1)
end

class Base
  def self.made(*names)
    here
    names.each { |name| define_method(name) { here } }
  end

  def area
    here
  end

  def method_missing_base = here

  def respond_to_missing?(name, all = false) = true

  def with_block
    here
    yield 1
    here
  end
end

class Square < Base
  here
  made :left, :right

  def area
    super
    here
  end

  def method_missing(name, *arguments)
    here
    name == :deep ? recurse(2) : super rescue here
  end

  def each
    here
    yield 1
    here
    yield 2
  end
  include Enumerable

  def <=>(other)
    here
    0
  end

  def to_str
    here
    'square'
  end

  def coerced(other) = [here, other]

  class << self
    here
    def singleton = here
  end
end

module Mixed
  here
  def mixed
    here
  end

  refine String do
    def refined = here
  end
end
using Mixed

class Square
  include Mixed
  prepend(Module.new do
    def right
      here
      super
    end
  end)
end

def größe
  here
end

def raises
  begin
    here
    raise 'x'
  rescue StandardError
    here
  else
    here
  ensure
    here
  end
  begin
    begin
      Integer('x')
    ensure
      here
    end
  rescue ArgumentError => e
    here
  end
  catch(:done) do
    here
    [1].each { throw :done }
  end
  tries = 0
  begin
    tries += 1
    here
    raise 'again' if tries < 3
  rescue StandardError
    retry
  end
end

def leaves
  [1, 2].each do |x|
    here
    return x
  end
ensure
  here
end

def callbacks
  [3, 1, 2].each { here }
  [3, 1, 2].map { |x| here; x }
  [3, 1, 2].sort_by { |x| here; x }
  [3, 1, 2].sort { |a, b| here; a <=> b }
  [3, 1, 2].each_slice(2) { |x| here }
  [3, 1, 2].inject { |a, b| here; a + b }
  3.times { |i| here }
  'banana'.gsub(/a/) { here; 'b' }
  { a: 1 }.each { |k, v| here }
  Hash.new { |h, k| here; 1 }[3]
  [[1, 2]].each { |a, (b, c)| [1].map { [2].each { here } } }
  block = proc { here }
  block.call
  block.()
  block.yield
  made = lambda { |x = here| here; x }
  made.call
  made[1]
  [1].each(&block)
  [1].each(&made)
  Square.new.with_block(&block)
  Square.new.with_block { here }
  [Square.new].each(&:area)
  method(:here).to_proc.call
  [1].each(&method(:taken))
  (proc { |x| here; x } >> proc { |x| here }).call(1)
  here.then { here }
  1.tap { here }
  Square.new.instance_eval { here }
  Square.class_eval { here }
  Square.new.instance_exec(1) { |x| here }
  Square.new.sort
  Square.new.map { here }
  Square.new.lazy.map { here }.first(1)
  'x' + Square.new
  i = 0
  while i < 2
    here
    i += 1
  end
  loop do
    here
    break
  end
  for x in [1, 2] do here end
  "#{here}#{
    here}"
end

def taken(x) = here

def over_lines(a,
               b = here)
  [a,
   here,
   { b:
     here }]
  if a &&
     here
    here
  end
  case here
  when Array then 1
  else
    here
  end
end

def keywords(a:, b: here, **rest, &block)
  here
  block&.call
end

def long(n)
  case n
  when 0
    here
  when 1
    here
  when 2
    here
  when 3
    here
  end
  a = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, n]
  b = a.map { |x| x + 1 }
  c = { a: 1, b: 2, c: 3, d: 4, e: 5 }
  d = "#{a} #{b} #{c}"
  here if n > 0
  e = d + d + d
  f = [a, b, c, d, e, a, b, c, d, e]
  here
  g = f.size + f.size * 2 + f.size * 3 + f.size * 4
  here if g > 0
  h = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7] + a[8] + a[9]
  i = b[0] + b[1] + b[2] + b[3] + b[4] + b[5] + b[6] + b[7] + b[8] + b[9]
  here
  j = a[0] * a[1] + a[2] * a[3] + a[4] * a[5] + a[6] * a[7] + a[8] * a[9]
  k = b[0] * b[1] + b[2] * b[3] + b[4] * b[5] + b[6] * b[7] + b[8] * b[9]
  here
  l = [g, h, i, j, k].sum + a[0] * a[1] + a[2] * a[3] + a[4] * a[5] + a[6] * a[7]
  m = [g, h, i, j, k].sum + b[0] * b[1] + b[2] * b[3] + b[4] * b[5] + b[6] * b[7]
  here
  [l, m].each do |x|
    here
  end
  here
end

def evaluated
  eval('here')
  eval("\n\n\nhere", binding, 'another file.rb', 100)
  Square.class_eval("def evaluated_method\n\n here\nend", 'class.rb', 7)
  Square.new.evaluated_method
  Square.new.instance_eval("here\n", 'instance.rb')
  40.times do |i|
    eval("\n" * (i % 7) + "def made_#{i}\n here\nend\nmade_#{i}")
    Object.send(:remove_method, "made_#{i}")
  end
  file = "#{Dir.pwd}/truth_loaded_#{STACKS.size}.rb"
  File.write(file, "\nmodule Loaded\n  here\nend\n\ndef loaded_#{STACKS.size}\n  here\nend\nhere\nloaded_#{STACKS.size}\n")
  load(file)
  require(file)
  File.unlink(file)
end

def fibers
  fiber = Fiber.new do |x|
    here
    Fiber.yield 1
    recurse(3)
  end
  fiber.resume
  here
  fiber.resume
  from = Enumerator.new do |y|
    here
    y << 1
    here
    y << 2
  end
  from.next
  here
  from.next
  begin
    from.next
  rescue StopIteration
    here
  end
  from.each { here }
  Square.new.each_entry { here }
  pair = Square.new.each_entry
  pair.next
  here
end

def threads
  Thread.new { here; recurse(2) }.join
  Thread.new { Fiber.new { here }.resume }.value
  lock = Mutex.new
  [1, 2].map { Thread.new { lock.synchronize { here } } }.each(&:join)
end

def everything
  here
  recurse(5)
  recurse(60)
  square = Square.new
  square.area
  square.left
  square.right
  square.nothing
  square.deep
  square.mixed
  square.send(:mixed)
  square.public_send(:area)
  Square.singleton
  'x'.refined
  größe
  raises
  leaves
  callbacks
  over_lines(
    1
  )
  keywords(a: 1)
  keywords(a: 1, b: 2) { here }
  4.times { |n| long(n) }
  evaluated
  fibers
  threads
  ->(x) { here }.(1)
  GC.start
  here
end

3.times { everything }
GC.compact if GC.respond_to?(:compact)
everything

def json(text) = '"' + text.gsub(/["\\]/) { |c| "\\#{c}" } + '"'
File.write(ARGV[0], '[' + STACKS.map do |stack|
  '[' + stack.map { |name, file, line| "[#{json(name)},#{json(file)},#{line}]" }.join(',') + ']'
end.join(',') + ']')

# What Ruby programs do besides computing.
#
# usage: jobs.rb children        a forked child, a program that is executed, and one that replaces it
#        jobs.rb threads         works in two threads
#        jobs.rb blocks          sleeps, waits for a child, reads from a pipe, waits for a lock: 0.2 s each or more, the first two
#                                as phases
#        jobs.rb made N          makes, calls and frees N methods, each for some 0.5 ms
#        jobs.rb deep N SECONDS  works N frames deep, for so many seconds of CPU time
require 'fiddle'
require 'rbconfig'

def burn(n)
  sum = i = 0
  while i < n
    sum += i % 7
    i += 1
  end
  sum
end

def in_child = burn(2_000_000)

def in_program = burn(2_000_000)

def children
  child = fork do
    in_child
    exec(RbConfig.ruby, __FILE__, 'program')
  end
  Process.wait(child)
  system(RbConfig.ruby, __FILE__, 'program')
end

def in_first = burn(4_000_000)

def in_second = burn(4_000_000)

def threads
  [Thread.new { in_first }, Thread.new { in_second }].each(&:join)
end

def sleeps
  sleep 0.2
end

def waits
  system 'until grep -q "^State:.S" /proc/$PPID/status; do :; done; sleep 0.2' # once this process waits
end

def reads(from)
  from.read 1
end

def locks(lock)
  lock.synchronize { burn 1 }
end

def phase(name)
  text = Fiddle::TYPE_VOIDP
  Fiddle::Function.new(Fiddle::Handle::DEFAULT['csink_phase_begin'], [text], Fiddle::TYPE_INT).call(name)
  yield
  Fiddle::Function.new(Fiddle::Handle::DEFAULT['csink_phase_end'], [], Fiddle::TYPE_INT).call
end

def blocks
  phase('sleeping') { sleeps }
  phase('waiting') { waits }
  from, to = IO.pipe
  reader = Thread.current
  Thread.new { sleep 0.001 until reader.status == 'sleep'; sleep 0.2; to.write 'x' }
  reads(from)
  lock = Mutex.new
  thread = Thread.new { sleep 0.001 until lock.locked?; locks(lock) }
  lock.synchronize { sleep 0.5 }
  thread.join
end

def made(n)
  n.times do |k|
    eval("#{"\n" * (k % 7)}def f_#{k}(n)\nsum = i = 0\n#{"\n" * (k % 5)}while i < n\nsum += i % 7\ni += 1\nend\nsum\nend", nil,
         "made_#{k % 3}.rb", 1)
    send("f_#{k}", 8000)
    Object.send(:remove_method, "f_#{k}")
    GC.start if k % 50 == 49
  end
end

def works(seconds)
  burn(2000) while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < seconds
end

def deep(n, seconds)
  n > 1 ? deep(n - 1, seconds) : works(seconds)
end

case ARGV[0]
when 'children' then children
when 'program' then in_program
when 'threads' then threads
when 'blocks' then blocks
when 'made' then made(ARGV[1].to_i)
when 'deep' then deep(ARGV[1].to_i - 3, ARGV[2].to_f) # <main>, works() and burn() are frames, too
end

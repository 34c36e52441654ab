# Two functions, of which one takes three times as long as the other.
def three(n)
  sum = i = 0
  while i < n
    sum += i % 7
    i += 1
  end
  sum
end

def one(n)
  sum = i = 0
  while i < n
    sum += i % 7
    i += 1
  end
  sum
end

def work
  three(30_000)
  one(10_000)
end

work while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < 1.5

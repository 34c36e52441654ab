# Two functions, of which one takes three times as long as the other: shares.rb ROUNDS.
def three(n)
  sum = i = 0
  while i < 3 * n
    sum += i % 7
    i += 1
  end
  sum
end

def one(n)
  sum = i = 0
  while i < 1 * n
    sum += i % 7
    i += 1
  end
  sum
end

def work(rounds)
  while rounds > 0
    n = 5_000 + rounds * 7_919 % 10_000 # of no length that a sampling period could follow
    three(n)
    one(n)
    rounds -= 1
  end
end

work(ARGV[0].to_i)
puts 'done'

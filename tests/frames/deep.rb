# Stacks of which one side is cut: more frames of Ruby than a stack can have, and more native frames.
#
# usage: deep.rb NUMBER      calls each() below 3,000 frames of Ruby, and below each() 150 times, so often
def within(list)
  list.each { |n| n.times { |i| i + 1 } }
end

def many(n)
  n == 0 ? within([20_000]) : many(n - 1)
end

def each_time(n)
  n == 0 ? within([20_000]) : [n].each { |x| each_time(x - 1) }
end

ARGV[0].to_i.times do
  [3000].each { |n| many(n) }
  each_time(150)
end

loop { t = 0; 1000000.times { |i| t += i % 7 }; break if ARGV[0] != "on" }

do { my $t = 0; $t += $_ % 7 for 1 .. 1000000 } while (($ARGV[0] // "") eq "on");

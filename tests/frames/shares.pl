# Two functions, of which one takes three times as long as the other: shares.pl ROUNDS.
use strict;
use warnings;

sub three {
	my $sum = 0;
	for my $i (1 .. 3 * $_[0]) {
		$sum += $i % 7;
	}
	return $sum;
}

sub one {
	my $sum = 0;
	for my $i (1 .. 1 * $_[0]) {
		$sum += $i % 7;
	}
	return $sum;
}

sub work {
	for my $round (1 .. shift) {
		my $n = 5000 + $round * 7919 % 10000; # of no length that a sampling period could follow
		three($n);
		one($n);
	}
}

work($ARGV[0]);
print "done\n";

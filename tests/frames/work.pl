# Work whose calls are known: work.pl.calls lists them.
#
# usage: work.pl SECONDS [stress]     works for so many seconds of CPU time; stress: with forked children and threads
#                                     besides
# Recursion, sort with and without a sub, objects with destructors, exceptions, closures, patterns with code, tie, eval.
use strict;
use warnings;

sub three {
	my $sum = 0;
	for my $i (1 .. 3 * $_[0]) { $sum += $i % 7 }
	return $sum;
}

sub one {
	my $sum = 0;
	for my $i (1 .. $_[0]) { $sum += $i % 7 }
	return $sum;
}

sub recurse { my $n = shift; return $n < 2 ? $n : recurse($n - 1) + recurse($n - 2) }

sub compare { $a <=> $b }

sub sorts {
	my @sorted = sort compare reverse 1 .. 500;
	@sorted = sort { $b <=> $a } @sorted;
	@sorted = sort { compare() } @sorted;
}

package Point {
	sub new { my ($class, $x) = @_; return bless {x => $x}, $class }
	sub get { my $self = shift; return $self->{x} }
	sub DESTROY { main::one(2) }
}

package Tied {
	sub TIESCALAR { my $x = 1; return bless \$x, 'Tied' }
	sub FETCH { main::one(3) }
}

sub objects {
	for my $i (1 .. shift) {
		my $point = Point->new($i);
		$point->get;
	}
	tie my $tied, 'Tied';
	my $x = $tied for 1 .. 100;
}

sub throws {
	my $depth = shift;
	die "thrown\n" if !$depth;
	throws($depth - 1);
}

sub exceptions {
	for (1 .. shift) {
		eval { throws(20) };
		one(3);
	}
}

sub patterns {
	my $text = 'abc' x 100;
	$text =~ s/(b)/one(2)/ge;
	return $text;
}

sub closures {
	my @made = map { my $n = $_; sub { one($n) } } 1 .. shift;
	$_->() for @made;
}

sub evaluated {
	for my $i (1 .. shift) { eval 'one(5)' }
}

sub in_child {
	recurse(13);
	sorts();
	objects(100);
	evaluated(5);
}

sub forks {
	my $child = fork;
	if (!$child) {
		in_child();
		require POSIX;
		POSIX::_exit(0);
	}
	waitpid $child, 0;
	die "work.pl: a forked child was killed\n" if $?;
}

sub threads {
	require threads;
	$_->join for map { threads->create(\&in_child) } 1 .. 2;
}

my $round = 0;
while (1) {
	if (@ARGV > 1 && $round++ % 20 == 0) {
		forks();
		threads();
	}
	my ($user, $system) = times;
	last if $user + $system >= $ARGV[0];
	three(20000);
	one(20000);
	recurse(13);
	sorts();
	objects(1000);
	exceptions(50);
	patterns();
	closures(20);
	evaluated(20);
}
print "done\n";

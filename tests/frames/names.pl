# Closures of one sub with names of their own, and evaluated subs that are freed: all say that they are in one file, at
# one line, and often are at one address. Each works for some ms.
use strict;
use utf8;
use warnings;
no warnings 'recursion';
use Sub::Util 'set_subname';

sub named {
	my $n = shift;
	return set_subname("closure_$n", sub { my $sum = 0; $sum += $_ * $n for 1 .. 200000; return $sum });
}
my @closures = map { named($_) } 1 .. 4;
$_->() for @closures;

for my $n (1 .. 8) {
	no strict 'refs';
	eval "#line 1 \"made.pl\"\nsub made_$n { my \$sum = 0; \$sum += \$_ for 1 .. 300000; return \$sum }\n1" or die $@;
	&{"made_$n"}();
	undef &{"made_$n"};
	delete $main::{"made_$n"};
}

sub bottom { my $sum = 0; $sum += $_ for 1 .. 1000000; return $sum }

# Names that Perl keeps in Latin-1, and one that it keeps in UTF-8.
{
	package Straße;
	sub größe { my $sum = 0; $sum += $_ for 1 .. 1000000; return $sum }
	sub naïve_Ā { my $sum = 0; $sum += $_ for 1 .. 1000000; return $sum }
}
Straße::größe();
Straße::naïve_Ā();

# Contexts that are no frames, in a deep recursion: more than a walk follows.
sub deep {
	my $n = shift;
	for my $a (1) { for my $b (1) { for my $c (1) { for my $d (1) { for my $e (1) { for my $f (1) { for my $g (1) {
	for my $h (1) { for my $i (1) { for my $j (1) {
		return $n ? deep($n - 1) : bottom();
	} } } } } } } } } }
}

deep(450);

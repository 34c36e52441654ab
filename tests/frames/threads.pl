# Threads of Perl: each is a clone of the interpreter that starts it, and uses another one for shared variables.
use strict;
use warnings;
use threads;
use threads::shared;

my $sum : shared = 0;

sub work { $sum += $_ for 1 .. 10000 }

sub start { return threads->create(\&work) }

start()->join for 1 .. 20;
print "$sum\n";

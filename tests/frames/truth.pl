# As truth.py, for Perl: before each page fault that it causes on purpose, it writes down what caller() says.
#
# usage: truth.pl FILE      writes the stacks, JSON: [[function, file, line], innermost first]
use strict;
use warnings;
no warnings 'recursion';

my $mmap = (`uname -m` =~ /aarch64/) ? 222 : 9;
my $pages = syscall($mmap, 0, 4096 * 4096, 3, 0x22, -1, 0);
my $next = 0;
my @stacks;

sub note {
	my (@stack, $i);
	my ($package, $file, $line) = caller(0);
	for ($i = 1; my @up = caller($i); $i++) {
		push @stack, [$up[3], $file, $line];
		($file, $line) = @up[1, 2];
	}
	push @stack, ['(main)', $file, $line];
	push @stacks, \@stack;
	$next += 4096;
	return pack('Q', $pages + $next);
}

sub here { unpack('P1', note()) }

sub recurse {
	my $n = shift;
	if ($n == 0) {
		here();
		return 0;
	}
	return 1 + recurse($n - 1);
}

package Base {
	sub new { my $class = shift; main::here(); return bless {}, $class }
	sub AUTOLOAD { our $AUTOLOAD; main::here() }
	sub DESTROY { main::here() }
	use overload '""' => sub { main::here(); 'base' }, '+' => \&plus;
	sub plus { main::here(); 1 }
	sub common { main::here() }
}

package Square {
	our @ISA = 'Base';
	sub area { my $self = shift; $self->common; main::here() }
	sub TIESCALAR { main::here(); my $x; return bless \$x }
	sub FETCH { main::here(); 1 }
	sub STORE { main::here() }
}

sub raises {
	eval { here(); die "x\n" };
	here();
	local $SIG{__DIE__} = sub { here() };
	eval { die "y\n" };
	local $SIG{__WARN__} = sub { here() };
	warn "z\n";
}

sub compares { here(); $a <=> $b }

sub callbacks {
	my @list = sort { here(); $a <=> $b } 3, 1, 2;
	@list = sort compares 3, 1, 2;
	map { here() } @list;
	grep { here(); 1 } @list;
	(my $x = 'banana') =~ s/a/here(); 'b'/ge;
	'abc' =~ /b(?{ here() })/;
	my $closure = do { my $n = 1; sub { here(); $n++ } };
	$closure->();
	&$closure;
	tie my $tied, 'Square';
	$tied = 1;
	my $y = $tied;
	$SIG{USR1} = sub { here() };
	kill 'USR1', $$;
	delete $SIG{USR1};
	my $made = sub { sub { here() } }->();
	$made->();
}

sub over_lines {
	return (1 +
		(here() || 0) +
		$_[0]);
}

sub evaluated {
	eval 'here()';
	eval "\n\n\nhere()";
	for my $i (0 .. 39) {
		eval "\n" x ($i % 7) . "no warnings; sub made_$i { here() } made_$i()";
		eval "no strict; undef &made_$i";
	}
	eval "# line 100 \"another file.pl\"\nhere()";
}

sub goes { goto &arrives }
sub arrives { here() }

sub everything {
	here();
	recurse(5);
	recurse(60);
	my $square = Square->new;
	$square->area;
	$square->nothing(1);
	my $text = "$square";
	my $n = $square + 1;
	undef $square;
	raises();
	callbacks();
	over_lines(
		1,
	);
	evaluated();
	goes();
	local $_ = 1;
	for my $x (1 .. 2) { here() }
}

open STDERR, '>', '/dev/null';
everything() for 1 .. 7;

sub json { my $text = shift; $text =~ s/(["\\])/\\$1/g; return "\"$text\"" }
open my $out, '>', $ARGV[0] or die;
print $out '[', join(',', map { '[' . join(',', map { '[' . json($_->[0]) . ',' . json($_->[1]) . ',' . $_->[2] . ']' } @$_) . ']' } @stacks), ']';
close $out or die;

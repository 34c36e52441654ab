# What Perl programs do besides computing.
#
# usage: jobs.pl children        a forked child, a program that is executed, and one that replaces it
#        jobs.pl blocks          sleeps, waits for a child, reads from a pipe, waits for a lock: 0.2 s each or more
#        jobs.pl made N          makes, calls and frees N subs, each for some 0.5 ms
#        jobs.pl deep N SECONDS  works N frames deep, for so many seconds of CPU time
use strict;
use warnings;
no warnings 'recursion';

sub burn {
	my $sum = 0;
	for my $i (1 .. shift) {
		$sum += $i % 7;
	}
	return $sum;
}

sub in_child { burn(1500000) }

sub in_program { burn(1500000) }

sub children {
	my $child = fork;
	if (!$child) {
		in_child();
		exec $^X, $0, 'program';
	}
	waitpid $child, 0;
	system $^X, $0, 'program';
}

sub sleeps {
	select undef, undef, undef, 0.2;
}

sub waits {
	system 'until grep -q "^State:.S" /proc/$PPID/status; do :; done; sleep 0.2'; # once this process waits
}

sub is_waiting {
	open my $stat, '<', '/proc/' . shift() . '/stat';
	return <$stat> =~ /\) S /;
}

sub reads {
	my $from = shift;
	sysread $from, my $byte, 1;
}

sub writes {
	my ($to, $reader) = @_;
	select undef, undef, undef, 0.001 until is_waiting($reader);
	select undef, undef, undef, 0.2;
	syswrite $to, 'x';
}

sub locks {
	my $lock = shift;
	lock @$lock;
}

sub blocks {
	sleeps();
	waits();
	pipe my $from, my $to;
	my $reader = $$;
	if (!fork) {
		writes($to, $reader);
		exit;
	}
	reads($from);
	require threads;
	require threads::shared;
	my $lock = threads::shared::shared_clone([]);
	my $thread;
	{
		lock @$lock;
		$thread = threads->create(\&locks, $lock);
		select undef, undef, undef, 0.5;
	}
	$thread->join;
}

sub made {
	for my $k (0 .. shift() - 1) {
		no strict 'refs';
		eval "#line 1 \"made_" . $k % 3 . ".pl\"\n" . "\n" x ($k % 7) . "sub f_$k {\n\tmy \$sum = 0;\n" . "\n" x ($k % 5) .
			"\tfor my \$i (1 .. \$_[0]) {\n\t\t\$sum += \$i % 7;\n\t}\n\treturn \$sum;\n}\n1" or die $@;
		&{"f_$k"}(6000);
		undef &{"f_$k"};
		delete $main::{"f_$k"};
	}
}

sub works {
	my $seconds = shift;
	my $now = 0;
	while ($now < $seconds) {
		burn(2000);
		($now) = times;
	}
}

sub deep {
	my ($n, $seconds) = @_;
	$n > 1 ? deep($n - 1, $seconds) : works($seconds);
}

sub deeper { deep($_[0] - 4, $_[1]) } # (main), this one, works() and burn() are frames, too

my %jobs = (children => \&children, program => \&in_program, blocks => \&blocks, made => \&made, deep => \&deeper);
my $job = shift;
$jobs{$job}->(@ARGV);

#!/bin/bash
# Whole stacks of code without frame pointers: a sample in the program deep is exact if its frames are deep_N ... deep_100
# without a gap, then all that called them. As Go's pprof reads the profile, by weight.
. "$(dirname "$0")/lib.sh"

inexact() { # PROFILE: parts in a million that are not exact, and one such stack
	go tool pprof -symbolize=none -traces "$1" 2>/dev/null | perl -ne '
	sub judge {
		return unless @stack;
		shift @stack while @stack && $stack[0] !~ /^(deep_\d+|deep_call|main)$/ && $stack[0] =~ /^deep_work/;
		my $program = grep { /^(deep_\d+|deep_call|main|_start)$/ } @stack;
		my ($name) = @stack;
		return unless $program;
		my @want = $name =~ /^deep_(\d+)$/ ? ((map { "deep_$_" } reverse 100 .. $1), "deep_call", "main")
			 : $name eq "deep_call" ? ("deep_call", "main") : ();
		return if !@want && "@stack" !~ /deep_/;	# start-up and the like, outside the known functions
		@want = @stack if !@want;
		$total += $value;
		if ("@stack[0 .. $#want]" ne "@want" || $stack[-1] ne "_start") {
			$bad += $value;
			$example = "@stack";
		}
	}
	if (/^-+\+-+/) { judge(); @stack = (); next }
	next if /^\s+\S+:\s{1,}\S/ && !@stack;
	if (!@stack && /^\s+([\d.]+)(ns|us|ms|s|mins)\s+(\S+)/) {
		$value = $1 * { ns => 1, us => 1e3, ms => 1e6, s => 1e9, mins => 6e10 }->{$2};
		@stack = ($3);
	} elsif (@stack && /^\s+(\S+)/) {
		push @stack, $1;
	}
	END { judge(); printf "%d %s\n", $total ? 1e6 * $bad / $total : 1e6, $example // "" }'
}

for depth in 10 30 100; do
	countersink -q -F 5000 --unwind=dwarf -o s.pb.gz -- "$TARGETS/deep" $depth "${STACKS_SECONDS:-2}" >/dev/null
	read -r parts example <<-EOF
		$(inexact s.pb.gz)
	EOF
	ok "dwarf: $depth frames: all but $parts in a million are exact" test "$parts" -le 100 || diag "$example"
done
done_testing

#!/bin/sh
# Frames of Python, PHP, Perl and Ruby in samples that are taken at any moment, in each version that is installed: every call is
# one that the program makes, and every stack goes down to its beginning. See tests/frames/steps.py and calls.py for what is
# allowed.
. "$(dirname "$0")/lib.sh"

FRAMES=$SRC/tests/frames
"$FRAMES/pythons" >pythons
PYTHON=$(python3 -c 'import sys; print(sys.executable)') # the one that is sampled at a usual rate, too
[ -s pythons ] || skip_all "python3 is not installed"
for version in 3.6 3.7 3.8 3.9 3.10 3.11 3.12 3.13; do
	grep -q " $version\$" pythons || skip "calls in samples of CPython $version are legal" "CPython $version is not installed"
done
while read -r python version; do
	"$python" "$FRAMES/work.py" trace steps.json >out 2>err </dev/null
	is "$?:$(cat out err)" "0:done" "CPython $version ($python): the program writes down its calls"
	rates=10000
	[ "$python" != "$PYTHON" ] || rates='1000 10000'
	for rate in $rates; do
		countersink -q -F $rate -o async.pb.gz -- "$python" "$FRAMES/work.py" run 1 2 >out 2>err </dev/null
		is "$?:$(cat out err)" "0:done" "CPython $version ($python) at $rate Hz: output and status are as without countersink"
		python3 -B "$FRAMES/steps.py" steps.json async.pb.gz >out 2>&1
		is "$?:$(grep -c '^[0-9]* stacks judged' out)" 0:1 \
			"CPython $version ($python) at $rate Hz: calls are legal and stacks are whole: $(head -n 1 out)"
	done
done <pythons

# Stacks of greenlets are exchanged below the interpreter's eyes: native ones end early, those of Python are whole.
while read -r python version; do
	"$python" -c 'import greenlet' 2>/dev/null || continue
	echo "$python" >with_greenlet
	"$python" "$FRAMES/greenlets.py" trace steps.json >out 2>err </dev/null
	is "$?:$(cat out err)" "0:done" "greenlet in CPython $version ($python): the program writes down its calls"
	for rate in 1000 10000; do
		countersink -q -F $rate -o async.pb.gz -- "$python" "$FRAMES/greenlets.py" run 1 >out 2>err </dev/null
		is "$?:$(cat out err)" "0:done" "greenlet in CPython $version ($python) at $rate Hz: output and status are as without countersink"
		python3 -B "$FRAMES/steps.py" steps.json async.pb.gz >out 2>&1
		is "$?:$(grep -c '^[0-9]* stacks judged' out)" 0:1 \
			"greenlet in CPython $version ($python) at $rate Hz: calls are legal and stacks are whole: $(head -n 1 out)"
	done
done <pythons
[ -e with_greenlet ] || skip "calls in samples of greenlets are legal" "greenlet (python3-greenlet) is not installed"

# At the interpreter's end another thread's frames are freed while it runs C code below them.
while read -r python version; do
	countersink -q -F 5000 -o async.pb.gz -- "$python" "$FRAMES/ending.py" >out 2>err </dev/null
	is "$?:$(cat out err)" "0:done" "CPython $version ($python) ends while a thread runs: output and status are as without countersink"
done <pythons

calls() { # NAME COMMAND PROGRAM
	for rate in 1000 20000; do
		countersink -q -F $rate -o async.pb.gz -- "$2" "$FRAMES/$3" 1 >out 2>err </dev/null
		is "$?:$(cat out err)" "0:done" "$1 at $rate Hz: output and status are as without countersink"
		python3 -B "$FRAMES/calls.py" "$FRAMES/$3.calls" async.pb.gz >out 2>&1
		is "$?:$(grep -c '^[0-9]* stacks judged' out)" 0:1 "$1 at $rate Hz: calls are legal and stacks are whole: $(head -n 1 out)"
	done
}
if [ "$(php -r 'echo PHP_MAJOR_VERSION . "." . PHP_MINOR_VERSION . PHP_ZTS;' 2>/dev/null)" = 8.20 ]; then
	calls 'PHP 8.2' php work.php
else
	skip "calls in samples of PHP 8.2 are legal" "PHP 8.2 without ZTS is not installed"
fi
if [ "$(perl -MConfig -e 'print "$Config{PERL_VERSION} $Config{useithreads}"')" = '36 define' ]; then
	calls 'Perl 5.36' perl work.pl
else
	skip "calls in samples of Perl 5.36 are legal" "Perl 5.36 with threads is not installed"
fi
if [ "$(ruby -rrbconfig -e 'print RUBY_VERSION[0, 4], RbConfig::CONFIG["ENABLE_SHARED"], RUBY_PLATFORM[0, 6]' 2>/dev/null)" = 3.1.yesx86_64 ]; then
	RUBYOPT=--disable=gems
	export RUBYOPT
	calls 'Ruby 3.1' ruby work.rb
else
	skip "calls in samples of Ruby 3.1 are legal" "Ruby 3.1 for x86-64, as a shared library, is not installed"
fi
done_testing

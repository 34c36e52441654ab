#!/bin/sh
# What works for Python works for PHP, Perl and Ruby: shares, environment alone, --frames, reports, exports, diff and the
# gate, forked and executed children, threads, time off the CPU, phases, and functions at reused addresses.
. "$(dirname "$0")/lib.sh"

FRAMES=$SRC/tests/frames
have python3 || skip_all "python3 is not installed"
PYTHON=$(python3 -c 'import sys; print(sys.executable)') # python3 itself may be a script that chooses one

functions_like() { # PROFILE REGEX TITLE: a row of the report of all functions
	like "$(countersink report --all "$1" 2>&1)" " $2\$" "$3"
}

# The CPU time of three() and of what it calls, of that of three() and one(): 75 %, within 2 %. Timers may take too few samples
# for that: then within three times the deviation that is expected of as many.
has_shares() { # NAME PROFILE
	nr=$(countersink export -f folded -e samples "$2" | awk '{ nr += $NF } END { print nr }')
	is "$(countersink export -f folded "$2" | awk -v nr="$nr" '
		/[;:]three[ ;]/ { three += $NF }
		/[;:]one[ ;]/ { one += $NF }
		END {
			s = one ? 100 * three / (three + one) : 0
			limit = nr ? 130 / sqrt(nr) : 2
			if (limit < 2) limit = 2
			print (s > 75 - limit && s < 75 + limit ? 75 : s)
		}')" 75 \
		"$1: functions of cost 3 : 1 have these shares, within 2 %"
}

countersink -q -F 5000 -o python.pb.gz -- "$PYTHON" "$FRAMES/shares.py" 4000 >out 2>err
is "$?:$(cat out err)" 0:ready "Python: the program runs as without countersink"
has_shares Python python.pb.gz
"$FRAMES/pythons" >pythons
while read -r python version; do
	countersink -q -F 2000 -o made.pb.gz -- "$python" "$FRAMES/made.py" run 200 >out 2>&1
	is "$?:$(cat out)" 0: "CPython $version ($python): a program that evaluates functions has its output and status"
	like "$(python3 -B "$FRAMES/made.py" judge made.pb.gz)" '^(1[0-9][0-9]|200) functions, [0-9]+ samples, 0 wrong$' \
		"CPython $version ($python): functions that are evaluated at reused addresses have their own names, files and lines"
	case $version in 3.[67]) continue ;; esac # code objects cannot be copied under another name
	countersink -q -F 5000 -o made.pb.gz -- "$python" "$FRAMES/made.py" nested 100 >out 2>&1
	like "$(python3 -B "$FRAMES/made.py" judge made.pb.gz)" '^(9[5-9]|100) nested functions$' \
		"CPython $version ($python): nested functions that differ in their names alone are distinguished at reused addresses"
done <pythons

# ---- one language

reports() { # profile.pb.gz, of shares.$ending
	countersink report --all --by line profile.pb.gz >out 2>&1
	like "$(cat out)" " shares\.$ending:$loop $three\$" "$name: report --by line has its lines"
	like "$(cat out)" '^next: countersink report --by line --fold-native profile\.pb\.gz$' "$name: report --by line suggests --fold-native"
	countersink report --by line --fold-native profile.pb.gz >out 2>&1
	like "$(cat out)" "^ +[1-9][0-9]\.[0-9]+ .* shares\.$ending:[0-9]+ $three\$" \
		"$name: report --by line --fold-native adds what the interpreter does to the line it does it for"
	countersink report profile.pb.gz >out 2>&1
	like "$(cat out)" '^next: countersink report --fold-native profile\.pb\.gz$' "$name: the report suggests --fold-native"
	countersink report --fold-native profile.pb.gz >out 2>&1
	# Of the program's own functions: what starts before them takes long on some machines. What the interpreter does for the function
	# is in its row, and not below it.
	like "$(awk -v name="$three" '$7 ~ /^shares\./ { all += $1 } $7 ~ /^shares\./ && $8 == name { own += $1; total += $4 }
		END { printf "%.3f %s\n", own / (all + !all), (own > 0.95 * total ? "folded" : "of " total) }' out)" \
		'^0\.(6[89]|7[0-9])[0-9] folded$' "$name: report --fold-native adds what the interpreter does to the function it does it for"
	unlike "$(cat out)" '^next: .*--fold-native' "$name: report --fold-native does not suggest itself"
	countersink report --annotate "$three" profile.pb.gz >out 2>&1
	like "$(cat out)" "^ +[0-9.]+ +[0-9.]+ +$loop " "$name: --annotate shows the line that costs, with its weight"
	countersink export -f callgrind profile.pb.gz >out
	like "$(grep "=" out)" "^c?fn=(\([0-9]+\) )?$three\$" "$name: callgrind has the function"
	like "$(grep "=" out)" "^f[ile]=(\([0-9]+\) )?.*/shares\.$ending\$" "$name: callgrind has its file"
	like "$(countersink export -f speedscope profile.pb.gz)" "\"name\":\"$three\",\"file\":\"[^\"]*/shares\.$ending\",\"line\":${first}[,}]" \
		"$name: speedscope has the function with its file and line"
	countersink export -f firefox profile.pb.gz >firefox.json
	like "$("$PYTHON" - firefox.json <<-'END'
		import json, sys
		p = json.load(open(sys.argv[1]))
		texts, sources = p["shared"]["stringArray"], p["shared"]["sources"]
		f = p["threads"][0]["funcTable"]
		for name, source, line in zip(f["name"], f["source"], f["lineNumber"]):
		    print(texts[name], source is not None and texts[sources["filename"][source]].split("/")[-1], line)
		END
	)" "^$three shares\.$ending $first\$" "$name: the Firefox Profiler's format has the function with its file and line"
	countersink export -f perf.data -o shares.perf.data profile.pb.gz
	if have perf; then
		like "$(perf report --stdio --no-children -g none -s sym -i shares.perf.data 2>/dev/null)" " $three at shares\.$ending:$first *\$" \
			"$name: perf names the function in our perf.data, with its file and first line"
		unlike "$(perf script -i shares.perf.data 2>/dev/null)" " at shares\.$ending:0" "$name: in our perf.data no function is at line 0"
	else
		skip "$name: perf names the function in our perf.data" "perf is not installed"
		skip "$name: in our perf.data no function is at line 0" "perf is not installed"
	fi
	if have go; then
		like "$(go tool pprof -list "^$three\$" profile.pb.gz 2>/dev/null)" " [0-9.]+m?s +[0-9.]+m?s +$loop:" "$name: pprof lists the function's lines with their weights"
	else
		skip "$name: pprof lists the function's lines with their weights" "go is not installed"
	fi
	countersink export -o shares.html profile.pb.gz
	like "$(cat shares.html)" "\"$three\"" "$name: the page has the function"
}

# At its default rate of false positives a gate blames an unchanged function in up to one of 100 gates, as it promises: then one CI
# run in 20 may fail. At a hundredth of that, one in 2,000; functions have to be named by stronger evidence, too.
rate=--alpha=0.01%

versions() { # a version whose three() costs twice as much, a line further down
	fold=
	[ "$name" != Perl ] || fold=--fold-native # its operations are functions of the interpreter: three() itself has little
	mkdir -p old new
	cp "$FRAMES/shares.$ending" old/
	sed "s/3 \* /6 * /; ${first}i \\
# the next version
" "$FRAMES/shares.$ending" >"new/shares.$ending"
	countersink -q -F 5000 -o new.pb.gz -- "$command" "new/shares.$ending" "$rounds" >out 2>&1
	countersink diff --all profile.pb.gz new.pb.gz >out 2>&1
	like "$(cat out)" "^ *\+.* shares\.$ending +$three\$" "$name: diff names the function that costs more"
	countersink gate -F 5000 --runs 24 $rate $fold --json gate.json --vs "$command old/shares.$ending $((rounds / 40))" -- "$command" "new/shares.$ending" $((rounds / 40)) >out 2>err
	is $? 3 "$name: the gate fails when a function got slower"
	like "$(cat out)" "^not ok [0-9]+ - $three at shares\.$ending:$((first + 1)) regressed: " "$name: the gate names the function, with file and line"
	is "$(grep -cE "^not ok .*$one at " out)" 0 "$name: the gate blames no other function"
	[ ! "$fold" ] || unlike "$(cat out)" "ok [0-9]+ - Perl_pp_" "$name: with --fold-native, the interpreter's functions are not judged"
	is "$("$PYTHON" - gate.json "$three" <<-'END'
		import json, sys
		gate = json.load(open(sys.argv[1]))
		at = [row["function"] for row in gate["rows"] if "function" in row].index(sys.argv[2])
		print(*sorted({(run["side"], run["functions"][at] > 0) for run in gate["measured"]}))
		END
	)" "('new', True) ('old', True)" "$name: JSON has what the function weighs in the runs of both sides"
	drift=$(sed -n 's/.*machine drift: \(unknown\).*/\1/p; s/.*machine drift (from unchanged functions): .*CI \([-+0-9.]*\) to .*/\1/p' out)
	case $drift in
	'') low=999 ;;
	unknown) low=0 ;;
	*) low=$(printf '%.0f' "$drift") ;;
	esac
	ok "$name: the gate does not take a slower function for a slower machine (drift from ${drift:-no figure} %)" test "$low" -lt 30
	[ ! "$fold" ] || folded
	[ "$name" = PHP ] || return
	countersink gate -F 5000 --runs 24 $rate --vs "$command new/shares.$ending $((rounds / 40))" -- "$command" "old/shares.$ending" $((rounds / 40)) >out 2>err
	is "$(grep -cE "^not ok .* (in|at) " out)" 0 "$name: the gate blames no function when another one got faster"
	like "$(cat out)" "^ok [0-9]+ - $three at shares\.$ending:$first improved: " "$name: the gate names the function that got faster"
}

# The same of a baseline, whose runs have all frames, and whose gate has the option by the environment; and of a suite.
folded() {
	gate="countersink gate -F 5000 $rate"
	$gate --runs 8 -b whole.pb.gz --update-baseline -- perl old/shares.pl 22 >out 2>err
	COUNTERSINK_FOLD_NATIVE=1 $gate --runs 8 --any-environment -b whole.pb.gz -- perl new/shares.pl 22 >out 2>err
	like "$(cat out)" '^# rules: .*, native code in the interpreted function' "Perl: the environment's --fold-native is in the rules"
	like "$(sed -n "/ok [0-9]* - $three at /,/^  share:/p" out)" '^  share: "[78][0-9]\.[0-9] % instead of [67][0-9]\.' "Perl: both sides of a baseline are folded"
	unlike "$(cat out)" "ok [0-9]+ - Perl_pp_" "Perl: of a baseline, too, no function of the interpreter is judged"
	$gate --fold-native --suite=lines --list 'echo one' --history h.jsonl --anchor v1 --commit c1 --max-time 10 \
		--vs 'perl old/shares.pl 22' -- perl new/shares.pl 22 >out 2>err
	like "$(cat out)" "$three at shares\.pl:.* \+[0-9.]+ %" "Perl: a suite's cases are folded"
	unlike "$(cat out)" "Perl_pp_" "Perl: of a suite, too, no function of the interpreter is judged"
	like "$(cat h.jsonl)" '"fold_native":true' "Perl: a history has that its functions were folded"
}

environment() {
	LD_PRELOAD=$ENTRY COUNTERSINK_OUTPUT=$TMP/alone.pb.gz "$command" "$FRAMES/shares.$ending" $((rounds / 5)) >out 2>err
	is "$?:$(cat out)" 0:done "$name, environment alone: the program has its output and status"
	functions_like alone.pb.gz "shares\.$ending +$three" "$name, environment alone: functions are named"
	countersink -q -F 5000 --frames=native -o native.pb.gz -- "$command" "$FRAMES/shares.$ending" $((rounds / 5)) >out 2>&1
	is "$(countersink report --all native.pb.gz 2>&1 | grep -c "shares\.$ending")" 0 "$name, --frames=native: no functions of the language are reported"
	countersink -q -F 5000 --frames=both -o both.pb.gz -- "$command" "$FRAMES/shares.$ending" $((rounds * 2 / 5)) >out 2>&1
	is "$(countersink export -f folded both.pb.gz | awk -v evaluator=";$evaluator" '
		/[;:]three[ ;]/ { nr += $NF; if (index($0, evaluator)) with += $NF }
		END { print (nr && with > .9 * nr ? "evaluator" : with "/" nr) }')" evaluator "$name, --frames=both: the evaluator is beside its functions"
	is "$(countersink export -f folded profile.pb.gz | awk -v evaluator=";$evaluator" '
		/[;:]three[ ;]/ { nr += $NF; if (index($0, evaluator)) with += $NF }
		END { print (nr && with < .1 * nr ? "none" : with "/" nr) }')" none "$name: by default the evaluator is not beside its functions"
}

children() {
	"$command" "$FRAMES/jobs.$ending" children >plain 2>&1
	countersink -q -o children.pb.gz -- "$command" "$FRAMES/jobs.$ending" children >out 2>&1
	is "$?:$(cat out)" "0:$(cat plain)" "$name: a program with children has its output and status"
	functions_like children.pb.gz "jobs\.$ending +${package}in_child" "$name: a forked child's functions are named"
	countersink export -f folded children.pb.gz >out
	is "$(grep -c "${package}in_child;.*${package}in_program" out)" 0 "$name: a program that replaces a child begins stacks of its own"
	functions_like children.pb.gz "jobs\.$ending +${package}in_program" "$name: functions of executed programs are named"
}

at_least_100_ms() { # FUNCTION: whether a line of this function has 0.1 s or more with what it calls
	awk -v function_name="$1" '$NF == function_name && $(NF - 1) ~ /:[0-9]+$/ { ms = $5 * ($6 == "s" ? 1000 : $6 == "ms"); if (ms > 100) found = 1 }
		END { exit !found }' lines
}
blocks() { # FUNCTION...: those that block
	countersink --off-cpu -o off.pb.gz -- "$command" "$FRAMES/jobs.$ending" blocks >out 2>err
	is "$?:$(cat out)" "0:" "$name, --off-cpu: a program that blocks has its output and status"
	if grep -q 'off-cpu is not counted' err; then
		skip "$name, --off-cpu: functions that block are named, phases have their time" "switches cannot be sampled here"
		return
	fi
	countersink report --all --by line -e off-cpu off.pb.gz >lines 2>&1
	for blocked; do
		ok "$name, --off-cpu: a line of $blocked() is named" at_least_100_ms "$package$blocked"
	done
	[ "$name" = Perl ] || like "$(countersink report --by phase -e off-cpu off.pb.gz 2>&1)" ' waiting$' \
		"$name, --off-cpu: a phase that the program begins has the time that it waits for a child"
}

# Two modules in a directory with a long name, whose code outside of subs is alike.
long_paths() {
	long=$(printf '%080d' 0)
	mkdir -p "$long"
	for module in One Two; do
		printf 'package %s;\nsub go { for my $n (1 .. 300000) { my $m = $n %% 7; eval { $m += $n %% 5; $m += $n %% 3; }; } }\n1;\n' $module >"$long/$module.pm"
	done
	countersink -q -F 2000 -o long.pb.gz -- perl -I "$PWD/$long" -e 'use One; use Two; One::go(); Two::go();' >out 2>&1
	is "$?:$(cat out)" 0: "Perl: a program with files in a long directory has its output and status"
	countersink report --all long.pb.gz >out 2>&1
	like "$(cat out)" ' One\.pm +\(eval\)$' "Perl: (eval) of the first module has its file"
	like "$(cat out)" ' Two\.pm +\(eval\)$' "Perl: (eval) of another module whose path begins alike has its own"
}

# Deeper than what is followed of a delegation: stacks that end early rather than some of the middle missing.
delegation() {
	cat >delegate.php <<-'END'
		<?php
		function busy() { $r = 0; for ($i = 0; $i < 30000; $i++) $r += $i % 7; return $r; }
		function gen($n) { if ($n > 0) { yield from gen($n - 1); } else { for ($k = 0; $k < 300; $k++) { busy(); yield $k; } } }
		function outermost($n) { $s = 0; foreach (gen($n) as $v) $s += $v; return $s; }
		outermost((int)$argv[1]);
	END
	countersink -q -F 2000 -o some.pb.gz -- php delegate.php 50 >out 2>&1
	unlike "$(countersink report some.pb.gz 2>&1)" 'end where memory holds no frame' "PHP: a delegation of 50 generators: no stack ends early"
	is "$(countersink export -f folded some.pb.gz | awk '/;busy[ ;]/ { nr = gsub(/;gen/, ""); if (nr != 51) wrong++ } END { print wrong + 0 }')" 0 \
		"PHP: each of the 50 generators is in each stack"
	countersink -q -F 2000 -o many.pb.gz -- php delegate.php 100 >out 2>&1
	like "$(countersink report many.pb.gz 2>&1)" '^  lost +[0-9]+ stacks that end where memory holds no frame' \
		"PHP: of a delegation of 100 generators stacks end early, and the report says so"
}

made() {
	countersink -q -F 2000 -o made.pb.gz -- "$command" "$FRAMES/jobs.$ending" made 1000 >out 2>&1
	is "$?:$(cat out)" 0: "$name: a program that evaluates functions has its output and status"
	like "$(python3 -B "$FRAMES/made.py" judge made.pb.gz)" '^([1-9][0-9]{2}|1000) functions, [0-9]+ samples, 0 wrong$' \
		"$name: functions that are evaluated at reused addresses have their own names, files and lines"
}

# NAME COMMAND ENDING ROUNDS PACKAGE FIRST LOOP EVALUATOR: three() begins in line FIRST, and its loop in line LOOP.
language() {
	name=$1 command=$2 ending=$3 rounds=$4 package=$5 first=$6 loop=$7 evaluator=$8
	three=${package}three one=${package}one
	countersink -q -F 5000 -o profile.pb.gz -- "$command" "$FRAMES/shares.$ending" "$rounds" >out 2>err
	is "$?:$(cat out err)" 0:done "$name: the program runs as without countersink"
	has_shares "$name" profile.pb.gz
	reports
	versions
	environment
	children
	made
}

# ---- each language

if [ "$(php -r 'echo PHP_MAJOR_VERSION . "." . PHP_MINOR_VERSION . PHP_ZTS . class_exists("FFI") . function_exists("pcntl_fork");' 2>/dev/null)" = 8.2011 ]; then
	language PHP php php 3000 '' 3 6 execute_ex
	blocks sleeps waits reads
	delegation
	if [ "$(php -r 'echo ini_get("pcre.jit");')" = 1 ]; then
		cat >pattern.php <<-'END'
			<?php
			function matches($text) { return preg_match('/(?:a|b|ab)*?[xyz]d/', $text); }
			for ($i = 0; $i < 30000; $i++) matches(str_repeat('abac', 100) . 'd');
		END
		countersink -q -o pattern.pb.gz -- php pattern.php >out 2>&1
		countersink export -f folded pattern.pb.gz >out
		like "$(cat out)" '\{main\};matches;preg_match;\[no symbol\] ' "PHP: the code that patterns are compiled to is below its caller"
	else
		skip "PHP: the code that patterns are compiled to is below its caller" "PHP compiles no patterns here"
	fi
else
	skip "PHP" "PHP 8.2 with FFI and pcntl, without ZTS, is not installed"
fi
if [ "$(perl -MConfig -e 'print "$Config{PERL_VERSION} $Config{useithreads}"')" = '36 define' ]; then
	language Perl perl pl 900 main:: 6 8 Perl_runops_standard
	# Most of the time is in functions of the interpreter; profile.pb.gz is of the same program.
	countersink --all --fold-native -F 2000 -o kept.folded -- perl "$FRAMES/shares.pl" 200 >out 2>err
	like "$(cat err)" ' shares\.pl +main::three$' "run --fold-native: the report has a function of Perl"
	unlike "$(cat err)" ' Perl_pp_|^next: .*--fold-native' "run --fold-native: the report has no function of the interpreter that it called"
	is "$(grep -c Perl_pp_ kept.folded)" 0 "run --fold-native: nor has the other format that it leaves"
	like "$(countersink report --all kept.folded.pb.gz)" ' Perl_pp_' "run --fold-native: the profile keeps the interpreter's functions"
	COUNTERSINK_FOLD_NATIVE=1 countersink --all -F 2000 -o kept.pb.gz -- perl "$FRAMES/shares.pl" 200 >out 2>err
	unlike "$(cat err)" ' Perl_pp_' "COUNTERSINK_FOLD_NATIVE is --fold-native"
	countersink export --fold-native -f folded profile.pb.gz >out
	is "$(grep -c main::three out | sed 's/[1-9].*/some/'):$(grep -c Perl_pp_ out)" some:0 \
		"export --fold-native: functions of Perl, and none of the interpreter that they called"
	countersink export --fold-native -f pprof -o exported.pb.gz profile.pb.gz
	unlike "$(countersink report --all exported.pb.gz)" ' Perl_pp_' "export --fold-native -f pprof: a profile without them"
	countersink diff --all --fold-native kept.pb.gz profile.pb.gz >out 2>&1
	like "$(cat out)" ' main::three$' "diff --fold-native has a function of Perl"
	unlike "$(cat out)" ' Perl_pp_' "diff --fold-native has no function of the interpreter that it called"
	blocks sleeps waits reads locks
	long_paths
	perl -e 'print "sub f$_ { return \$_[0] + $_ }\n" for 1 .. 20000' >large.pl
	countersink -q -F 5000 -o large.pb.gz -- perl large.pl >out 2>&1
	countersink export -f folded large.pb.gz >out
	like "$(cat out)" ';perl_parse;' "Perl: the time to compile a program is reported"
	# At its end the program runs for a moment, below perl_run.
	is "$(grep -F '(main)' out | grep -vc ';perl_run;')" 0 "Perl: no frame is reported where nothing runs, as in the compiler"
else
	skip "Perl" "Perl 5.36 with threads is not installed"
fi
if [ "$(ruby -rrbconfig -rfiddle -e 'print RUBY_VERSION[0, 4], RbConfig::CONFIG["ENABLE_SHARED"], RUBY_PLATFORM[0, 6]' 2>/dev/null)" = 3.1.yesx86_64 ]; then
	language Ruby ruby rb 1200 '' 2 4 rb_vm_exec
	blocks sleeps waits reads locks
	countersink -q -o threads.pb.gz -- ruby "$FRAMES/jobs.rb" threads >out 2>&1
	countersink report --by thread threads.pb.gz >out 2>&1
	countersink export -f folded threads.pb.gz >out
	like "$(cat out)" 'block in threads;in_first;burn ' "Ruby: a thread's functions are named"
	is "$(grep -c 'in_first.*in_second\|in_second.*in_first' out)" 0 "Ruby: no thread has functions of another one"
else
	skip "Ruby" "Ruby 3.1 for x86-64, as a shared library, is not installed"
fi
done_testing

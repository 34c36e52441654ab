#!/bin/sh
# Code that just-in-time compilers register by GDB's JIT interface: names, callers by unwind tables or frame pointers, lines;
# while it comes and goes; lists and images that are damaged; a forked child; beside a map for perf.
. "$(dirname "$0")/lib.sh"

made() { # PROFILE OPTIONS... -- ARGUMENTS...: run made_jit; its folded stacks are in `folded`
	file=$1
	shift
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	# shellcheck disable=SC2086
	countersink -q -o "$file" $options -- "${MADE:-$TARGETS/made_jit}" "$@" >out 2>err
	status=$?
	countersink export -f folded "$file" >folded
}

share() { # REGEX: of the weight of all code that was made at run time, the per cent that match
	awk -v regex="$1" '/(^|;)(heavy|light|even|odd|passing|\[no symbol\]) / { all += $NF; if ($0 ~ regex) of += $NF } END { print all ? int(100 * of / all + 0.5) : -1 }' folded
}

is_shared() { # WHAT: heavy and light as 3 to 1, and nothing else of weight
	heavy=$(share '(^|;)heavy ') light=$(share '(^|;)light ')
	ok "$1: heavy and light took 3 to 1 ($heavy to $light per cent)" \
		test "$heavy" -ge 65 -a "$heavy" -le 85 -a "$light" -ge 15 -a "$light" -le 35
}

# ---- names and callers

made shares.pb.gz -F 5000 -- shares 300
is "$status:$(cat out err)" "0:done" "a program that registers code runs as without countersink"
is_shared "a list that the program does not export"
like "$(countersink report shares.pb.gz)" '\[jit\]  *heavy$' "the module is [jit]"
is "$(grep -E ';(heavy|light) ' folded | grep -vc ';main;run_both;')" 0 "callers are found by frame pointers"
# Without rights, where the kernel's time goes is noted in each report.
report() { countersink report "$1" | grep -v '^  note .* in the kernel .*(perf_event_paranoid)$'; }
unlike "$(report shares.pb.gz)" '^  (note|warning|lost)' "the report has no note of losses or of code that is not read"

if have cc; then
	cc -O2 -rdynamic -I "$SRC" -o exported "$SRC/tests/targets/made_jit.c" -lpthread
	MADE=./exported made exported.pb.gz -F 5000 -- shares 300
	is_shared "a list that the program exports"

	# Of a large file the symbol table is read by housekeeping, and not in the first sample.
	cat >many.c <<-'END'
		__asm__(".macro one\n.set a_name_of_some_length_for_each_of_three_thousand_symbols_\\@, 4096\n.endm\n.rept 3000\none\n.endr\n");
		void *gHotSpotVMStructs[1];
	END
	cc -O2 -I "$SRC" -o large "$SRC/tests/targets/made_jit.c" many.c -lpthread
	MADE=./large made large.pb.gz -F 2000 -- shares 2000
	is_shared "a list in a large symbol table"
	echo 'void *v8dbg_SmiTagMask[1];' >>many.c
	for machine in gHotSpotVMStructs v8dbg_SmiTagMask; do
		if cc -O2 -I "$SRC" -Wl,--export-dynamic-symbol=$machine -o machine "$SRC/tests/targets/made_jit.c" many.c -lpthread 2>/dev/null; then
			MADE=./machine made machine.pb.gz -F 2000 -- shares 1000
			is "$status:$(cat out err)" "0:done" "a virtual machine that exports $machine runs as without countersink"
			unlike "$(cat folded)" ';(heavy|light) ' "the large symbol table of a virtual machine that exports $machine is not searched"
		else
			skip "the large symbol table of a virtual machine is not searched" "the linker does not export a symbol by name"
		fi
	done
else
	skip "a list that the program exports" "no compiler is installed"
	skip "a list in a large symbol table" "no compiler is installed"
fi
made fp.pb.gz -F 5000 --unwind=fp -- shares 300
is_shared "a list with --unwind=fp"
made none.pb.gz -F 5000 --unwind=none -- shares 300
like "$(countersink report none.pb.gz)" '\[jit\]  *heavy$' "a list with --unwind=none: its functions have names"
made timer.pb.gz --engine=timer -- shares 2000 # a sample every 4 ms
is_shared "a list with --engine=timer"

if [ "$(uname -m)" = x86_64 ]; then
	made tables.pb.gz -F 5000 -- tables 300
	is_shared "code without frame pointers, whose image has unwind tables"
	cut=$(grep -E '(^|;)(heavy|light) ' folded | grep -v ';main;run_both;' | awk '{ of += $NF } END { print int(of / 1e6) }')
	ok "callers of code without frame pointers are found ($cut of 300 ms without them)" test "$cut" -le 6
else
	skip "code without frame pointers" "the program has some for x86-64"
fi

# ---- code that comes and goes

not_mixed() {
	is "$(grep -cE 'run_even;odd|run_odd;(even|passing)|come_and_go;run_even;(even|odd)' folded)" 0 "$1: no code has the name of other code that was there"
}

made reuse.pb.gz -F 20000 -- reuse 500
is "$status:$(cat out err)" "0:done" "one place for code in turn: the program runs as without countersink"
not_mixed "one place for code in turn"
even=$(share ';run_even;even ') odd=$(share ';run_odd;odd ')
ok "one place for code in turn: both functions have their time ($even and $odd per cent)" \
	test "$even" -ge 10 -a "$odd" -ge 35 -a "$odd" -ge $((2 * even))

made threads.pb.gz -F 20000 -- threads 300 4
is "$status:$(cat out err)" "0:done" "four threads that make and remove code: the program runs as without countersink"
not_mixed "four threads"
like "$(cat folded)" ';run_even;even ' "four threads: functions have names"
like "$(cat folded)" ';run_odd;odd ' "four threads: at each place"

made many.pb.gz -F 2000 -- many 300 2000
like "$(cat folded)" ';run_both;made_0 ' "two thousand images at a time: the first one has a name"
like "$(cat folded)" ';run_both;made_1999 ' "two thousand images at a time: the last one has a name"

made fork.pb.gz -F 5000 -- fork 200
is_shared "in a process and its forked child"
is "$(countersink report --by process --focus '^heavy$' fork.pb.gz | grep -cE ' made_jit [0-9]+$')" 2 "a process and its forked child both have the function"

# ---- what is not named

made empty.pb.gz -F 2000 -- empty 200
unlike "$(report empty.pb.gz)" '\[jit\]|^  (note|warning)' "an empty list: nothing is named, and nothing reported"
made version.pb.gz -F 2000 -- version 200
like "$(countersink report version.pb.gz)" 'note .*its list for debuggers is not of version 1$' "a list of another version is reported"
unlike "$(cat folded)" ';(heavy|light) ' "a list of another version: its code has no names"
for how in damaged ring cut; do
	made "$how.pb.gz" -F 5000 -- "$how" 200
	is "$status:$(cat out err)" "0:done" "$how: the program runs as without countersink"
	[ "$how" != ring ] || is_shared "$how"
	[ "$how" != damaged ] || unlike "$(cat folded)" ';(heavy|light) ' "$how: no names are made of it"
	[ "$how" != cut ] || unlike "$(cat folded)" ';heavy ' "$how: what is gone has no name"
done

made map.pb.gz -F 5000 -- map 200
rm -f "/tmp/perf-$(cut -d' ' -f1 out).map"
like "$(cat folded)" ';run_both;heavy ' "beside a map for perf: a registered function has its name from there"
like "$(cat folded)" ';run_both;mapped_light ' "beside a map for perf: a function of the map alone has its name from there"

# ---- LLVM

countersink -q -F 2000 -o llvm.pb.gz -- "$TARGETS/llvm_jit" 500 >out 2>err
status=$?
if [ "$status" = 77 ]; then
	skip "code that LLVM compiles" "libLLVM-14.so.1 is not installed"
else
	is "$status:$(cat out err)" "0:done" "LLVM's compiler runs as without countersink"
	countersink export -f folded llvm.pb.gz >folded
	is_shared "LLVM"
	is "$(grep -E ';(heavy|light) ' folded | grep -vc ';main;run_jit;')" 0 "LLVM: callers are found by unwind tables"
	lines=$(countersink report --by line llvm.pb.gz)
	like "$lines" '\[jit\] .*made\.c:12 heavy$' "LLVM: lines of the image's debug information"
	like "$lines" '\[jit\] .*made\.c:22 light$' "LLVM: of each function"
fi
done_testing

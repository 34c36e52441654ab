#!/bin/bash
# Stacks of programs without unwind tables, and of 32-bit ones, sampled from outside. Which stacks are right is known:
# tests/targets/known_calls.c.
. "$(dirname "$0")/lib.sh"

if [ "$(uname -m)" != x86_64 ]; then
	skip "stacks without unwind tables" "instructions of x86 are followed"
	done_testing
	exit
fi
export COUNTERSINK=countersink CC_SOURCE=$SRC/tests/targets/known_calls.c KNOWN_SECONDS=0.5
judge() { # BUILD NAME
	"$SRC/tests/attach/known_calls" "$1" >figures 2>wrong
	read -r _ figures <figures
	if [ "${figures%% *}" = skip ]; then
		skip "$2" "${figures#skip }"
		return
	fi
	# shellcheck disable=SC2086
	set -- "$2" $figures
	ok "$1: $3 % of the stacks are chains of calls that the program makes" awk "BEGIN { exit !($3 >= 98.5) }"
	ok "$1: $5 % begin where C libraries start programs and threads" awk "BEGIN { exit !($5 >= 98) }"
	ok "$1: $7 % are whole" awk "BEGIN { exit !($7 >= 98) }"
	sed 's/^/# /' wrong
}
judge gcc-static "tables of gcc"
judge gcc-bare "no tables, by gcc -O2"
judge gcc-bare-Os "no tables, by gcc -Os"
judge clang-bare "no tables, by clang -O2"
judge musl-static "static musl, whose library has no tables"
judge musl-bare-Os "static musl, nothing of which has tables"
judge musl-dynamic "musl's shared library"
judge m32-static "32-bit, static"
judge m32-dynamic "32-bit, shared libraries"
judge m32-bare "32-bit, the program without tables"
judge m32-clang-bare "32-bit, by clang, without tables"

# ---- what a report says of them
if have musl-gcc && musl-gcc -O2 -static -s -fno-asynchronous-unwind-tables -o stripped -w -pthread "$CC_SOURCE" 2>/dev/null ||
	gcc -O2 -static -s -fno-asynchronous-unwind-tables -w -pthread -o stripped "$CC_SOURCE"; then
	countersink attach -F 2000 -o s.pb.gz -- ./stripped 0.5 2>err
	is $? 0 "a stripped program without tables runs"
	like "$(countersink report s.pb.gz 2>&1)" 'note +[0-9,]+ stacks lead through code without unwind tables; callers there were found by its instructions' \
		"the report says that callers were found by instructions"
	unlike "$(countersink report s.pb.gz 2>&1)" 'lost +.*stacks' "a stripped program without tables: no stack is lost"
fi
cp stripped goes
countersink attach -F 2000 -o g.pb.gz -- sh -c './goes 0.5 & while kill -0 $! 2>/dev/null && ! grep -q goes /proc/$!/comm; do :; done
	rm goes; wait' 2>err
is $? 0 "a program that is deleted while it runs is sampled"

# ---- names of stripped 32-bit programs are those of where their functions begin
if gcc -m32 -O2 -static -s -w -pthread -o m32_stripped "$CC_SOURCE" 2>/dev/null && ./m32_stripped --calls >/dev/null 2>&1; then
	countersink attach -F 2000 -o t.pb.gz -- ./m32_stripped 0.5 2>err
	like "$(countersink report t.pb.gz 2>&1)" '\[m32_stripped\+0x[0-9a-f]+\]' "functions of a stripped 32-bit program are apart"
	like "$(countersink report --csv t.pb.gz | grep -c 'm32_stripped+0x')" '^[0-9][0-9]' "ten of them at least"
else
	skip "a stripped 32-bit program" "gcc -m32 has no C library here"
fi

done_testing

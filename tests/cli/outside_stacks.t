#!/bin/bash
# Stacks of programs that nothing can be injected into, sampled from outside.
. "$(dirname "$0")/lib.sh"

# rooted PROFILE REGEX: how much of what is sampled has stacks whose outermost function matches, in percent.
rooted() {
	countersink export -o rooted.folded "$1"
	awk -v regex="$2" '!/^\[(not sampled|not counted|kernel: exits and switches)\]/ { all += $NF; split($0, frames, ";"); if (frames[1] ~ regex) some += $NF }
		END { print int(some * 1000 / all) / 10 }' rooted.folded
}
at_least() { # PERCENT LEAST NAME
	ok "$3: $1 %" awk "BEGIN { exit !($1 >= $2) }"
}
# whole PROFILE LEAST NAME: how many of the stacks end at none of the ways that the report names as lost.
whole() {
	countersink report "$1" >whole.out 2>&1
	at_least "$(awk '/ samples by / { for (i = 2; i <= NF; i++) if ($i == "samples") { all = $(i - 1); gsub(",", "", all) } }
		/^ *lost / { n = split($0, parts, /;|lost/); for (i = 1; i <= n; i++) if (match(parts[i], /[0-9,]+ stacks/)) {
			text = substr(parts[i], RSTART, RLENGTH); gsub(/[^0-9]/, "", text); broken += text } }
		END { print int((all - broken) * 1000 / all) / 10 }' whole.out)" "$2" "$3"
}

# ---- C: .eh_frame without the index that linkers make when they are asked for it
no_sections() { # FROM TO: without the headers of its sections
	perl -0777 -pe 'substr($_, 40, 8) = "\0" x 8; substr($_, 58, 6) = "\0" x 6' <"$1" >"$2" && chmod +x "$2"
}
unlike "$(readelf -lW "$TARGETS/static_stacks")" GNU_EH_FRAME "the static program has no index of its unwind tables"
countersink attach -F 2000 -o c.pb.gz -- "$TARGETS/static_stacks" 1 2>err
at_least "$(rooted c.pb.gz '^_start$')" 99 "a static program: stacks begin at _start"
whole c.pb.gz 98 "a static program: stacks are whole"
strip -o stripped "$TARGETS/static_stacks"
countersink attach -F 2000 -o c.pb.gz -- ./stripped 1 2>err
whole c.pb.gz 99 "a stripped static program: stacks are whole"
for function in compare descend sort_values; do
	at=$(nm "$TARGETS/static_stacks" | sed -n "s/^0*\([0-9a-f]*\) t $function\$/\1/p")
	like "$(countersink report --all c.pb.gz 2>&1)" "stripped +\[stripped\+0x$at\]\$" \
		"a stripped static program: $function is apart, by where it begins"
done
no_sections stripped headless
like "$(readelf -hW headless 2>/dev/null)" 'Number of section headers: *0' "a program without headers of sections"
countersink attach -F 2000 -o c.pb.gz -- ./headless 1 2>err
is $? 0 "a program without headers of sections runs"
whole c.pb.gz 98 "a static program without headers of sections: stacks are whole"
if have clang && clang -O2 -static -o by_clang "$SRC/tests/targets/static_stacks.c" 2>/dev/null; then
	countersink attach -F 2000 -o c.pb.gz -- ./by_clang 1 2>err
	at_least "$(rooted c.pb.gz '^_start$')" 99 "a static program by clang: stacks begin at _start"
else
	skip "a static program by clang" "no clang here"
fi

# ---- a handler on an alternate stack: of the thread's own stack there is no copy
countersink -o c.pb.gz -- "$TARGETS/static_alternate" 200 2>err
is $? 0 "a handler on an alternate stack: status 0"
like "$(grep '^  lost' err)" '^  lost +[0-9]+ stacks that end where their thread had gone to another one' \
	"a handler on an alternate stack: the report says where its stacks end"
unlike "$(grep '^  lost' err)" 'holds no frame|unwind tables' "a handler on an alternate stack: and counts them once"
like "$(countersink export -f folded c.pb.gz)" ';handle;inside_handler(;|\s)' "a handler on an alternate stack: callers up to there are known"

# ---- 32-bit programs without a C library; with one: outside_untabled.t
cat >words.c <<'END'
static volatile unsigned long sink;
__attribute__((noinline)) unsigned long thrice(unsigned long n) { for (int i = 0; i < 3000; i++) n = n * 31 + i; return n; }
__attribute__((noinline)) unsigned long once(unsigned long n) { for (int i = 0; i < 1000; i++) n = n * 31 + i; return n; }
void _start(void) {
	for (int i = 0; i < 100000; i++) sink += thrice(sink) + once(sink);
	__asm__ volatile("mov $1, %eax; mov $0, %ebx; int $0x80");
}
END
if gcc -m32 -O2 -nostdlib -static -fno-pic -no-pie -o words words.c 2>err && ./words; then
	countersink attach -F 2000 -o words.pb.gz -- ./words 2>err
	is $? 0 "a 32-bit program: status 0"
	share=$(countersink report --csv words.pb.gz | awk -F , '/thrice/ { a = $0 } /once/ { b = $0 } END { print (a != "") (b != "") }')
	is "$share" 11 "both functions of a 32-bit program have names"
	unlike "$(countersink report words.pb.gz 2>&1)" '\[anon\]|no symbol' "no function of a 32-bit program lacks a name"
else
	skip "a 32-bit program" "no 32-bit compiler here"
fi

# ---- Go: its own tables over the copy, joined with the kernel's walk by frame pointers
cp "$SRC/tests/targets/outside.go.txt" outside.go
if [ "$(uname -m)" != x86_64 ]; then
	skip "stacks of Go" "they are followed on x86-64"
elif have go && GOCACHE=$(go_cache) GO111MODULE=off go build -ldflags='-s -w' -o by_go outside.go 2>err; then
	countersink attach -F 2000 -o go.pb.gz -- ./by_go 1s 2>err
	at_least "$(rooted go.pb.gz '^runtime\.(goexit|mstart|rt0_go|mcall)$')" 98 "a stripped program by Go: stacks begin where goroutines and threads do"
	whole go.pb.gz 98 "a stripped program by Go: stacks are whole"
	like "$(countersink report --callers 'main\.build' go.pb.gz 2>&1)" 'main\.work' "callers of a recursive function are known"
else
	skip "stacks of Go" "no go here that builds a program"
fi

done_testing

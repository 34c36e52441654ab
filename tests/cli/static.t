#!/bin/bash
# Programs that cannot be injected: they run untouched, are counted from outside, and named with the reason.
. "$(dirname "$0")/lib.sh"

countersink -o s.pb.gz -- "$TARGETS/static_spin" 0.2 2>err
is $? 0 "a static program runs"
like "$(cat err)" 'unprofiled +static_spin' "and is named in the report"
like "$(cat err)" 'static' "with the reason"
like "$(cat err)" 'static_spin\]' "its time is in the table"
like "$(cat err)" 'counted +task-clock [1-9][0-9]+\.' "and counted"

countersink -o s.pb.gz -- sh -c '"$0" 0.2; exit 3' "$TARGETS/static_spin" 2>err
is $? 3 "below a program that can be injected"
like "$(cat err)" 'unprofiled.*static_spin' "it is named as well"
like "$(cat err)" 'static_spin\]' "with its time"

is "$(countersink -q -o s.pb.gz -- "$TARGETS/static_spin" 0 sh -c 'echo "$LD_PRELOAD"')" "$LIB" \
	"what it execs is injected again"

# Another C library: its loader would fail on ours.
sed 's,/lib64/ld-linux-x86-64\.so\.2\x00,/tmp/ld-musl-x86_64.so.1\x00\x00\x00,' /bin/true >musl_like
chmod +x musl_like
if [ "$(uname -m)" = x86_64 ] && grep -aq ld-musl musl_like; then
	countersink -q -- ./musl_like 2>err
	is $? 127 "a program whose loader is missing ends as it would: 127"
else
	skip "a program whose loader is missing" "the loader has another name here"
fi
if have musl-gcc; then
	echo '#include <stdio.h>
	int main(void) { puts("from musl"); return 5; }' >m.c
	musl-gcc -o musl m.c
	countersink -o m.pb.gz -- ./musl >out 2>err
	is "$? $(cat out)" "5 from musl" "a musl program runs"
	like "$(cat err)" 'unprofiled.*musl' "and is named"
else
	skip "a musl program" "no musl-gcc here"
fi
if echo 'int main(void) { return 6; }' | gcc -m32 -x c -o m32 - 2>/dev/null && ./m32 || [ $? = 6 ]; then
	countersink -o m.pb.gz -- ./m32 >out 2>err
	is $? 6 "a 32-bit program runs"
	unlike "$(cat err)" 'ld\.so' "its loader does not complain about our library"
	like "$(cat err)" 'unprofiled.*m32' "and it is named"
else
	skip "a 32-bit program" "no 32-bit compiler here"
fi

# Setuid: the loader ignores LD_PRELOAD, and the kernel takes an unprivileged user's counters off.
if [ "$(id -u)" = 0 ]; then
	cp "$TARGETS/static_spin" suid_spin
	cp /usr/bin/id suid_id
	chmod 4755 suid_id
	mkdir theirs
	chmod 777 theirs
	cd theirs || exit 1
	unprivileged countersink -- ../suid_id -u >out 2>err
	is "$? $(cat out)" "0 0" "a setuid program runs with its rights"
	like "$(cat err)" 'unprofiled.*suid_id' "and is named"
	like "$(cat err)" '(set-user-id|capabilities)' "with the reason"
	cd ..
else
	skip "a setuid program" "only root can make one"
fi

done_testing

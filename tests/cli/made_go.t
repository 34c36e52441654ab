#!/bin/sh
# Stacks of a program that is laid out as those of Go are, also of versions that are not installed here: from the thread's stack to
# the goroutine's, as the runtime goes there up to Go 1.20 and since 1.21, and where it has moved the goroutine's stack meanwhile.
# Libraries by Go that are being loaded while samples are taken.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || skip_all "stacks of Go are walked by its tables on x86-64"
for layout in old new; do
	for moved in '' moved; do
		title="$layout layout"
		[ -z "$moved" ] || title="$title, a stack that is moved"
		countersink -F 500 -o made.pb.gz -- "$TARGETS/made_go" $layout $moved >out 2>err </dev/null
		is "$?:$(cat out)" "0:done" "$title: output and status are as without countersink"
		countersink export -f folded -e samples made.pb.gz | sed -n 's/^.*runtime\.goexit;//p' | sed 's/ [0-9]*$//' >stacks
		ok "$title: the caller of systemstack is found" grep -qx 'main.work;main.middle;runtime.systemstack;main.inner;made_go_spin' stacks
		ok "$title: the caller of morestack is found" \
			grep -qx 'main.work;main.grower;runtime.morestack;runtime.newstack;made_go_spin' stacks
		is "$(grep 'made_go_spin$' stacks | sort -u | wc -l)" 2 "$title: no other stacks are found"
		unlike "$(cat err)" ' lost +.*stacks' "$title: no stack is broken"
	done
done

countersink -q -F 5000 -o half.pb.gz -- "$TARGETS/half_loaded" "$TARGETS/go_part.so" >out 2>&1 </dev/null
is "$?:$(cat out)" "3:not loaded" "a library that cannot be loaded: what runs where it was is sampled"
countersink -q -F 5000 -o half.pb.gz -- "$TARGETS/half_loaded" "$TARGETS/plugs/go_part_whole.so" closefrom >out 2>&1 </dev/null
is "$?:$(cat out)" "3:loaded
opened besides: 0" "a library that a program loads which closes any descriptor: its file is not opened"
countersink -q -F 5000 -o half.pb.gz -- "$TARGETS/half_loaded" "$TARGETS/plugs/go_part_whole.so" pread64 >out 2>&1 </dev/null
is "$?:$(cat out)" "3:loaded" "a library that a program loads which is killed by pread64: its file is not read"
done_testing

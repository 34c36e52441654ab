#!/bin/sh
# Methods of HotSpot of JDKs that need not be installed: of programs that export where its fields are, and have records there.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || skip_all "frames of HotSpot are read on x86-64"
MADE=$TARGETS/made
chain='main;go_on;\[call stub\];go_on;made\.Alpha\.first;go_on;made\.Outer\.outer;Inner\$\$Lambda\.inner;go_on'

for version in 11 17 21 24 25; do
	countersink -q -F 2000 -o p.pb.gz -- "$MADE/hotspot_$version" 300 >out 2>&1
	is "$?:$(cat out)" "3:" "JDK $version: the program runs as without countersink"
	countersink export -f folded p.pb.gz >folded
	is "$(awk -v stack="$chain" '/go_on/ { all += $NF } $0 ~ stack { with += $NF } END { print (all > 0 && with > .9 * all) }' folded)" 1 \
		"JDK $version: a stub, an interpreted method, a compiled one and one that was inlined, between native frames"
	countersink export -f speedscope p.pb.gz >speedscope
	like "$(cat speedscope)" '"name":"made\.Alpha\.first","file":"made/Alpha\.java","line":5[,}]' "JDK $version: a method has its file and its first line"
	countersink report --all --by line p.pb.gz >lines 2>&1
	like "$(cat lines)" 'Alpha\.java:7 +made\.Alpha\.first' "JDK $version: an interpreted method has the line that runs"
	like "$(cat lines)" 'Outer\.java:7 +made\.Outer\.outer' "JDK $version: a compiled method has the line that runs"
	like "$(cat lines)" 'Inner\.java:5 +Inner\$\$Lambda\.inner' "JDK $version: a method that was inlined has the line that runs"
done

for version in 11 17 21 24 25; do
	countersink -q -F 2000 -o p.pb.gz -- "$MADE/hotspot_$version" 600 stubs >out 2>&1
	is "$?:$(cat out)" "3:" "JDK $version, stubs: the program runs as without countersink"
	countersink export -f folded p.pb.gz >folded
	compiled='run_until;made.Outer.outer;Inner$$Lambda.inner'
	for stack in '[VM_Version stub]' "$compiled;[C1 Runtime slow_subtype_check_blob]" "$compiled;[ExceptionBlob]" "$compiled;[I2C/C2I adapters]" \
		"$compiled;[I2C/C2I adapters];in_virtual_machine"; do
		is "$(awk -v leaf="${stack##*;}" -v stack=";main;run_stubs;$stack" 'index($0, leaf) { all += $NF; with += index($0, stack) ? $NF : 0 }
			END { print (all > 0 && with > .98 * all) }' folded)" 1 "JDK $version, stubs: ${stack#*;} has its callers"
	done
done

countersink -q -F 2000 -o p.pb.gz -- "$TARGETS/load_main" "$MADE/libhotspot.so" 200 stub >out 2>&1
is "$?:$(cat out)" "3:" "a machine that was just loaded: the program runs as without countersink"
countersink export -f folded p.pb.gz >folded
is "$(awk '/\[VM_Version stub\]|\[no symbol\]/ { all += $NF } /;run_stubs;\[VM_Version stub\] / { with += $NF } END { print (all > 0 && with > .98 * all) }' folded)" 1 \
	"a machine that was just loaded, of which only code that it makes has run: that code has its name"

for version in 11 17 21 25 uncounted_17 redefining_17 safepoints_25; do
	countersink -q -F 2000 -o p.pb.gz -- "$MADE/hotspot_$version" 400 again >out 2>&1
	is "$?:$(cat out)" "3:" "JDK $version: a method is replaced: the program runs as without countersink"
	countersink export -f folded p.pb.gz >folded
	is "$(awk '/Alpha\.first/ { first += $NF } /Alpha\.other/ { other += $NF }
		END { print (first > .3 * (first + other) && other > .3 * (first + other)) }' folded)" 1 \
		"JDK $version: a method that is where another one was has its own name"
done

# The eleven words that are exported, two of the types' table, the words of the first variable, of the last one and of the first field
for astray in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 48 49 50 51 52 53 54 55 56 57; do
	countersink -q -F 10000 -o p.pb.gz -- "$MADE/hotspot_17" 40 astray $astray >out 2>&1
	echo "$astray: $?:$(cat out):$(countersink export -f folded -e samples p.pb.gz | grep -c ';main')"
done >statuses
is "$(grep -vE ': 3::[1-9]' statuses)" "" "tables with a word that points astray: the program runs as without countersink"

countersink -q -F 10000 -o p.pb.gz -- "$MADE/hotspot_bare_17" 40 again >out 2>&1
is "$?:$(cat out)" "3:" "without .eh_frame_hdr the program runs as without countersink, too"
ok "it is sampled" test "$(countersink export -f folded -e samples p.pb.gz | grep -c .)" -gt 0
# A type's name and the first of its row's words, those of the first variable, and a field's type
for astray in 11 13 14 15 53; do
	countersink -q -F 10000 -o p.pb.gz -- "$MADE/hotspot_bare_17" 40 astray $astray >out 2>&1
	echo "$astray: $?:$(cat out)"
done >statuses
is "$(grep -v ': 3:$' statuses)" "" "so it does with such words there, where no segment of constants is found"

frames_not_read "$MADE/hotspot_missing_17" Alpha 'Java frames are not read: the fields of this HotSpot are not known' "a field that is missing"
frames_not_read "$MADE/hotspot_unknown_25" Alpha 'Java frames are not read: the fields of this HotSpot are not known' "an unknown version"
done_testing

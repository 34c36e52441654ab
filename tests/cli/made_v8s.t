#!/bin/sh
# Functions of V8 of each version of node, installed or not: of programs that export where its fields are, and have objects there.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || skip_all "frames of V8 are read on x86-64"
MADE=$TARGETS/made
chain='module;go_on;inferred;go_on;classy;go_on;(anonymous);go_on;ünï;go_on;leftRight;go_on;slice;go_on;thinly;go_on;out名;go_on;moved'
chain="$chain;go_on;evaluated;go_on;builtin;go_on"

for version in 18 20 22 24; do
	countersink -q -F 2000 -o p.pb.gz -- "$MADE/v8_$version" 300 >out 2>&1
	is "$?:$(cat out)" "3:" "node $version: the program runs as without countersink"
	countersink export -f folded p.pb.gz >folded
	is "$(awk -v stack="$chain" '/go_on/ { all += $NF } index($0, stack) { with += $NF } END { print (all > 0 && with > .9 * all) }' folded)" 1 \
		"node $version: names of all kinds: in a module, inferred, none, of one and two bytes, concatenated, sliced, external, moved"
	countersink export -f speedscope p.pb.gz >speedscope
	like "$(cat speedscope)" '"name":"module","file":"/made/made\.js"' "node $version: the script is the function's file"
	like "$(cat speedscope)" '"name":"evaluated","file":"\[eval\]"' "node $version: a script without a name is [eval]"
	like "$(cat speedscope)" '"name":"builtin","file":"\[builtin\]"' "node $version: a function without a script is [builtin]"
done

countersink -o p.pb.gz -- "$MADE/v8_22" 100 >out 2>err
is "$?:$(grep -c 'JavaScript frames are read without lines, inlined functions and regular expressions: this V8 is not that of node 18,' err)" "3:1" \
	"a version that is known by its fields alone: the report has one line with what is missing" || diag "$(cat err)"

frames_not_read "$MADE/v8_packed_20" classy 'JavaScript frames are not read: V8 with compressed pointers is not supported' "compressed pointers"
frames_not_read "$MADE/v8_type_24" classy 'JavaScript frames are not read: this V8 has other fields or frames' "functions of another type"

# A library of V8 is unloaded, and a second mapping of its code stays: it is looked at once more at the program's end.
cat >library.c <<'END'
int v8dbg_SmiTagMask = 1;
int code(int x) { return 3 * x; }
END
cat >unloads.c <<'END'
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[argc - 1], RTLD_NOW);
	int file = open(argv[argc - 1], O_RDONLY);
	if (!library || file < 0)
		return 1;
	while (clock() < CLOCKS_PER_SEC / 3)
		;
	dlclose(library);
	return mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 4096) == MAP_FAILED ? 2 : 3;
}
END
cc -shared -fPIC -o library.so library.c
cc -O1 -o unloads unloads.c
countersink -q -o p.pb.gz -- ./unloads "$PWD/library.so" >out 2>&1
is "$?:$(cat out)" "3:" "a library of V8 is unloaded: the program runs as without countersink"

no_fields() { # DEFINITION TITLE: a library that has V8 and not all of what is needed
	echo "$1" | cc -shared -fPIC -x c -o partial.so -
	countersink -o p.pb.gz -- ./unloads "$PWD/partial.so" >out 2>err
	is "$?:$(cat out)" "3:" "$2: the program runs as without countersink"
	is "$(grep -c 'JavaScript frames are not read: this V8 has other fields or frames' err)" 1 \
		"$2: the report has one line with the reason"
}
no_fields 'int v8dbg_SmiTagMask = 1, v8dbg_TaggedSize = 8;' "fields that are missing"
no_fields 'void *_ZN2v87Isolate10GetCurrentEv(void) { return 0; }' "no fields at all"
done_testing

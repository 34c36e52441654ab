#!/bin/sh
# Frames of JavaScript in node, of each version that is installed: every function, file and line as Error.stack reports them (also of
# functions that were inlined), functions where freed ones were, first lines of functions, builtins that are mapped a second time, phases,
# --frames, reports, children, threads, and a V8 that is not supported. NODES can name more programs than the one in PATH.
. "$(dirname "$0")/lib.sh"

FRAMES=$SRC/tests/frames
[ "$(uname -m)" = x86_64 ] || skip_all "frames of V8 are read on x86-64"
have python3 || skip_all "python3 is not installed"

# has_builtins NODE: in the symbol table of the program, or of its libnode; or that exports where V8's own table of them is
has_builtins() {
	file=$(ldd "$1" | awk '/libnode/ { print $3 }')
	readelf -sW "${file:-$(readlink -f "$1")}" 2>/dev/null | grep -qE 'Builtins_ArrayPrototypeSort$|DefaultEmbeddedBlobDataEv$'
}

for node in $(command -v node) $NODES; do
	"$node" -p '"'"$node"' " + process.versions.node.split(".")[0] + " " + process.arch' 2>/dev/null </dev/null
done | grep ' x64$' | sort -u -k2,2 >nodes
for major in 18 20 22 24 25 26; do
	grep -q " $major " nodes || skip "every frame of node $major is right" "node $major is not installed"
done

truth() { # NAME PROGRAM WHAT OPTION_OF_COMPARE NODE OPTION...
	name=$1 program=$2 what=$3 option=$4
	shift 4
	sample_faults "$@" "$FRAMES/$program" truth.json
	is "$?:$(cat out err)" "0:" "$name: the program runs as without countersink"
	like "$(python3 -B "$FRAMES/compare.py" truth.json truth.pb.gz $option)" \
		'^[1-9][0-9][0-9][0-9] stacks, [0-9]+ frames, 0 missing, 0 false$' "$name: $what of every frame is right"
}

# Names at any moment, also where a function has no frame yet, are those that V8 itself gives to the code.
names() { # NAME NODE OPTION...
	name=$1
	shift
	countersink -q -F 4000 --frames=both -o names.pb.gz -- "$@" --perf-basic-prof --interpreted-frames-native-stack \
		"$FRAMES/short.js" 600 >out 2>err </dev/null
	is "$?:$(sed 's/[0-9][0-9]*/PID/' out)$(cat err)" "0:/tmp/perf-PID.map" "$name: a program of short functions runs as without countersink"
	ok "$name: of 1,000 names, 999 are those of V8" python3 -B "$FRAMES/perf_map.py" names.pb.gz "$(cat out)"
	rm -f "$(cat out)"
	countersink -q -F 8000 -o short.pb.gz -- "$@" "$FRAMES/short.js" 600 >out 2>err </dev/null
	countersink export -f folded -e samples short.pb.gz >folded
	is "$(grep -cE ';three;two;one ' folded | sed 's/[1-9][0-9]*/some/'):$(grep -cE ';(one;one|two;two|three;three)[; ]' folded)" some:0 \
		"$name: no function that does not call itself has two frames"
}

# The share of each of the three lines. Without --no-enable-lazy-source-positions, V8 has places only of functions for which they were requested.
three() { # NAME NODE OPTION...
	name=$1
	shift
	countersink -q -F 2000 -o three.pb.gz -- "$@" --no-enable-lazy-source-positions "$FRAMES/lines.js" 60 >out 2>err </dev/null
	is "$?:$(cat out err)" "0:1000" "$name: the program runs as without countersink"
	countersink report --all --by=line three.pb.gz >report 2>&1
	sum=0
	for line in $(grep -nE '// (first|second|third)$' "$FRAMES/lines.js" | cut -d: -f1); do
		share=$(awk -v place="lines.js:$line" 'NF > 1 && $(NF - 1) == place { print int($4) }' report)
		ok "$name: a third of the work is in line $line (${share:-0} % of the samples)" test "${share:-0}" -ge 15 -a "${share:-0}" -le 40
		sum=$((sum + ${share:-0}))
	done
	ok "$name: two thirds of the samples are in the three lines ($sum %)" test $sum -ge 66
	line=$(grep -n '^function three' "$FRAMES/lines.js" | cut -d: -f1)
	share=$(awk -v place="lines.js:$line" 'NF > 1 && $(NF - 1) == place { print int($4) }' report)
	ok "$name: hardly any of it has the line where the function begins (${share:-0} % of the samples)" test "${share:-0}" -le 4
}

# Functions that come to lie where freed ones were: f123 of evals.js is called by g123 alone.
evals() { # NAME NODE OPTION...
	name=$1
	shift
	countersink -q -F 8000 -o evals.pb.gz -- "$@" --expose-gc "$FRAMES/evals.js" 400 >out 2>err </dev/null
	is "$?:$(cat out err)" "0:1600" "$name: a program that makes functions by eval() runs as without countersink"
	countersink export -f folded -e samples evals.pb.gz | awk -F ';' '
		{ for (i = 1; i < NF; i++) if ($i ~ /^g1/ && $(i + 1) ~ /^f1/) { nr++; bad += substr($i, 2, 6) != substr($(i + 1), 2, 6) } }
		END { print (nr >= 50 ? "enough" : nr + 0), bad + 0 }' >judged
	is "$(cat judged)" "enough 0" "$name: functions that lie where freed ones were have their own names"
}

each_version() { # NODE NAME MAJOR
	python3 -B "$FRAMES/v8_tables.py" "$1" "$SRC" >tables 2>&1
	status=$?
	if [ $status = 2 ]; then
		skip "$2: its bytecodes and operations are those of the sources" "its program has no symbols of them"
	else
		is "$status:$(cat tables)" "0:" "$2: its bytecodes and operations are those of the sources"
	fi
	truth "$2" truth.js "every function and file" no-lines "$1"
	unoptimized=--no-opt
	[ "$3" -lt 22 ] || unoptimized="--no-opt --no-maglev"
	truth "$2, interpreted" truth.js "every line" "" "$1" $unoptimized --no-sparkplug
	truth "$2, compiled without optimization" truth.js "every line" "" "$1" $unoptimized --always-sparkplug
	truth "$2, optimized" inlined.js "every line, also of functions that were inlined," "" "$1"
	names "$2, compiled without optimization" "$1" $unoptimized --always-sparkplug
	[ "$3" -lt 22 ] || truth "$2, optimized by Maglev alone" inlined.js "every line, also of functions that were inlined," "" "$1" --no-opt --maglev
	evals "$2, interpreted" "$1" $unoptimized --no-sparkplug
	three "$2, interpreted" "$1" $unoptimized --no-sparkplug
	three "$2, compiled without optimization" "$1" $unoptimized --always-sparkplug

	countersink -q -F 2000 --frames=native -o native.pb.gz -- "$1" "$FRAMES/work.js" 400 >out 2>err </dev/null
	is "$?:$(cat out err)" "0:1000" "$2: with --frames=native, the program runs as without countersink"
	# In a stripped one that does not export the table, builtins are one piece of code without a name.
	builtin=Builtins_ArrayPrototypeSort
	if has_builtins "$1"; then
		share=$(share_of native.pb.gz '^Builtins_')
		ok "$2: builtins have names, where they are mapped twice, too ($share % of the samples are in one)" test "$share" -ge 25
	else
		skip "$2: builtins have names, where they are mapped twice, too" "its symbol table has no builtins"
		builtin='\[libnode\.so\.[0-9]+\+0x[0-9a-f]+\]'
	fi
	share=$(share_of native.pb.gz '^\[no symbol')
	ok "$2: with --frames=native, code without a name is compiled code alone ($share % of the samples)" test "$share" -le 45
	is "$(countersink export -f folded native.pb.gz | grep -c ';sorting;')" 0 "$2: --frames=native has no function of JavaScript"

	countersink -F 2000 -o work.pb.gz -- "$1" "$FRAMES/work.js" 400 >out 2>err </dev/null
	is "$?:$(cat out):$(grep -cE 'not read|are read without' err)" "0:1000:0" "$2: the program runs as without countersink, and no note reports that frames are not read" || diag "$(cat err)"
	share=$(share_of work.pb.gz '^\[no symbol')
	ok "$2: hardly any code has no name ($share % of the samples)" test "$share" -le 1
	countersink export -f folded work.pb.gz >folded
	like "$(cat folded)" ';work;sorting;sort;.*;compare [0-9]+$' "$2: callee below caller, across a builtin function"
	like "$(cat folded)" ';work;fib;fib;fib' "$2: each call of a recursion has a frame"
	# As where the heap may have less than 2 GiB: builtins are too far away for short jumps.
	countersink -q -F 2000 -o far.pb.gz -- "$1" --no-short-builtin-calls "$FRAMES/work.js" 400 >out 2>err </dev/null
	is "$?:$(cat out err)" "0:1000" "$2, far from its builtins: the program runs as without countersink"
	share=$(share_of far.pb.gz '^\[no symbol')
	ok "$2, far from its builtins: hardly any code has no name ($share % of the samples)" test "$share" -le 1
	countersink export -f folded -e samples far.pb.gz >far
	if has_builtins "$1"; then
		is "$(grep -cE ';compare [0-9]+$' far | sed 's/[1-9][0-9]*/some/'):$(grep -E ';compare [0-9]+$' far | grep -cv ';Builtins_SortCompareUserFn;compare ')" some:0 \
			"$2, far from its builtins: no caller is missing before a function has its frame"
	fi
	countersink export -f speedscope work.pb.gz >speedscope
	for name in compare sorting parsing fib work; do
		line=$(grep -n "^function $name(" "$FRAMES/work.js" | cut -d: -f1)
		like "$(cat speedscope)" "\"name\":\"$name\",\"file\":\"[^\"]*/work\.js\",\"line\":${line}[,}]" "$2: $name has its file and first line"
	done

	countersink -q -F 2000 -o others.pb.gz -- "$1" "$FRAMES/others.js" 300 >out 2>err </dev/null
	is "$?:$(cat out err)" "0:1000" "$2: regular expressions and WebAssembly: output and status are as without countersink"
	share=$(share_of others.pb.gz '^\[no symbol')
	ok "$2: hardly any of its code has no name ($share % of the samples)" test "$share" -le 1
	countersink export -f folded others.pb.gz >folded
	like "$(cat folded)" ';matching;(exec;)?(.*;)?\[regexp\] [0-9]+$' "$2: code of regular expressions, below the function that matches"
	like "$(cat folded)" ';counting;(.*;)?\[wasm\];\[wasm\];\[wasm\] [0-9]+$' "$2: code of WebAssembly, below the function that calls it"

	countersink -q -F 2000 --frames=both -o both.pb.gz -- "$1" "$FRAMES/work.js" 200 >out 2>&1 </dev/null
	like "$(countersink export -f folded both.pb.gz)" ";sort;$builtin;" "$2: --frames=both has the native frame, too"
}

while read -r node major _; do
	each_version "$node" "node $major" "$major"
done <nodes
rm -f truth.pb.gz
[ -s nodes ] || done_testing
read -r node major _ <nodes

# ---- children and threads

countersink -q -F 2000 -o jobs.pb.gz -- "$node" "$FRAMES/jobs.js" >out 2>err </dev/null
is "$?:$(tr '\n' ' ' <out)$(cat err)" "0:worked worked worked worked " "a program with a worker, a forked and a spawned child has its output"
countersink export -f folded jobs.pb.gz | grep -oE '(inMain|inWorker|inChild);busy' | sort -u >found
is "$(tr '\n' ' ' <found)" "inChild;busy inMain;busy inWorker;busy " "functions of the worker and of the children are named"

# ---- phases

# Calls <countersink.h> for phases.js, by node's interface for addons, which is declared here since node's headers may be missing.
cat >phases.c <<'END'
#include <countersink.h>
#include <stddef.h>

typedef struct env *napi_env;
typedef struct value *napi_value;
typedef struct info *napi_info;
typedef napi_value (*napi_function)(napi_env, napi_info);

int napi_get_cb_info(napi_env, napi_info, size_t *, napi_value *, napi_value *, void **);
int napi_get_value_string_utf8(napi_env, napi_value, char *, size_t, size_t *);
int napi_create_function(napi_env, const char *, size_t, napi_function, void *, napi_value *);
int napi_set_named_property(napi_env, napi_value, const char *, napi_value);
napi_value napi_register_module_v1(napi_env, napi_value);

static napi_value begin(napi_env env, napi_info info)
{
	char name[64] = "";
	napi_value argument;
	size_t nr = 1;

	napi_get_cb_info(env, info, &nr, &argument, NULL, NULL);
	napi_get_value_string_utf8(env, argument, name, sizeof(name), NULL);
	countersink_phase_begin(name);
	return NULL;
}

static napi_value end(napi_env env, napi_info info)
{
	(void)env;
	(void)info;
	countersink_phase_end();
	return NULL;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	napi_value function;

	napi_create_function(env, "begin", 5, begin, NULL, &function);
	napi_set_named_property(env, exports, "begin", function);
	napi_create_function(env, "end", 3, end, NULL, &function);
	napi_set_named_property(env, exports, "end", function);
	return exports;
}
END

# phases_of FUNCTION: the phases of the samples below it, in per cents of its time, from 5 on: a few are before and after the phase.
phases_of() {
	countersink report --csv --by phase --focus "^$1\$" phases.pb.gz | awk -F, 'NR > 1 { of[$1] = $3; all += $3 }
		END { for (name in of) if (of[name] > .05 * all) print name, int(100 * of[name] / all + .5) }' | sort | tr '\n' ' '
}
ok "an addon is built" ${CC:-cc} -shared -fPIC -Wall -Wextra -I "$SRC/include" -o phases.node phases.c
while read -r node major _; do
	"$node" "$FRAMES/phases.js" "$PWD/phases.node" 1 >out 2>err </dev/null
	is "$?:$(cat out err)" "0:1000" "node $major: a program with phases runs without countersink"
	countersink -q -F 1000 -o phases.pb.gz -- "$node" "$FRAMES/phases.js" "$PWD/phases.node" 200 >out 2>err </dev/null
	is "$?:$(cat out err)" "0:1000" "node $major: a program with phases runs as without countersink"
	like "$(phases_of loading)" '^load (9[5-9]|100) $' "node $major: samples of a function are in the phase that it has named"
	like "$(phases_of parsing)" '^inner [1-9][0-9] parse [1-9][0-9] $' "node $major: phases split the samples of what a function calls"
done <nodes
read -r node major _ <nodes

# ---- time off the CPU, processes of a cluster

countersink -q --off-cpu -F 2000 -o waits.pb.gz -- "$node" "$FRAMES/waits.js" >out 2>err </dev/null
is "$?:$(cat out err)" "0:done" "a program that waits, and that has a cluster, has its output"
if countersink report waits.pb.gz 2>&1 | grep -q 'off-cpu is not counted'; then
	skip "--off-cpu: functions that wait are named" "switches cannot be sampled here"
else
	countersink export -f folded -e off-cpu waits.pb.gz | grep -oE ';waitsFor(Time|Child);' | sort -u >found
	is "$(tr '\n' ' ' <found)" ";waitsForChild; ;waitsForTime; " "--off-cpu: functions that wait are named"
fi
like "$(countersink export -f folded waits.pb.gz)" ';worksInCluster ' "a function of a cluster's processes is named"

# ---- a V8 of another version

countersink -o other.pb.gz -- env LD_PRELOAD="$TARGETS/other_versions.so" "$TARGETS/burn" 50 >out 2>err
is "$?:$(grep -c 'JavaScript frames are not read: this V8 has other fields or frames' err)" 0:1 \
	"V8 of an unsupported version: the report has one line with the reason"

# ---- pages that are known

# The kernel is asked whether a page can be read by a system call that always fails: for each page of the heap once, not
# once a sample.
if have strace; then
	cat >fib.js <<'END'
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
fib(37);
END
	asks_seldom "a heap that stays as it is" fib 4 "$node" fib.js
	# Of code that is none of V8's heap, what begins before it is looked for.
	sed 's/fib(22)/fib(30)/; s/matching() + //' "$FRAMES/others.js" >wasm.js
	asks_seldom WebAssembly '\[wasm\]' 8 "$node" wasm.js 20
else
	skip "pages are asked for once" "no strace"
fi

# ---- reports

countersink report --all work.pb.gz >out 2>&1
like "$(cat out)" ' work\.js +compare$' "the report has functions with their file as the module"
countersink report --fold-native work.pb.gz >out 2>&1
like "$(cat out)" ' (work\.js +parsing|\[builtin\] +[a-z]+)$' "report --fold-native adds native code to the function of JavaScript that called it"
like "$(countersink report --annotate sorting work.pb.gz 2>&1)" ' function sorting\(\) \{$' "--annotate shows the source of a function"
sed 's/i < 10; i++/i < 30; i++/' "$FRAMES/work.js" >work.js
countersink -q -F 2000 -o slower.pb.gz -- "$node" work.js 400 >out 2>&1 </dev/null
like "$(countersink diff work.pb.gz slower.pb.gz 2>&1)" '^ +\+.* work\.js +compare$' "diff finds a function again in another directory"
# Its file is another one at the end of every other run: then its lines are not known.
cat >changing.js <<'END'
function working(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
const fs = require('fs'), other = fs.existsSync('other');
for (let k = 0; k < 100; k++) working(500000);
fs.appendFileSync('changing.js', other ? '\n' : '');
if (other) fs.unlinkSync('other'); else fs.writeFileSync('other', '');
END
cp changing.js kept.js
countersink gate -q -r 4 --cleanup='cp kept.js changing.js' --self-check -- "$node" changing.js >out 2>&1
is "$(grep -oE 'working [a-z]* ?changing\.js[:0-9]*' out | sort -u)" "working at changing.js:1" \
	"gate: a function whose line is known in some runs only has one row"
countersink export -o page.html work.pb.gz
like "$(grep -c 'work\.js' page.html)" '^[1-9]' "the page has the functions' file"
done_testing

#!/bin/bash
# Stacks that cannot be walked to their end are counted by reason and reported; code of a just-in-time compiler is
# walked by its frame pointers and named by its map.
. "$(dirname "$0")/lib.sh"

report() { # PROFILE OPTIONS...
	file=$1
	shift
	countersink report --no-pager "$@" "$file" 2>&1
}

# ---- reasons ----------------------------------------------------------------------------------------------------------
if [ "$(uname -m)" = x86_64 ]; then
	countersink -q -F 2000 -o ends.pb.gz -- "$TARGETS/walk_ends" 60 code frame rules >out 2>err
	is "$?:$(cat out)" "0:done" "stacks with false frames do not harm the program"
	said=$(report ends.pb.gz)
	like "$said" 'lost .*[0-9] stacks that end in code without unwind tables or frame pointers' "stacks that end in code without tables are reported"
	like "$said" '[0-9] stacks that end where memory holds no frame' "stacks that end where memory holds no frame are reported"
	like "$said" '[0-9] stacks that end at unwind rules that are not followed' "stacks that end at unsupported unwind rules are reported"
	countersink -q -F 2000 --frames=native -o stale.pb.gz -- "$TARGETS/walk_ends" 100 stale >out 2>err
	countersink export -o stale.folded stale.pb.gz
	like "$(cat stale.folded)" ';main;spin_stale;\[no symbol\] ' "code made at run time is called by the program's"
	unlike "$(cat stale.folded)" '\[no symbol\];' "a former call's words on top of the stack are no caller"
	leads() { # COMMAND WAY STACK TITLE: each stack of the innermost function is this one
		countersink "$1" -q -F 2000 -o leads.pb.gz -- "$TARGETS/walk_ends" 100 "$2" >out 2>err
		countersink export -o leads.folded leads.pb.gz
		is "$(grep "${3##*;} " leads.folded | sed 's/.*;main;/main;/; s/ [0-9]*$//' | sort -u)" "$3" "$1: $4"
	}
	for command in run attach; do
		leads $command kernel "main;spin_aligned;spin_kernel" \
			"each stack of a function that has aligned its stack leads to its caller, and on from there"
		leads $command own "main;spin_own;spin_own_part" \
			"a register that no callee need preserve is taken as preserved, where a caller's frame is found by it"
	done
	like "$said" ' spin_frame$' "the interrupted function is named although its stack is cut"
else
	skip "reasons for stacks that end too early" "the program is written for x86-64"
fi
countersink -q -F 2000 --max-depth 16 -o depth.pb.gz -- "$TARGETS/deep" 30 0.1 >out
like "$(report depth.pb.gz)" 'lost .*[0-9] stacks cut at the depth limit' "stacks cut at the depth limit are reported"
countersink -q -F 2000 -o whole.pb.gz -- "$TARGETS/deep" 30 0.1 >out
unlike "$(report whole.pb.gz)" '^  lost' "complete stacks give no report of lost ones"
# By EPERM, as containers refuse it, and by EACCES, as others do.
for error in 1 13; do
	"$TARGETS/deny_perf" -e $error -r "$COUNTERSINK" -q -F 2000 -o refused.pb.gz -- "$TARGETS/deep" 30 0.1 >out
	like "$(report refused.pb.gz)" ' deep .*deep_work' "a filter refuses process_vm_readv by error $error: functions are named"
done

# ---- JIT-compiled code --------------------------------------------------------------------------------------------
# The program's own work, in three functions that call each other. From its tree: the branch that leads to the innermost.
share() { # PROFILE OPTIONS...: its share of CPU time, in percent; 0: nothing passes
	report "$@" --json | python3 -c 'import json, sys
try: print(round(json.load(sys.stdin)["types"][-1]["sum"] / 1e6))
except ValueError: print(0)'
}

made() { # WHAT PROFILE INNERMOST MIDDLE OUTERMOST FIRST
	whole=$(share "$2") inside=$(share "$2" --focus "$3") cut=$(share "$2" --focus "$3" --ignore "$6")
	ok "$1: most of the time is in the working function ($inside of $whole ms)" test "$inside" -gt $((whole / 4))
	ok "$1: its stacks reach the thread's first function (all but $cut of $inside ms)" test "$cut" -le $((inside / 50))
	tree=$(report "$2" --tree --fold=0 --focus "$3")
	like "$(echo "$tree" | tr '\n' ' ')" "$6.*$5.*$4.*$3" "$1: callers are named in their order"
	lost=$(report "$2" | sed -n 's/^  lost  *\([0-9,]*\) stacks.*/\1/p' | tr -d ,)
	ok "$1: few stacks end too early (${lost:-0})" test "${lost:-0}" -le $((whole / 20))
}

cat >work.js <<'END'
function leafWork(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
function middleStep(n) { return leafWork(n) + 1; }
function outerLoop(rounds) { let s = 0; for (let i = 0; i < rounds; i++) s += middleStep(20000); return s; }
require("fs").writeFileSync("pid", String(process.pid));
console.log(typeof outerLoop(20000));
END
if have node; then
	countersink -q -F 1000 --frames=native -o js.pb.gz -- node --perf-basic-prof --interpreted-frames-native-stack --no-turbo-inlining work.js \
		>out 2>err
	is "$?:$(cat out)" "0:number" "node runs to its end"
	rm -f "/tmp/perf-$(cat pid).map"
	# V8 before 11 names such functions LazyCompile:*leafWork, later ones JS:*leafWork.
	made node js.pb.gz ':.leafWork' ':.middleStep' ':.outerLoop' '_start'
else
	skip "JIT-compiled code of node" "node is not installed"
fi

cat >Work.java <<'END'
public class Work {
	static int leafWork(int n) { int s = 0; for (int i = 0; i < n; i++) s = s * 31 + (s >>> 7) + i; return s; }
	static int middleStep(int n) { return leafWork(n) + leafWork(n / 2); }
	public static void main(String[] args) throws Exception {
		int s = 0;
		for (int i = 0; i < 20000; i++) s += middleStep(20000);
		java.nio.file.Files.writeString(java.nio.file.Path.of("pid"), "" + ProcessHandle.current().pid());
		System.out.println("done " + (s == s));
	}
}
END
if have javac && have java; then
	javac Work.java 2>err
	# Its own frames are not read here (frames_java.t), so that its code is code that nothing describes but a map.
	countersink -q -F 1000 --frames=native -o java.pb.gz -- java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions \
		-XX:+DumpPerfMapAtExit -XX:-Inline -cp . Work >out 2>err
	is "$?:$(cat out)" "0:done true" "java runs to its end"
	rm -f "/tmp/perf-$(cat pid).map"
	made java java.pb.gz 'Work.leafWork' 'Work.middleStep' 'Interpreter' 'start_thread'
	# Without frame pointers the stacks cannot be walked; the report must show that.
	countersink -q -F 1000 --frames=native -o java.pb.gz -- java -XX:-Inline -cp . Work >out 2>err
	like "$(report java.pb.gz)" 'lost .*stacks that end in code without unwind tables or frame pointers' \
		"java without frame pointers: cut stacks are reported"
else
	skip "JIT-compiled code of java" "java and javac are not installed; node's is walked the same way"
fi
done_testing

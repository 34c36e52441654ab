#!/bin/sh
# Frames of Java in HotSpot, of each version that is installed: every method, file and line as Throwable reports them, inlined
# ones, too; calls in samples at any moment; names as HotSpot itself writes them for perf; virtual threads; methods that are redefined;
# phases; --frames, reports, children.
# JAVAS can name more directories of JDKs than those in /usr/lib/jvm.
. "$(dirname "$0")/lib.sh"

FRAMES=$SRC/tests/frames
[ "$(uname -m)" = x86_64 ] || skip_all "frames of HotSpot are read on x86-64"
have python3 || skip_all "python3 is not installed"

for home in $JAVAS /usr/lib/jvm/*; do
	[ -x "$home/bin/javac" ] && [ -e "$home/release" ] || continue
	sed -n "s|^JAVA_VERSION=\"\([0-9]*\).*|$home \1|p" "$home/release"
done | awk '$2 >= 11 && $2 <= 25' | sort -u -k2,2n >javas
[ -s javas ] || skip_all "no JDK from 11 to 25 is installed"
for version in 11 17 21 25; do
	grep -q " $version\$" javas || skip "every frame of JDK $version is right" "JDK $version is not installed"
done

truth() { # TITLE ROUNDS OPTIONS...
	title=$1
	rounds=$2
	shift 2
	MALLOC_MMAP_THRESHOLD_=65536 countersink -q -e page-faults:u -c 8 -o truth.pb.gz -- "$home/bin/java" -XX:+UnlockDiagnosticVMOptions -XX:+ShowHiddenFrames "$@" \
		-cp classes Truth truth.json "$rounds" >out 2>err </dev/null
	is "$?:$(cat out err)" "0:" "$title runs as without countersink"
	like "$(python3 -B "$FRAMES/compare.py" truth.json truth.pb.gz)" '^[0-9]*[0-9][0-9][0-9] stacks, [0-9]+ frames, 0 missing, 0 false$' \
		"$title: every method, file and line of every frame is right"
}

calls() { # TITLE RATE OPTIONS...
	title=$1
	rate=$2
	shift 2
	countersink -q -F "$rate" -o async.pb.gz -- "$home/bin/java" "$@" -cp classes Work 2 >out 2>err </dev/null
	is "$?:$(cat out err)" "0:done" "$title at $rate Hz: output and status are as without countersink"
	[ "$rate" -gt 1000 ] && one_in=4000 || one_in=1000 # of many samples, fewer may be wrong
	python3 -B "$FRAMES/calls.py" "$FRAMES/Work.java.calls" async.pb.gz "$one_in" >out 2>&1
	judged=$?
	if [ $judged != 0 ]; then
		# HotSpot has names for the places of calls. What C2 moves in between has those of the next call, which may be of
		# another branch: in few runs, several samples of the same place (3 of 1,202 at 1 kHz in one of 100 runs, which had 10 of
		# 118,000 together). The rate is that of more stacks.
		for more in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15; do
			countersink -q -F "$rate" -o more$more.pb.gz -- "$home/bin/java" "$@" -cp classes Work 2 >/dev/null 2>&1 </dev/null
		done
		countersink merge -q -o all.pb.gz async.pb.gz more??.pb.gz
		python3 -B "$FRAMES/calls.py" "$FRAMES/Work.java.calls" all.pb.gz "$one_in" >out 2>&1
		judged=$?
	fi
	is "$judged:$(grep -c '^[1-9][0-9]* stacks judged' out)" 0:1 "$title at $rate Hz: calls are legal and stacks are whole: $(head -n 1 out)"
}

names() { # TITLE OPTIONS... that let code stay where it was made
	title=$1
	shift
	status=75
	while [ "$status" = 75 ]; do # another user's map may be there, of a former process of this number: again, with the next number
		# shellcheck disable=SC2016
		countersink -q --frames=both -F 2000 -o both.pb.gz -- sh -c 'map=/tmp/perf-$$.map
			rm -f "$map" 2>/dev/null || exit 75
			echo "$map" >map
			exec "$@"' sh "$home/bin/java" "$@" -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit \
			-cp classes Work 2 >out 2>err </dev/null
		status=$?
	done
	is "$status:$(cat out err)" "0:done" "$title with a map for perf: output and status are as without countersink"
	python3 -B "$FRAMES/map_names.py" both.pb.gz >out 2>&1
	is "$?:$(grep -c '^[0-9]* frames compared' out)" 0:1 "$title: names are those of HotSpot's own map: $(head -n 1 out)"
	rm -f "$(cat map)"
}

# While HotSpot copies the frames of a virtual thread back from the heap, its stack is that of the thread which runs it.
yields() { # TITLE OPTIONS...
	title=$1
	shift
	countersink -q -F 5000 -o yields.pb.gz -- "$home/bin/java" "$@" -cp classes Yields 8 2 >out 2>err </dev/null
	is "$?:$(cat out err)" "0:done" "$title: virtual threads that give up their turn run as without countersink"
	# Where libc and java have no names for threads' first functions, those of their files serve.
	nameless=''
	countersink export -f folded yields.pb.gz | grep -qE '^(__)?clone3?[ ;]' || nameless='|\\[(libc|java)[^;]*\\]'
	countersink export -f folded -e samples yields.pb.gz | awk -v nameless="$nameless" '
		{ all += $NF; whole += $0 ~ "^((__)?(clone3?|_start)" nameless ")[ ;]" ? $NF : 0; copied += /;\[callers in the heap\];.*[Tt]haw/ ? $NF : 0 }
		END { print (all >= 500 && copied >= 20 ? "enough" : all + 0 " and " copied + 0), (all - whole <= all / 500 ? "whole" : all - whole " of " all) }' >judged
	is "$(cat judged)" "enough whole" "$title: stacks of virtual threads are whole, also while their frames are copied back"
}

redefined() { # TITLE
	printf 'Premain-Class: Redefines\nCan-Redefine-Classes: true\n' >manifest
	"$home/bin/jar" cfm agent.jar manifest -C classes Redefines.class
	countersink -q -F 2000 -o redefined.pb.gz -- "$home/bin/java" -Xint -XX:+UseSerialGC -Xmx32m -javaagent:agent.jar -cp classes Redefines 5 \
		>out 2>err </dev/null
	is "$?:$(cat out err)" "0:done" "$1 that an agent redefines: output and status are as without countersink"
	countersink export -f folded -e samples redefined.pb.gz | sed -n 's/.*Redefines\.call\([A-D]\);Changing\.\([a-d]\).* \([0-9]*\)$/\1 \2 \3/p' >calls
	like "$(awk '{ nr[tolower($1) == $2] += $3 } END { print nr[1] + 0, "right,", nr[0] + 0, "wrong" }' calls)" '^[0-9]*[0-9][0-9] right, 0 wrong$' \
		"$1 that an agent redefines: each has its own name"
}

# phases_of METHOD: the phases of the samples below it, in per cents of its time, from 5 on: a few are before and after the phase.
phases_of() {
	countersink report --csv --by phase --focus "^Phases\\.$1\$" phases.pb.gz | awk -F, 'NR > 1 { of[$1] = $3; all += $3 }
		END { for (name in of) if (of[name] > .05 * all) print name, int(100 * of[name] / all + .5) }' | sort | tr '\n' ' '
}

phases() { # TITLE
	ok "$1: a library for JNI is built" ${CC:-cc} -shared -fPIC -Wall -Wextra -I "$home/include" -I "$home/include/linux" -I "$SRC/include" -o phases.so phases.c
	"$home/bin/java" -cp classes Phases "$PWD/phases.so" 1 >out 2>err </dev/null
	is "$?:$(cat out)" "0:done" "$1: a program with phases runs without countersink"
	countersink -q -F 1000 -o phases.pb.gz -- "$home/bin/java" -cp classes Phases "$PWD/phases.so" 200 >out 2>err </dev/null
	is "$?:$(cat out)" "0:done" "$1: a program with phases runs as without countersink"
	like "$(phases_of loading)" '^load (9[5-9]|100) $' "$1: samples of a method are in the phase that it has named"
	like "$(phases_of parsing)" '^inner [1-9][0-9] parse [1-9][0-9] $' "$1: phases split the samples of what a method calls"
	like "$(phases_of inThread)" '^beside (9[5-9]|100) $' "$1: another thread has phases of its own"
}

# Calls <countersink.h> for Phases.java.
cat >phases.c <<'END'
#include <countersink.h>
#include <jni.h>

JNIEXPORT void JNICALL Java_Phases_begin(JNIEnv *env, jclass class, jstring name)
{
	const char *text = (*env)->GetStringUTFChars(env, name, NULL);

	(void)class;
	countersink_phase_begin(text);
	(*env)->ReleaseStringUTFChars(env, name, text);
}

JNIEXPORT void JNICALL Java_Phases_end(JNIEnv *env, jclass class)
{
	(void)env;
	(void)class;
	countersink_phase_end();
}
END

while read -r home version; do
	rm -rf classes
	"$home/bin/javac" -d classes "$FRAMES/Truth.java" "$FRAMES/Work.java" "$FRAMES/Jobs.java" "$FRAMES/Redefines.java" "$FRAMES/Phases.java" \
		"$FRAMES/Yields.java" >out 2>&1 || cat out
	truth "JDK $version" 60
	truth "JDK $version, interpreted alone" 2 -Xint
	truth "JDK $version, C1 alone" 30 -XX:TieredStopAtLevel=1
	calls "JDK $version, interpreted alone" 1000 -Xint
	calls "JDK $version, all compiled" 1000 -Xcomp -XX:+UseParallelGC
	share=$(share_of async.pb.gz '^\[no symbol')
	ok "JDK $version: hardly any code has no name ($share % of the samples)" test "$share" -le 1
	calls "JDK $version" 20000 # at a usual rate: interpreted and all compiled, above
	calls "JDK $version, C1 alone" 20000 -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
	if [ "$version" -lt 17 ]; then
		skip "JDK $version: names are those of HotSpot's own map" "it writes none before 17"
	else
		names "JDK $version, C1 alone" -XX:TieredStopAtLevel=1
		names "JDK $version, C2 alone" -XX:-TieredCompilation
		names "JDK $version, all compilers" -XX:-ClassUnloading # with which no code is freed
	fi
	if [ "$version" -ge 21 ]; then
		yields "JDK $version"
		yields "JDK $version, C1 alone" -XX:TieredStopAtLevel=1
	fi
	redefined "JDK $version: methods"
	phases "JDK $version"
done <javas
tail -n 1 javas >last # which compiled the classes that are there now
read -r home version <last

# ---- children, and other virtual machines

countersink -q -F 1000 -o jobs.pb.gz -- "$home/bin/java" -cp classes Jobs >out 2>err </dev/null
is "$?:$(tr '\n' ' ' <out)$(cat err)" "0:worked worked " "a program with a thread and a child has its output"
countersink export -f folded jobs.pb.gz | grep -oE 'Jobs\.(inThread|inChild);Jobs\.spin' | sort -u >found
is "$(tr '\n' ' ' <found)" "Jobs.inChild;Jobs.spin Jobs.inThread;Jobs.spin " "methods of the thread and of the child are named"
LD_PRELOAD="$LIB" COUNTERSINK_OUTPUT="$PWD/alone.pb.gz" COUNTERSINK_QUIET=1 "$home/bin/java" -cp classes Jobs child >out 2>err </dev/null
is "$(cat out)" worked "configured by its environment alone, the program has its output"
like "$(countersink export -f folded alone.pb.gz)" ';Jobs\.main;Jobs\.inChild;Jobs\.spin' "configured by its environment alone, the program has the names of its methods"

countersink -q --off-cpu -o off.pb.gz -- "$home/bin/java" -cp classes Jobs >out 2>err </dev/null
is "$?:$(tr '\n' ' ' <out)$(cat err)" "0:worked worked " "with --off-cpu, a program that waits for a thread and a child has its output"
if countersink report off.pb.gz 2>&1 | grep -q 'off-cpu is not counted'; then
	skip "--off-cpu: the methods that wait are named" "switches cannot be sampled here"
else
	countersink export -f folded -e off-cpu off.pb.gz | grep -oE 'Jobs\.main;java\.lang\.(Thread\.join|Process[A-Za-z]*\.waitFor)' | sort -u >found
	is "$(tr '\n' ' ' <found)" "Jobs.main;java.lang.ProcessImpl.waitFor Jobs.main;java.lang.Thread.join " "--off-cpu: the methods that wait are named"
fi

countersink -o other.pb.gz -- env LD_PRELOAD="$TARGETS/other_versions.so" "$TARGETS/burn" 50 >out 2>err
is "$?:$(grep -c 'Java frames are not read: the fields of this HotSpot are not known' err)" 0:1 \
	"HotSpot of an unsupported version: the report has one line with the reason"
# While a thread reads HotSpot's tables, no other one's code has a name: one that loses its CPU then takes the others' names for a few
# milliseconds (2 of 1,000 runs at a load of 4).
unnamed=0
: >starts
for _ in 1 2 3; do
	countersink -q -F 5000 -o start.pb.gz -- "$home/bin/java" -version >out 2>&1 </dev/null
	countersink export -f folded start.pb.gz >start.folded
	! grep -q 'VM_Version::initialize;\[no symbol\]' start.folded || unnamed=$((unnamed + 1))
	cat start.folded >>starts
done
ok "code that HotSpot runs before it has an interpreter has a name ($unnamed of 3 runs without)" test "$unnamed" -le 1
like "$(cat starts)" 'VM_Version::initialize.*;\[VM_Version stub\]' "it is the stub's"
countersink -q -F 1000 --frames=native -o native.pb.gz -- "$home/bin/java" -cp classes Work 1 >out 2>err </dev/null
is "$?:$(cat out err)" "0:done" "with --frames=native, the program runs as without countersink"
is "$(countersink export -f folded native.pb.gz | grep -c 'Work\.')" 0 "--frames=native has no method"

# ---- other languages

cat >names.clj <<'END'
(ns my-app.names)
(defn fib? [n] (if (< n 2) n (+ (fib? (- n 1)) (fib? (- n 2)))))
(defn sum! [n] (reduce + (map (fn [x] (* x 31)) (range n))))
(let [^java.lang.management.ThreadMXBean threads (java.lang.management.ManagementFactory/getThreadMXBean)
      end (+ (.getCurrentThreadCpuTime threads) 800000000)]
  (while (< (.getCurrentThreadCpuTime threads) end) (fib? 17) (sum! 20000)))
(println "done")
END
jar=/usr/share/java/clojure.jar
if [ -e "$jar" ]; then
	countersink -q -F 2000 -o clojure.pb.gz -- "$home/bin/java" -cp "$jar:/usr/share/java/spec.alpha.jar:/usr/share/java/core.specs.alpha.jar" \
		clojure.main names.clj >out 2>&1 </dev/null
	is "$?:$(cat out)" "0:done" "a program in Clojure has its output"
	countersink export -f folded clojure.pb.gz | tr ';' '\n' | grep -oE '^(my-app.names/(fib\?|sum!/fn|sum!)|clojure.core/map)' | sort -u >found
	is "$(tr '\n' ' ' <found)" "clojure.core/map my-app.names/fib? my-app.names/sum! my-app.names/sum!/fn " "functions of Clojure have the names of the source"
else
	skip "functions of Clojure have the names of the source" "clojure is not installed"
fi

# ---- pages that are known

# As in frames_v8.t: the kernel is asked for a page that does not change once, not once a sample.
if have strace; then
	asks_seldom "methods that stay as they are" 'Jobs\.deep' 4 "$home/bin/java" -Xint -cp classes Jobs deep 30 1
else
	skip "pages are asked for once" "no strace"
fi

# ---- reports

countersink -q -F 1000 -o work.pb.gz -- "$home/bin/java" -cp classes Jobs deep 10 1 >out 2>&1 </dev/null
like "$(countersink report --all work.pb.gz 2>&1)" ' Jobs\.java +Jobs\.spin$' "the report has methods with their file as the module"
cp "$FRAMES/Jobs.java" .
like "$(countersink report --annotate Jobs.spin work.pb.gz 2>&1)" ' sum = sum \* 31 \+ i;$' "--annotate shows the source of a method"
mkdir -p src/main/java
mv Jobs.java src/main/java/
like "$(countersink report --annotate Jobs.spin work.pb.gz 2>&1)" ' sum = sum \* 31 \+ i;$' "--annotate finds the source where packages begin"
mv src/main/java/Jobs.java .
mkdir nowhere
like "$(cd nowhere && countersink report --annotate Jobs.spin ../work.pb.gz 2>&1)" \
	'note: Jobs\.java cannot be read: No such file or directory; run this in the directory that the path is relative to' "--annotate without the source reports where to start"
like "$(countersink report --by=line work.pb.gz 2>&1)" " Jobs\.java:($(grep -nE 'sum = sum|i < 100_000' Jobs.java | cut -d : -f 1 | paste -sd '|')) Jobs\.spin\$" \
	"the report by line has lines of methods"
countersink export -f perf.data -o work.data work.pb.gz
like "$(strings work.data)" 'Jobs\.spin at Jobs\.java:[0-9]' "perf.data has the method with its file and line"
if have perf; then
	like "$(perf script -F ip,sym -i work.data 2>&1)" ' Jobs\.spin' "perf script reads the method"
else
	skip "perf script reads the method" "perf is not installed"
fi
countersink export -f callgrind -o work.callgrind work.pb.gz
like "$(grep -A1 -E '^(f[lie]|cfi)=(\([0-9]+\) ?)?Jobs\.java' work.callgrind)" 'fn=.*Jobs' "the callgrind export has methods below their file"
line=$(grep -n 'long end = ' Jobs.java | cut -d : -f 1)
like "$(countersink export -f speedscope work.pb.gz)" "\"name\":\"Jobs\.spin\",\"file\":\"Jobs\.java\",\"line\":${line}[,}]" \
	"exports have the file and the first line"
countersink export -o page.html work.pb.gz
like "$(grep -c 'Jobs\.java' page.html)" '^[1-9]' "the page has the methods' file"
done_testing

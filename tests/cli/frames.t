#!/bin/sh
# Frames of Python, PHP, Perl and Ruby in stacks: every function, file and line as the interpreter itself reports them, in the
# place of its evaluator, in each version that is installed; of Python, what --frames does, reports and exports, the gate,
# forked children, environment alone. See frames_languages.t for these of the other languages.
. "$(dirname "$0")/lib.sh"

FRAMES=$SRC/tests/frames
have python3 || skip_all "python3 is not installed"
PYTHON=$(python3 -c 'import sys; print(sys.executable)') # python3 itself may be a script that chooses one

"$FRAMES/pythons" >pythons

for version in 3.6 3.7 3.8 3.9 3.10 3.11 3.12 3.13; do
	grep -q " $version\$" pythons || skip "every frame of CPython $version is right" "CPython $version is not installed"
done
while read -r python version; do
	sample_faults "$python" "$FRAMES/truth.py" truth.json
	is "$?:$(cat out err)" "0:" "CPython $version ($python) runs as without countersink"
	like "$(python3 -B "$FRAMES/compare.py" truth.json truth.pb.gz)" '^[5-9][0-9][0-9] stacks, [0-9]+ frames, 0 missing, 0 false$' \
		"CPython $version ($python): every function, file and line of every frame is right"
done <pythons

# ---- a line table that is too long to be recorded

"$PYTHON" -c '
print("def work(n):\n    x = 0\n    for i in range(n):")
for i in range(12000):
    print("        x = (x * 3 + %d) %% 1000003" % i)
print("    return x\nwork(600)")' >long.py
countersink -q -o long.pb.gz -- "$PYTHON" long.py >out 2>&1
countersink report --all long.pb.gz >out 2>&1
like "$(cat out)" ' long\.py +work$' "a function whose line table is not recorded has its name"
like "$(cat out)" 'lines of 1 function are not known: the line table could not be read, or has more than the 64 KB' \
	"a line table that is not recorded is reported"
countersink report --all --by line long.pb.gz >out 2>&1
is "$(awk '/long\.py:1 / && $1 > 1' out)" "" "--by line: the time of a function without a line table is not that of its first line"

# ---- PHP, Perl and Ruby

share() { # INNER OUTER: of what folded stacks with INNER weigh, how many percent have OUTER, too; and the weights
	awk -v inner="$1" -v outer="$2" '
		index($0, inner) { all += $NF; if (index($0, outer)) with += $NF }
		END { printf "%d of %d and %d\n", all ? 100 * with / all : 0, with, all }'
}
language() { # NAME COMMAND PROGRAM
	sample_faults "$2" "$FRAMES/$3" truth.json
	is "$?:$(cat out err)" "0:" "$1 runs as without countersink"
	like "$(python3 -B "$FRAMES/compare.py" truth.json truth.pb.gz)" '^[5-9][0-9][0-9] stacks, [0-9]+ frames, 0 missing, 0 false$' \
		"$1: every function, file and line of every frame is right"
}
if [ "$(php -r 'echo PHP_MAJOR_VERSION . "." . PHP_MINOR_VERSION . PHP_ZTS . class_exists("FFI");' 2>/dev/null)" = 8.201 ]; then
	language 'PHP 8.2' php truth.php
else
	skip "every frame of PHP 8.2 is right" "PHP 8.2 with FFI and without ZTS is not installed"
fi
if [ "$(perl -MConfig -e 'print "$Config{PERL_VERSION} $Config{useithreads}"')" = '36 define' ]; then
	language 'Perl 5.36' perl truth.pl
	countersink -q -F 2000 -o names.pb.gz -- perl "$FRAMES/names.pl" >out 2>&1
	for name in größe naïve_Ā; do
		like "$(countersink report --all names.pb.gz)" " Straße::$name\$" "Perl: the name of a sub is UTF-8: $name"
	done
	countersink report --all names.pb.gz >out 2>&1
	is "$(grep -oE 'closure_[1-4]$' out | sort -u | wc -l)" 4 "Perl: closures of one sub have the names they were given"
	is "$(grep -oE 'made_[1-8]$' out | sort -u | wc -l)" 8 "Perl: subs evaluated at one address, file and line have their own names"
	is "$(countersink export -f folded names.pb.gz | grep -F 'main::bottom' | grep -cF '(main);')" 0 \
		"Perl: a stack that is cut does not begin with (main)"
	countersink -q -F 10000 -o threads.pb.gz -- perl "$FRAMES/threads.pl" >out 2>&1
	is "$?:$(cat out)" "0:1000100000" "a Perl program with threads has its output and status"
	countersink export -f folded threads.pb.gz >out
	like "$(share perl_clone main::start <out)" '^(9[0-9]|100) ' "Perl: a thread that starts another one has its own frames meanwhile"
	like "$(grep start_thread out | share shared.so main::work)" '^(9[0-9]|100) ' "Perl: a thread that uses a shared variable has its own frames meanwhile"
else
	skip "every frame of Perl 5.36 is right" "Perl 5.36 with threads is not installed"
fi
if [ "$(ruby -rrbconfig -e 'print RUBY_VERSION[0, 4], RbConfig::CONFIG["ENABLE_SHARED"], RUBY_PLATFORM[0, 6]' 2>/dev/null)" = 3.1.yesx86_64 ]; then
	language 'Ruby 3.1' ruby truth.rb
	countersink -q -F 5000 -o shares.pb.gz -- ruby "$FRAMES/shares.rb" 600 >out 2>&1
	like "$(countersink export -f folded shares.pb.gz)" ';<main>;work;three [0-9]+$' \
		"Ruby: callee below caller, without the evaluator and what it calls between"
	# A call of the evaluator whose frame is not pushed yet, or popped already, is the evaluator's own.
	like "$(countersink export -f folded shares.pb.gz | share ';' rb_vm_exec)" '^[01] ' "Ruby: the evaluator is not beside its functions"
	cat >eval.rb <<'END'
eval('def inner(n) n.times { |i| i * i % 7 } end; def outer(n) inner(n) end', nil, "")
def caller_of_both() 20.times { outer(100_000) } end
caller_of_both
END
	countersink -q -F 5000 -o eval.pb.gz -- ruby eval.rb >out 2>&1
	like "$(countersink export -f folded eval.pb.gz)" ';caller_of_both;.*;outer;inner;' "Ruby: evaluated functions without a file's name have their callers"
	countersink -q -F 5000 -o deep.pb.gz -- ruby "$FRAMES/deep.rb" 200 >out 2>&1
	countersink export -f folded deep.pb.gz | sed -E 's/\[libruby[^;]*\];//g' >deep
	is "$(grep -c 'many;within;rb_ary_each;' deep | sed 's/[1-9].*/some/'):$(grep -c 'many;rb_ary_each;' deep)" some:0 \
		"Ruby: where functions of Ruby are cut, a function in C is below the one that called it"
	is "$(grep -c 'rb_yield;block in each_time;each_time;within' deep | sed 's/[1-9].*/some/'):$(grep -c ';each_time;block in each_time;each_time;within' deep)" some:0 \
		"Ruby: where native frames are cut, a function in C is below the one that called it"
else
	skip "every frame of Ruby 3.1 is right" "Ruby 3.1 for x86-64, as a shared library, is not installed"
fi
countersink -o other.pb.gz -- env LD_PRELOAD="$TARGETS/other_versions.so" "$TARGETS/burn" 50 >out 2>err
is $? 0 "an interpreter of an unsupported version: the program has its status"
like "$(cat err)" 'PHP frames are not read: only version 8\.2 is supported' "PHP of an unsupported version: the report has the reason"
like "$(cat err)" 'Perl frames are not read: only version 5\.36 with threads is supported' \
	"Perl of an unsupported version: the report has the reason"
like "$(cat err)" ' burn_60$' "an interpreter of an unsupported version: stacks are native ones"
is "$(grep -c 'Ruby frames are not read: only version 3\.1 for x86-64, as a shared library, is supported' err)" 1 \
	"Ruby of an unsupported version: the report has one line with the reason"

# ---- reports

plain=$("$PYTHON" "$FRAMES/slow.py")
countersink -o slow.pb.gz -- "$PYTHON" "$FRAMES/slow.py" >out 2>err
is "$?:$(cat out)" "0:$plain" "a Python program has its output and status"
like "$(cat err)" '^ +[0-9.]+ +[0-9.]+ m?s +[0-9.]+ +[0-9.]+ m?s +slow\.py +score$' \
	"the report has a row for a Python function, with its file as the module"
countersink report --all slow.pb.gz >out 2>&1
like "$(cat out)" ' slow\.py +(Parser\.)?parse$' "the report names a method"
like "$(cat out)" ' slow\.py +(main\.<locals>\.)?<lambda>$' "the report names a lambda expression"
like "$(cat out)" ' slow\.py +in_child$' "the report names a function that only a forked child runs"
countersink report --all --by line slow.pb.gz >out 2>&1
like "$(cat out)" ' slow\.py:1[345] score$' "report --by line has lines of Python"
countersink report --tree slow.pb.gz >out 2>&1
like "$(grep -A1 'parse *slow.py' out)" 'score +slow\.py' "the tree has callee below caller, without the evaluator between"
like "$(countersink export -f folded slow.pb.gz)" '<module>;.*main;.*parse;.*score' "an export has the Python functions in order"


# ---- functions of one name, source, versions

mkdir -p old new
cat >old/names.py <<'END'
class Board:
    def score(self, n):
        total = 0
        for i in range(n):
            total += i * i % 7
        return total

first = lambda x: x * 3 % 11
second = lambda x: -x % 11

def main():
    for _ in range(40):
        Board().score(20000)
        sorted(range(8000), key=first)
        sorted(range(8000), key=second)

main()
END
sed '1i # a line more\n' old/names.py >new/names.py
cp new/names.py renamed.py
for side in old/names.py new/names.py renamed.py; do
	countersink -q -F 5000 -o "$(dirname $side)-$(basename $side .py).pb.gz" -- "$PYTHON" $side >out 2>&1
done
countersink report --all old-names.pb.gz >out 2>&1
is "$(grep -cE ' names\.py +<lambda>:[89]$' out)" 2 "the report distinguishes functions of one name in one file by their lines"
like "$(countersink export -f folded old-names.pb.gz)" ';<lambda>:8 ' "an export distinguishes functions of one name in one file"
countersink report --annotate score old-names.pb.gz >out 2>&1
like "$(cat out)" '^ +[0-9.]+ +[0-9.]+ +5  +total \+= i \* i % 7$' "--annotate shows the line of Python that costs, with its weight"
unlike "$(cat out)" 'disassembly|ELF' "--annotate looks for no instructions of a Python function"
countersink report --annotate '<lambda>:9' old-names.pb.gz >out 2>&1
like "$(cat out)" '^ +[0-9.]+ +[0-9.]+ +9  second = lambda' "--annotate takes one of several functions of a name by its line"
unlike "$(cat out)" '^ +[0-9.]+ +[0-9.]+ +8  first' "--annotate leaves the other functions of the name out"
for side in new-names .-renamed; do
	countersink diff --all old-names.pb.gz $side.pb.gz >out 2>&1
	is "$(grep -cE ' (<lambda>:1[01]|(Board\.)?score)$' out):$(grep -cE ' (<lambda>:[89])$' out)" "3:0" \
		"diff finds functions again whose directory, line or script's name changed ($side)"
done

like "$(countersink export -f callgrind slow.pb.gz | grep -E '^(c?f[ile]|c?fn)=' )" '^fn=.*score' "callgrind has a function of Python"
like "$(countersink export -f callgrind slow.pb.gz)" '^f[ile]=.*/slow\.py$|^f[ile]=\([0-9]+\) .*/slow\.py$' "callgrind has its source file"
like "$(countersink export -f speedscope slow.pb.gz)" '"name":"score","file":"[^"]*/slow\.py","line":11' "speedscope has the function with its file and line"
like "$(countersink export -f firefox slow.pb.gz | tr , '\n')" '"score"' "the Firefox Profiler's format has the function"
countersink export -f perf.data -o slow.perf.data slow.pb.gz
if have perf; then
	like "$(perf report --stdio --no-children -g none -s sym -i slow.perf.data 2>/dev/null)" ' score at slow\.py:11 *$' "perf names the function in our perf.data, with its file and first line"
	like "$(perf script -i slow.perf.data 2>/dev/null)" ' score at slow\.py:11\+0x[23] ' "perf script prints which line of the function it is, from its first"
else
	skip "perf names the function in our perf.data, with its file and first line" "perf is not installed"
	skip "perf script prints which line of the function it is, from its first" "perf is not installed"
fi
if have go; then
	like "$(go tool pprof -list '^score$' slow.pb.gz 2>/dev/null)" ' [0-9.]+(ms|s) +[0-9.]+(ms|s) +14: +total \+= i \* i % 7$' "pprof lists the lines of the function with their weights"
else
	skip "pprof lists the lines of the function with their weights" "go is not installed"
fi
countersink export -f callgrind -o slow.callgrind slow.pb.gz
if have callgrind_annotate; then
	like "$(callgrind_annotate --auto=yes slow.callgrind 2>&1)" '^ *[0-9,]+ +\( *[0-9.]+%\).* +total \+= i \* i % 7$' "callgrind_annotate shows the source with weights per line"
else
	skip "callgrind_annotate shows the source with weights per line" "callgrind_annotate is not installed"
fi
countersink export -f firefox slow.pb.gz >firefox.json
is "$("$PYTHON" - firefox.json <<'END'
import json, sys
p = json.load(open(sys.argv[1]))
texts, sources = p["shared"]["stringArray"], p["shared"]["sources"]
for thread in p["threads"]:
    f = thread["funcTable"]
    for name, source, line in zip(f["name"], f["source"], f["lineNumber"]):
        if texts[name] == "score":
            print(texts[sources["filename"][source]].split("/")[-1], line)
    assert len(f["source"]) == len(f["lineNumber"]) == f["length"]
END
)" "$(printf 'slow.py 11\nslow.py 11')" "the Firefox Profiler's format has the function's file and line, in each process"

# ---- --frames

countersink --frames=native -o native.pb.gz -- "$PYTHON" "$FRAMES/slow.py" >out 2>err
is "$?:$(cat out)" "0:$plain" "--frames=native: the program has its output and status"
countersink report --all native.pb.gz >native 2>&1
like "$(cat native)" ' of CPU time in ' "--frames=native: a report is printed"
unlike "$(cat native)" ' slow\.py +[a-z_]+$' "--frames=native: no frames of Python are reported"
countersink --frames=both -o both.pb.gz -- "$PYTHON" "$FRAMES/slow.py" >out 2>err
countersink export -f folded both.pb.gz >both
countersink export -f folded slow.pb.gz >auto
like "$(cat both)" 'main;.*score' "--frames=both has the Python functions"
evaluated() { # of 100 stacks through score(), in how many the evaluator is
	awk '/;score/ { nr++; evaluated += /;_PyEval_EvalFrameDefault/ } END { print nr ? int(100 * evaluated / nr) : -1 }' "$1"
}
ok "--frames=both keeps the evaluator's native frames beside them ($(evaluated both) % of the stacks)" test "$(evaluated both)" -gt 90
ok "by default the evaluator is not beside its functions ($(evaluated auto) % of the stacks)" test "$(evaluated auto)" -lt 30
countersink --frames=some -- true >out 2>err
is $? 125 "--frames with an unknown word: status 125"
like "$(cat err)" "option --frames: 'some' is unknown" "--frames with an unknown word: the error names it"

# ---- the gate

sed 's/range(n):/range(2 * n):/' new/names.py >slower.py
countersink gate -F 5000 --runs 16 --update-baseline -b base.pb.gz -- "$PYTHON" old/names.py >out 2>err
is "$?:$(cat out)" "0:" "the gate: a baseline of a Python program is made"
# At a tenth of the default rate, as in frames_languages.t: else an unchanged function is blamed in up to one of 100 gates, as promised.
for other in "--vs=$PYTHON old/names.py" "--baseline=base.pb.gz"; do
	countersink gate -F 5000 --runs 16 --alpha=0.1% "$other" -- "$PYTHON" slower.py >out 2>err
	is $? 3 "the gate, ${other%%=*}: a Python function that got slower fails it"
	like "$(cat out)" '^not ok [0-9]+ - (Board\.)?score at slower\.py:4 regressed: ' \
		"the gate, ${other%%=*}: the function is named, with file and line, by another name of the script"
	# The runs of a baseline are not made in turns with those of now: what the machine does beside them may differ.
	[ "${other%%=*}" = --baseline ] ||
		is "$(grep -cE '^not ok .*(<lambda>|main) at ' out)" 0 "the gate, ${other%%=*}: no other Python function is blamed"
	is "$(grep -cE ' - <lambda> at .* (new|gone) \(' out)" 0 \
		"the gate, ${other%%=*}: functions of one name are found again, each by its line"
done

# ---- frames that stand for no function

cat >class.py <<'END'
class Made:
    def __init__(self, x):
        self.x = x

def makes():
    for i in range(1500000):
        Made(i)

makes()
END
while read -r python version; do
	[ "$version" = 3.13 ] || continue
	countersink -q -o class.pb.gz -- "$python" class.py >out 2>&1
	countersink export -f folded class.pb.gz >class 2>err
	like "$(cat class)" ';makes;(Made\.)?__init__ ' "CPython $version: a class's __init__() is below the call"
	unlike "$(cat class)" ';makes;__init__' "CPython $version: the frame that checks the result of __init__() is not in the stack"
done <pythons

while read -r python version; do
	case $version in 3.1[2-9]) ;; *) continue ;; esac
	countersink -q -F 5000 -o perf.pb.gz -- "$python" -X perf "$FRAMES/slow.py" >out 2>&1
	countersink export -f folded perf.pb.gz >perf 2>err
	like "$(cat perf)" 'main;Parser\.parse;score' "CPython $version -X perf: a stack has callers above callees"
	is "$(grep -cE 'py::([^;]*):[^;]*;\1[; ]' perf)" 0 "CPython $version -X perf: no function is in its stack twice"
done <pythons

# ---- whose frames they are

countersink -q -F 5000 -o keep.pb.gz -- "$TARGETS/reloads" keep "$TARGETS/like_python.so" >out 2>&1
is "$?:$(cat out)" "3:unloaded, calls: 0" "CPython 3.12: no function that may allocate memory for the thread is called"
while read -r python version; do
	case $version in 3.[6-9] | 3.1[01]) ;; *) continue ;; esac
	library=$("$python" -c 'import sysconfig as s; print("/".join(map(s.get_config_var, ["LIBDIR", "INSTSONAME"])))')
	[ "${library%.a}" = "$library" ] && [ -e "$library" ] || continue
	"$TARGETS/lent_state" "$library" >out 2>&1
	[ $? = 3 ] || continue # a debug build aborts by itself
	countersink -q -F 2000 -o lent.pb.gz -- "$TARGETS/lent_state" "$library" >out 2>&1
	is "$?:$(cat out)" "3:" "CPython $version ($library): a program whose thread creates the state of another thread runs as without countersink"
	countersink export -f folded lent.pb.gz >lent 2>err
	is "$(grep -c 'only_native.*;lent' lent)" 0 "CPython $version: a thread that runs no Python has no frames of another thread's state"
done <pythons

# ---- interpreters that come and go

"$TARGETS/reloads" "$TARGETS/like_python.so" >plain 2>&1
is "$?" 3 "without us: a program that loads and unloads an interpreter has its status"
countersink -q -F 5000 -o reloads.pb.gz -- "$TARGETS/reloads" "$TARGETS/like_python.so" >out 2>&1
is "$?:$(cat out)" "3:$(cat plain)" "no function of an interpreter is called during or after its unloading"

# ---- interpreters whose frames are not read

not_read() { # OBJECT REASON TITLE
	countersink -o not.pb.gz -- "$TARGETS/reloads" keep "$TARGETS/plugs/like_python_$1.so" >out 2>err
	is "$?:$(cat out)" "3:unloaded, calls: 0" "$3: the program runs as without countersink"
	is "$(grep -c "$2" err)" 1 "$3: the report has one line with the reason"
}
not_read next "Python frames are not read: only CPython 3\.6 to 3\.14 is supported" "an unsupported version of CPython"
not_read free "Python frames are not read: free-threaded builds are not supported" "a free-threaded CPython"
not_read pypy "Python frames are not read: PyPy is not supported" "PyPy"
for i in 1 2 3 4 5; do cp "$TARGETS/like_python.so" "like$i.so"; done
countersink -o many.pb.gz -- "$TARGETS/reloads" keep "$TMP/like1.so" "$TMP/like2.so" "$TMP/like3.so" "$TMP/like4.so" >out 2>err
is "$(grep -c 'a further interpreter' err)" 0 "four interpreters in a process: none is left out"
countersink -o many.pb.gz -- "$TARGETS/reloads" keep "$TMP/like1.so" "$TMP/like2.so" "$TMP/like3.so" "$TMP/like4.so" "$TMP/like5.so" >out 2>err
is "$?:$(sort -u out)" "3:unloaded, calls: 0" "five interpreters in a process: the program runs as without countersink"
is "$(grep -c 'frames of a further interpreter are not read: only of the first 4' err)" 1 "five interpreters in a process: the report says that only four are read"

# ---- lazy binding

countersink -q -F 5000 -o lazy.pb.gz -- "$TARGETS/reloads" keep "$TARGETS/plugs/like_python_lazy.so" >out 2>&1
is "$?:$(cat out)" "3:unloaded, calls: 0" "lazy binding: a function of the interpreter whose calls are not bound yet is not called in the handler"
LIKE_PYTHON_BINDS=1 countersink -q -F 5000 -o lazy.pb.gz -- "$TARGETS/reloads" keep "$TARGETS/plugs/like_python_lazy.so" >out 2>&1
like "$?:$(cat out)" "^3:unloaded, calls: [1-9]" "lazy binding: it is called after the interpreter has bound its calls"

# ---- environment alone, phases, time off the CPU

LD_PRELOAD=$ENTRY COUNTERSINK_OUTPUT=$TMP/alone.pb.gz "$PYTHON" "$FRAMES/slow.py" >out 2>err
is "$?:$(cat out)" "0:$plain" "environment alone: the program has its output and status"
like "$(countersink report --all alone.pb.gz 2>&1)" ' slow\.py +score$' "environment alone: functions of Python are named"
LD_PRELOAD=$ENTRY COUNTERSINK_OUTPUT=$TMP/alone2.pb.gz COUNTERSINK_FRAMES=native "$PYTHON" "$FRAMES/slow.py" >out 2>err
countersink report --all alone2.pb.gz >native 2>&1
like "$(cat native)" ' of CPU time in ' "environment alone, COUNTERSINK_FRAMES=native: a report is printed"
unlike "$(cat native)" ' slow\.py +[a-z_]+$' "environment alone, COUNTERSINK_FRAMES=native: no frames of Python are reported"
cat >blocks.py <<'END'
import ctypes
import os
import subprocess
import threading
import time


def locks(lock):
    with lock:
        pass


def reads(fd):
    return os.read(fd, 1)


def main():
    library = ctypes.CDLL(None)
    library.csink_phase_begin(b"sleeping")
    time.sleep(0.2)
    library.csink_phase_end()
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=locks, args=(lock,))
    thread.start()
    library.csink_phase_begin(b"waiting")
    subprocess.run(["sh", "-c", 'until grep -q "^State:.S" /proc/$PPID/status; do :; done; sleep 0.3'])
    library.csink_phase_end()
    lock.release()
    thread.join()
    from_pipe, to_pipe = os.pipe()
    threading.Thread(target=writes, args=(to_pipe,)).start()
    reads(from_pipe)


def writes(fd):  # 0.2 s after the process's first thread has begun to wait
    while ") S " not in open("/proc/self/stat").read():
        time.sleep(0.001)
    time.sleep(0.2)
    os.write(fd, b"x")


main()
END
countersink --off-cpu -o off.pb.gz -- "$PYTHON" blocks.py >out 2>err
is "$?:$(cat out)" "0:" "--off-cpu: a Python program that blocks has its output and status"
if ! grep -q 'off-cpu is not counted' err; then
	countersink report --all --by line -e off-cpu off.pb.gz >lines 2>&1
	at_least_100_ms() { # whether a line of the report has 0.1 s or more with what it calls
		awk -v place=" blocks.py:$1" 'index($0 " ", place " ") { ms = $5 * ($6 == "s" ? 1000 : $6 == "ms"); if (ms > 100) found = 1 }
			END { exit !found }' lines
	}
	ok "--off-cpu names the Python line that sleeps" at_least_100_ms "20 main"
	ok "--off-cpu names the Python line that waits for a lock, in its thread" at_least_100_ms "9 locks"
	ok "--off-cpu names the Python line that waits for a child" at_least_100_ms "27 main"
	ok "--off-cpu names the Python line that waits for a pipe" at_least_100_ms "14 reads"
	like "$(countersink report --by phase -e off-cpu off.pb.gz 2>&1)" ' sleeping$' "--off-cpu: a phase that Python begins has the time that it sleeps"
	like "$(countersink report --by phase -e off-cpu off.pb.gz 2>&1)" ' waiting$' "--off-cpu: a phase that Python begins has the time that it waits for a child"
else
	skip "--off-cpu names the Python lines that block, phases their time" "switches cannot be sampled here"
fi
done_testing

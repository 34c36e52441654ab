#!/bin/bash
# Small limits: a small stack, little data, small files. The launcher and its command work as far as they can; a line reports
# the limit that stopped them, and no kernel signal ends a process because of us.
. "$(dirname "$0")/lib.sh"

mkdir place && chmod 777 place && cd place || exit 1
TMPDIR=$TMP/place
export TMPDIR
BURN=$TARGETS/burn
countersink -q -o a.pb.gz -- "$BURN" 50 >/dev/null || exit 1
cp a.pb.gz b.pb.gz
: >lock

# ---- the stack, and data

while read -r limit; do
	while read -r status command; do
		# shellcheck disable=SC2086 # the row's words
		(ulimit $limit && exec timeout -s KILL 60 "$COUNTERSINK" $command >out 2>err)
		got=$?
		# Too little memory is an error with a line, for those that hold much at once.
		if [ "$limit" = "-d 2000" ] && [ $got != "$status" ] && [ $got -lt 126 ] && grep -Eq 'memory|unavailable' err; then
			got=$status
		fi
		is $got "$status" "ulimit $limit: ${command/$$/PID}"
	done <<-ROWS
		7 run -o s.pb.gz -- sh -c exit\${IFS}7
		0 run -o s.html --timeline --off-cpu -- $BURN 20
		7 stat -e task-clock,page-faults -- sh -c exit\${IFS}7
		7 stat -j -o s.json -- sh -c exit\${IFS}7
		7 attach -o s.pb.gz -- sh -c exit\${IFS}7
		0 attach -q -o s.pb.gz -d 0.05 -p $$
		0 report a.pb.gz
		0 report --tree --all a.pb.gz
		0 report --callers spin a.pb.gz
		0 report --annotate spin a.pb.gz
		0 report --json a.pb.gz
		0 export -f html -o s.html a.pb.gz
		0 export -f perf.data -o s.data a.pb.gz
		0 export -f firefox -o s.json a.pb.gz
		0 diff --stacks a.pb.gz b.pb.gz
		0 merge -q -o m.pb.gz a.pb.gz b.pb.gz
		0 gate -q --runs 2 --warmup 0 --json s.json --junit s.xml --html s.html --vs true -- true
		0 gate -q --runs 2 -b base.pb.gz --update-baseline -- true
		0 events -j page-faults
		0 persist list
		0 completion bash
		7 reserve --lock-file=lock -- sh -c exit\${IFS}7
		0 help gate
	ROWS
done <<-ROWS
	-s 64
	-d 2000
ROWS

# Stacks as deep as a profile may have them.
if have python3; then
	python3 - <<-END
		import gzip
		depth = 65000
		def number(x):
		    out = b''
		    while x >= 128:
		        out += bytes([x & 127 | 128])
		        x >>= 7
		    return out + bytes([x])
		def field(key, text):
		    return number(key << 3 | 2) + number(len(text)) + text
		def value(key, x):
		    return number(key << 3) + number(x)
		def profile(depth, functions):
		    ids = [number(i % functions + 1) for i in range(depth)]
		    parts = [field(1, value(1, 1) + value(2, 2))]
		    parts.append(field(2, field(1, b''.join(ids)) + field(2, number(10))))
		    parts.append(field(2, field(1, b''.join(ids[depth // 2:])) + field(2, number(5))))
		    for i in range(functions):
		        parts.append(field(4, value(1, i + 1) + value(3, 4096 + i) + field(4, value(1, i + 1) + value(2, i + 1))))
		        parts.append(field(5, value(1, i + 1) + value(2, i + 3)))
		    for text in [b'', b'samples', b'count'] + [b'f%d' % i for i in range(functions)]:
		        parts.append(field(6, text))
		    return gzip.compress(b''.join(parts), 1)
		open('deep.pb.gz', 'wb').write(profile(depth, depth))
		open('same.pb.gz', 'wb').write(profile(depth, 1))
		open('deeper.pb.gz', 'wb').write(profile(100000, 10))
	END
	for file in deep same; do
		while read -r command; do
			# shellcheck disable=SC2086 # the row's words
			(ulimit -s 64 && exec timeout -s KILL 60 "$COUNTERSINK" $command $file.pb.gz >out 2>err)
			is $? 0 "65000 frames, $file, ulimit -s 64: $command"
		done <<-ROWS
			report
			report --all --tree --fold 0
			report --callers f0
			report --annotate f0
			report --json
			$(formats 'export -f %s -o s.out')
			diff --stacks same.pb.gz
			diff --html s.out same.pb.gz
			merge -q -o m.pb.gz same.pb.gz
		ROWS
	done
	countersink report deeper.pb.gz 2>err
	is "$? $(cat err)" "1 countersink: deeper.pb.gz: a sample of more than 65536 frames" "100000 frames are refused in one line"
else
	skip "deep stacks" "no python3"
fi

# ---- the size of files

limited() {
	local blocks=$1
	shift
	(ulimit -f "$blocks" && exec timeout -s KILL 60 "$@")
}
said='files are limited to 1024 bytes \(RLIMIT_FSIZE, ulimit -f\)'
limited 1 countersink --no-report -o f.pb.gz -- sh -c 'exit 7' 2>err
is $? 7 "ulimit -f 1: run's status is the command's"
like "$(cat err)" "^countersink: cannot record in .*: $said; the program runs without being profiled" "ulimit -f 1: the library reports the limit"
limited 1 env LD_PRELOAD="$LIB" COUNTERSINK_OUTPUT="$TMP/place/g.pb.gz" sh -c 'exit 7' 2>err
is $? 7 "ulimit -f 1 with LD_PRELOAD alone: the status is the program's"
like "$(cat err)" "^countersink: cannot record in .*: $said; the program runs without being profiled" "ulimit -f 1 with LD_PRELOAD alone: the limit is reported"
rm -f out.html
limited 1 countersink export -o out.html a.pb.gz 2>err
is $? 1 "ulimit -f 1: export fails"
like "$(cat err)" "^countersink: out.html: $said; choose another output file" "ulimit -f 1: export reports the limit"
ok "ulimit -f 1: export leaves no partial file" sh -c 'set -- out.html*; [ ! -e "$1" ]'
limited 1 countersink stat -j -o stat.json -- sh -c 'exit 7' 2>err
is $? 7 "ulimit -f 1: stat's status is the command's"
like "$(cat err)" "stat.json: $said; the missing output is on standard error" "ulimit -f 1: stat reports the limit"
limited 1 countersink report --json a.pb.gz >out 2>err
is $? 1 "ulimit -f 1: standard output is a file: status 1"
like "$(cat err)" "^countersink: standard output: $said" "ulimit -f 1: standard output: the limit is reported"
limited 0 countersink -q -o f.pb.gz -- sh -c 'exit 7' 2>/dev/null
is $? 7 "ulimit -f 0: the status is the command's"

# The command gets the signal as without us.
cat >large <<-'END'
	head -c 4096 /dev/zero >big
	echo $?
	trap '' XFSZ
	head -c 4096 /dev/zero >big
	echo $?
END
limited 1 sh large >want 2>/dev/null
for how in 'countersink -q -o f.pb.gz --' 'countersink stat -o stat.txt --' 'countersink attach -q -o f.pb.gz --' \
	'countersink reserve --lock-file=lock --'; do
	# shellcheck disable=SC2086 # words
	limited 1 $how sh large >got 2>/dev/null
	is "$(cat got)" "$(cat want)" "the command's own SIGXFSZ: $how"
done
(trap '' XFSZ && limited 1 sh large) >want 2>/dev/null
(trap '' XFSZ && limited 1 countersink -q -o f.pb.gz -- sh large) >got 2>/dev/null
is "$(cat got)" "$(cat want)" "an ignored SIGXFSZ stays ignored"

done_testing

#!/bin/bash
# What must get faster for a run to end sooner: run --wall, report --wall and --parallelism. Shares only: on a loaded machine
# threads do not run together, but the run's figures still agree with each other.
. "$(dirname "$0")/lib.sh"

share() { # FILE FUNCTION TYPE [OPTION]...: percent of all
	"$COUNTERSINK" report --wall --json "${@:4}" "$1" | python3 -c '
import json, sys
report = json.load(sys.stdin)
total = sum(row["values"][sys.argv[2]] for row in report["rows"])
print(round(100 * sum(row["values"][sys.argv[2]] for row in report["rows"] if row["name"] == sys.argv[1]) / total, 2))' "$2" "$3"
}
at_least() { # A B SLACK NAME
	ok "$4 ($1, $2)" awk -v a="$1" -v b="$2" -v slack="$3" 'BEGIN { exit !(a + slack >= b) }'
}

# ---- a pool with a serial part: 1 of 7 of the CPU time, 1 of 4 of the time where there are two free CPUs
"$COUNTERSINK" run --wall -e task-clock -F 4000 -o p.pb.gz -- "$TARGETS/parallel" pool 300 >out 2>err
is $? 0 'a pool of threads runs under --wall'
like "$(cat err)" '^ +self % +self +total % +total +wall % +critical % +module +function$' 'run --wall prints both columns'
like "$(cat err)" '^  wall +weights add up to [0-9.]+ m?s of [0-9.]+ m?s in which the run ran, on [0-9.]+ of [0-9]+ CPUs on average' \
	'the head compares the sum of weights with the time that the run ran'
like "$(cat err)" '^  critical +[0-9]+ steps? between threads, [0-9]+ of them ambiguous' 'the head has the steps of the critical path'
is_incomplete() { # FILE: 1 where the path has less than 75 % of the time; on a loaded machine others may, or may not
	"$COUNTERSINK" report --wall --json "$1" | python3 -c '
import json, sys
wall = json.load(sys.stdin)["wall"]
print(int(wall["critical_ns"] < 0.75 * wall["ran_ns"]))'
}
for ((try = 0; try < 20; try++)); do
	"$COUNTERSINK" run -q --wall -e task-clock -F 4000 -o h.pb.gz -- "$TARGETS/parallel" handoffs 200 >out 2>handoffs
	[ "$(is_incomplete h.pb.gz)" = 1 ] && break
done
[ $try -lt 20 ] || skip 'the warning of an incomplete critical path' 'load by others: all paths were complete'
for profile in p h; do
	is "$("$COUNTERSINK" report --wall $profile.pb.gz | grep -c '^  warning  *critical % is not reliable: the path has samples of [0-9]* % of the time')" \
		"$(is_incomplete $profile.pb.gz)" "$profile: an incomplete critical path is reported"
done
is "$("$COUNTERSINK" report --wall --no-pager p.pb.gz | grep -EA3 '^ +self % .*critical %' | tail -n+2 | wc -l)" 3 'report --wall prints a table'
cpu=$(share p.pb.gz pool_serial task-clock)
wall=$(share p.pb.gz pool_serial wall)
critical=$(share p.pb.gz pool_serial critical)
at_least "$cpu" 8 0 'the serial part has its CPU time'
at_least 22 "$cpu" 0 'and not more'
at_least "$wall" "$cpu" 2 'the serial part has as much of the time at least as of CPU time'
at_least "$critical" "$cpu" 2 'and as much of the critical path'
at_least 45 "$wall" 0 'but not much more than a quarter'
ok 'rows are in order of critical %' python3 -c '
import csv, sys
rows = [int(row["critical"]) for row in csv.DictReader(sys.stdin)]
sys.exit(len(rows) < 3 or rows != sorted(rows, reverse=True))' < <("$COUNTERSINK" report --wall --csv p.pb.gz)
at_least "$(share p.pb.gz pool_serial task-clock --parallelism=1)" "$cpu" 2 'what ran alone has the serial part'
like "$("$COUNTERSINK" report --parallelism=1-65535 p.pb.gz)" 'filter +--parallelism 1-65535: (9[0-9]|100)\.[0-9]+ % of all' \
	'--parallelism is reported, and implies --wall'
ok 'the self-check adds up' python3 -c '
import json, subprocess, sys
wall = json.loads(subprocess.run(sys.argv[1:], capture_output=True, check=True).stdout)["wall"]
sys.exit(not (0.8 < wall["weights_ns"] / wall["ran_ns"] < 1.25 and wall["cpu_ns"] >= wall["ran_ns"] * 0.99 and wall["steps"] > 4))' \
	"$COUNTERSINK" report --wall --json p.pb.gz

# ---- make -j2: processes
COUNTERSINK_WALL=1 "$COUNTERSINK" run -e task-clock -F 4000 -o m.pb.gz -- "$TARGETS/parallel" make 300 >out 2>err
is "$? $(grep -c 'wall %' err)" '0 1' 'COUNTERSINK_WALL=1 is --wall'
at_least "$(share m.pb.gz make_link wall)" "$(share m.pb.gz make_link task-clock)" 2 'make: the last step has its part of the time'
at_least "$(share m.pb.gz make_link critical)" "$(share m.pb.gz make_link task-clock)" 2 'make: and is critical'
at_least "$(share m.pb.gz make_small task-clock)" "$(share m.pb.gz make_small critical)" 2 'make: small jobs beside a long one are not'

# ---- recordings, exports
"$COUNTERSINK" run --wall -q -e task-clock -o x.html -- "$TARGETS/parallel" chunks 50
# 0: a sample that stands for no time, seen once on a busy machine.
ok 'a page has the parallelism of each sample with a time' python3 -c '
import json, re, sys
of = json.loads(re.search("\"parallelism\":(\\[[0-9,]*\\])", open("x.html").read())[1])
none = sum(1 for each in of if not each)
sys.exit(len(of) < 10 or none > len(of) / 10 or any(0 < each < 100 for each in of))'
unlike "$("$COUNTERSINK" report --csv x.html.pb.gz | head -1)" 'critical' 'a profile that is written has no column of the report'
"$COUNTERSINK" run --wall -e task-clock -o y.folded -- "$TARGETS/parallel" chunks 50 2>err
is "$? $(grep -c 'critical % .*function$' err) $(grep -c chunk_ y.folded)" "0 1 $(grep -c chunk_ y.folded)" 'run --wall with an export'
mkdir shm
chmod 711 shm
XDG_RUNTIME_DIR=$TMP/shm LD_PRELOAD=$LIB COUNTERSINK_QUIET=1 COUNTERSINK_TIMELINE=1 bash -c '"$0" chunks 100; kill -KILL $$' \
	"$TARGETS/parallel" >out 2>&1
like "$("$COUNTERSINK" report --wall shm/*)" ' critical % .*function$' 'recordings of a killed program are reported with --wall'
"$COUNTERSINK" run -q -e cycles,task-clock --wall -o c.pb.gz -- "$TARGETS/parallel" chunks 100 2>/dev/null
[ -e c.pb.gz ] && ok 'a profile by any event has both columns' "$COUNTERSINK" report --wall c.pb.gz

# ---- bad input
"$COUNTERSINK" run -q -e task-clock -o n.pb.gz -- "$TARGETS/parallel" chunks 50
"$COUNTERSINK" report --wall n.pb.gz >out 2>err
is "$? $(cat out err)" '1 countersink: option --wall: the profile has no times of samples: countersink run --wall (or --timeline) records them' \
	'a profile without times: status 1'
COUNTERSINK_WALL=1 "$COUNTERSINK" report n.pb.gz >out 2>err
is "$? $(grep -c 'wall %' out) $(cat err)" '0 0 ' 'COUNTERSINK_WALL=1 of a profile without times changes nothing'
for bad in 0 3-1 1- -2 1-2-3 x 1-x 70000 1.5 ' 1'; do
	"$COUNTERSINK" report --parallelism="$bad" p.pb.gz >out 2>err
	is "$? $(cat out err)" "2 countersink: option --parallelism: '$bad' is neither a number of threads nor a range (1-2)" \
		"--parallelism=$bad: status 2"
done
"$COUNTERSINK" report --parallelism=60000 p.pb.gz >out 2>err
is "$? $(cat out err)" '1 countersink: no sample passes --parallelism 60000' 'a range without samples: status 1'
"$COUNTERSINK" report --wall --tree p.pb.gz >out 2>err
is $? 2 '--wall with --tree: status 2'
ok '--wall with rows by thread' "$COUNTERSINK" report --wall --by thread p.pb.gz
printf 'main;f 1\n' >f.folded
"$COUNTERSINK" report --wall f.folded >out 2>err
is $? 1 'stacks without times: status 1'
done_testing

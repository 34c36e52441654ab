# Real programs, for programs*.t: each run is checked for its output, its hot functions, its processes
# and threads, and its sum against the kernel's own accounting. The caller has sourced lib.sh and defines
#
#   run_as COMMAND...   run it as the including test's user, under its conditions
#
# shellcheck shell=sh disable=SC2154 # lib.sh sets SRC, TMP, TARGETS, COUNTERSINK

mkdir "$TMP/run"
chmod 777 "$TMP/run"
cd "$TMP/run" || exit 1

# Another python3 may be first on PATH, in a directory that only its owner can enter.
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3)

profile_options=

# profile NAME COMMAND...: profiles it with $profile_options; NAME.facts has the profile's contents, NAME.cpu what the
# kernel accounted.
profile() {
	profile_name=$1
	shift
	stolen_before=$(steal_counter)
	# shellcheck disable=SC2086 # several options
	run_as "$COUNTERSINK" $profile_options -o "$profile_name.pb.gz" -- "$TARGETS/rusage" "$profile_name.cpu" "$@" \
		>"$profile_name.out" 2>"$profile_name.err"
	profile_status=$?
	echo "stolen $(stolen_since "$stolen_before")" >"$profile_name.stolen"
	is $profile_status 0 "$profile_name: the status is as without us" || diag "$(cat "$profile_name.err")"
	"$SRC/tests/cli/profile_facts" "$profile_name.pb.gz" >"$profile_name.facts" 2>"$profile_name.why" ||
		diag "$(cat "$profile_name.why" "$profile_name.err")"
}

# The profile's CPU time against what the kernel accounted to the same processes: within 2 %, and what was stolen.
sums_up() { # NAME
	awk -v name="$1" '
	FILENAME ~ /cpu$/ { kernel = $1 }
	$1 == "stolen" { stolen = $2 }
	$1 == "total" { ours = $2 }
	END {
		off = kernel ? 100 * (ours - kernel) / kernel : 100
		printf "%s: profile %.1f ms, kernel %.1f ms, %+.2f %%, stolen %.0f ms\n", name, ours / 1e6, kernel / 1e6, off,
			stolen / 1e6
		exit !(off > -2 && ours <= 1.02 * kernel + stolen)
	}' "$1.cpu" "$1.stolen" "$1.facts"
}

# share KIND REGEX: percent of the total that rows of that kind (self, cum, label) have whose name matches.
share() {
	awk -v kind="$1" -v regex="$2" '
	$1 == "total" { total = $2 }
	$1 == kind { ns = $2; $1 = $2 = ""; sub(/^  /, ""); if ($0 ~ regex) sum += ns }
	END { printf "%.1f", total ? 100 * sum / total : 0 }' "$profile_name.facts"
}

# hot KIND REGEX LOW [HIGH] NAME
hot() {
	hot_share=$(share "$1" "$2")
	if awk -v share="$hot_share" -v low="$3" -v high="${5:+$4}" -v slack="$slack" 'BEGIN {
		exit !(share + slack >= low && (high == "" || share <= high + slack))
	}'; then
		tap_point 1 "$profile_name: ${5:-$4}"
	else
		tap_point 0 "$profile_name: ${5:-$4}"
		diag "$1 /$2/ has $hot_share %, wanted at least $3 ${5:+and at most $4}"
		diag "$(grep -E '^(total|self|label)' "$profile_name.facts" | head -n 12)"
		diag "$(head -n 12 "$profile_name.err")"
	fi
}

# programs SLACK: percent points that shares may lie further off than samples at 1 kHz would by chance.
programs() {
	slack=$1
	# A share p of n samples has a standard deviation of sqrt(p (1 - p) / n): with some 4,800 samples, and with 600 where they
	# come at the kernel's tick, these bounds are more than five of them away.
	profile_options='-F 4000'
	profile burn "$TARGETS/burn" $((slack ? 2400 : 1200))
	profile_options=
	hot cum '^burn_60$' 56 64 "60 % in the function that has 60 %"
	hot cum '^burn_30$' 26 34 "30 % in the function that has 30 %"
	hot cum '^burn_10$' 7.5 12.5 "10 % in the function that has 10 %"
	hot cum '^main$' 95 "main is the caller of all of it"
	ok "burn: CPU time agrees with the kernel's accounting" sums_up burn

	profile python "$python" -c '
def inner(n):
	return sum(i * i % 7 for i in range(n))
print(sum(inner(2000) for _ in range(9000)))'
	is "$(cat python.out)" "35991000" "python: the output is correct"
	hot cum 'PyEval' 60 "the interpreter's loop is hot"
	ok "python: CPU time agrees with the kernel's accounting" sums_up python

	head -c 3000000 "$TARGETS/rusty" >data
	chmod 644 data
	profile xz xz -k -f -c -6 data
	ok "xz: its output unpacks to its input" sh -c 'xz -dc xz.out | cmp - data'
	hot cum 'lzma' 60 "the compressor is hot"
	ok "xz: CPU time agrees with the kernel's accounting" sums_up xz

	profile sqlite3 sqlite3 :memory: '
		with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000000)
		select count(*), sum(i * i % 1000) from n where i % 3 <> 1;'
	like "$(cat sqlite3.out)" '^2000000\|' "sqlite3: the output is correct"
	hot cum '^sqlite3_' 60 "the library is hot"
	ok "sqlite3: CPU time agrees with the kernel's accounting" sums_up sqlite3

	cp "$SRC"/tests/targets/*.c "$SRC"/tests/targets/*.h .
	chmod 644 ./*.c ./*.h
	profile gcc gcc -O2 -Wall -D_GNU_SOURCE -c forks.c own_signals.c fdcheck.c exits.c threads8.c sigmask.c
	ok "gcc: the object file is written" test -s forks.o
	hot label '^process=.*cc1' 50 "the compiler proper, a child of gcc, is profiled"
	ok "gcc: the assembler, another child, is profiled" grep -Eq '^label [0-9]+ process=as$' gcc.facts
	ok "gcc: CPU time agrees with the kernel's accounting" sums_up gcc

	profile sh sh -c '"$0"/burn 300 & "$0"/threads8 60; wait' "$TARGETS"
	hot cum '^burn_' 25 "the program in the background is profiled"
	hot cum '^worker_' 40 "the program in the foreground is profiled"
	ok "sh: CPU time agrees with the kernel's accounting" sums_up sh

	profile threads8 "$TARGETS/threads8" 100
	for n in 0 1 2 3 4 5 6 7; do
		hot cum "^worker_$n\$" 11 14 "thread $n has an eighth of the time"
		hot label "^thread=.*worker-$n" 11 14 "thread $n has its name"
	done
	ok "threads8: CPU time agrees with the kernel's accounting" sums_up threads8

	profile throwcc "$TARGETS/throwcc" 300
	hot cum '^shop::sort_ledger' 20 "a C++ function has its demangled name"
	hot self 'spin' 30 "an inlined function is named"
	hot cum 'shop::check_depth' 1 "the frames that an exception passes are sampled"
	ok "throwcc: CPU time agrees with the kernel's accounting" sums_up throwcc

	profile rusty "$TARGETS/rusty" 600
	hot cum '^rusty::count_words' 5 "a Rust function has its demangled name"
	hot cum '^rusty::fold_with::<' 30 "a generic Rust function has its types"
	ok "rusty: CPU time agrees with the kernel's accounting" sums_up rusty

	profile forks "$TARGETS/forks" 100
	for way in fork exec spawn vfork system popen; do
		hot cum "^work_$way\$" 10 18 "a child started by $way is profiled"
	done
	hot cum '^work_daemon$' 10 18 "a daemon, whose parent does not wait for it, is profiled"

	profile sleepy "$TARGETS/sleepy" 600
	like "$(cat sleepy.out)" 'interrupted 0' "sleepy: no wait was interrupted"
	hot cum '^awake$' 50 "sleepy: the work between its waits is profiled"
	ok "sleepy: CPU time agrees with the kernel's accounting" sums_up sleepy

	profile syscalls "$TARGETS/raw_syscalls" 1000
	ok "syscalls: CPU time agrees with the kernel's accounting" sums_up syscalls

	profile_options='-F 10000' # a thread that lives shorter than a period has no sample
	profile shortthreads "$TARGETS/shortthreads" 2000 200
	profile_options=
	# Where samples come at the kernel's tick only, most such threads have none; their time is in the sum all the same.
	[ "$slack" != 0 ] || hot cum '^short_work$' 50 "short threads are profiled"
	ok "shortthreads: CPU time agrees with the kernel's accounting" sums_up shortthreads

	profile exec_chain "$TARGETS/exec_chain" 30 30000
	hot cum '^link_work$' 70 "every image of the chain is profiled"
	ok "exec_chain: CPU time agrees with the kernel's accounting" sums_up exec_chain
}

# ends STATUS NAME COMMAND...: the command's own status, and its profile exists.
ends() {
	ends_status=$1 ends_name=$2
	shift 2
	run_as "$COUNTERSINK" -o ends.pb.gz -- "$@" >/dev/null 2>ends.err
	is $? "$ends_status" "$ends_name: the status is the command's" || diag "$(cat ends.err)"
	ok "profile of $ends_name is readable" "$SRC/tests/cli/profile_facts" ends.pb.gz
	rm -f ends.pb.gz ends.pb.gz.old
}

endings() {
	ends 7 "a shell that exits 7" sh -c 'exit 7'
	# shellcheck disable=SC2016 # the inner shell's own pid
	ends 143 "a shell that ends itself by SIGTERM" sh -c 'kill -TERM $$'
	ends 139 "a crash" "$TARGETS/crash"
	for way in return exit _exit exit_group quick_exit thread_exit; do
		ends 7 "$way" "$TARGETS/exits" $way
	done
	ends 134 "abort" "$TARGETS/exits" abort
	ends 137 "SIGKILL" "$TARGETS/exits" kill
}

#!/bin/bash
# Few file descriptors (RLIMIT_NOFILE): a command runs and keeps its status, measured data is
# not lost, and a command that cannot measure fails with one line before anything starts.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/cli/attach.sh"

have prlimit || skip_all "no prlimit here"
LIMITS="4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 20 24 32 40"

# with LIMIT COMMAND...: returns its status; its stderr is in err.
with() {
	timeout 60 prlimit --nofile="$1:$1" -- "${@:2}" >out 2>err </dev/null
}

# A limit counts only if the shell itself starts with it.
for n in 3 $LIMITS; do
	with "$n" sh -c 'exit 7'
	alone=$?
	[ "$alone" = 7 ] || continue
	for command in run stat attach; do
		rm -f x.pb.gz
		case $command in
		stat) with "$n" "$COUNTERSINK" stat -- sh -c 'exit 7' ;;
		*) with "$n" "$COUNTERSINK" $command -q -o x.pb.gz -- sh -c 'exit 7' ;;
		esac
		is "$?" 7 "$command, $n descriptors: the status is the command's" || diag "$(cat err)"
		if [ $command != stat ] && ! [ -s err ]; then
			ok "$command, $n descriptors: a silent run leaves its profile" test -s x.pb.gz
		fi
	done
done

# ---- attach to a running program
start "$TARGETS/burn" 100000
# shellcheck disable=SC2154 # start sets it
burn=$target
for n in $LIMITS; do
	rm -f x.pb.gz
	attach_for 100 "$burn" timeout 60 prlimit --nofile="$n:$n" -- "$COUNTERSINK" attach --no-report -o x.pb.gz -p "$burn"
	status=$?
	if [ $status = 0 ]; then
		like "$("$COUNTERSINK" report --csv x.pb.gz)" 'burn' "attach, $n descriptors: functions are named"
	else
		is "$status $(wc -l <err) $([ -e x.pb.gz ] && echo file)" "125 1 " "attach, $n descriptors: one line, and an error" ||
			diag "$(cat err)"
		unlike "$(cat err)" 'ended|no profile' "attach, $n descriptors: the error is about descriptors"
	fi
done
is $status 0 "with 40 descriptors attach succeeds"
end "$burn"

# ---- gate: a verdict, or the reason
reached=0
for n in $LIMITS; do
	with "$n" "$COUNTERSINK" gate -q --runs=2 --warmup=0 --self-check -- "$TARGETS/burn" 20
	status=$?
	if [ $status = 0 ]; then
		reached=$((reached + 1))
	else
		is "$status" 1 "gate, $n descriptors: an error, no verdict"
		like "$(cat err)" 'Too many open files' "gate, $n descriptors: the reason is reported"
		is "$reached" 0 "gate: more descriptors never fail where fewer succeeded"
	fi
done
isnt "$reached" 0 "with enough descriptors the gate gives a verdict"

# ---- the keeper
for n in $LIMITS; do
	with "$n" "$COUNTERSINK" persist detach --persist-dir="$TMP/keeper.$n" -e task-clock -p $$
	status=$?
	if [ $status = 0 ]; then
		ok "persist, $n descriptors: the event can be read" "$COUNTERSINK" persist read --persist-dir="$TMP/keeper.$n" "$(cat out)"
	else
		is "$status $(wc -l <err)" "1 1" "persist, $n descriptors: one line, and an error" || diag "$(cat err)"
	fi
done
done_testing

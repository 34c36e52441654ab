#!/bin/bash
# A process goes on after its run's profile was made: what it did until then is there, and what it does then is in a
# profile of its own. Together they have its CPU time, once.
. "$(dirname "$0")/lib.sh"

sum() { # PROFILE: ns of CPU time of the process, from its fork on, when it had another name
	countersink report -j --by=process "$1" | python3 -c '
import json, sys
print(sum(row["self"] for row in json.load(sys.stdin)["rows"] if row["name"].split()[-1] == sys.argv[1]))' "$(cat pid)"
}

# both NAME FIRST LATER: the two profiles of goes_on, of which the first began when `begin` was called.
both() {
	ok "$1: a process that goes on leaves its profile at its end" wait_until 30 test -s "$3"
	like "$(countersink report --all "$2")" ' before$' "$1: the first profile has what was done before"
	unlike "$(countersink report --all "$2")" ' after$' "$1: the first profile has nothing of what came then"
	like "$(countersink report --all "$3")" ' after$' "$1: the later profile has what was done after that"
	unlike "$(countersink report --all "$3")" ' before$' "$1: the later profile has nothing of what was done before"
	unlike "$(countersink report --all "$3")" 'start-up' "$1: the later profile has no start-up of its own"
	unlike "$(countersink report --all "$3")" 'is in this one, too|damaged|cut short' "$1: the later profile needs no note"
	first=$(sum "$2") later=$(sum "$3") clock=$(cat clock)
	stolen=$(stolen_since "$stolen_before")
	ok "$1: both sums are the process's clock" awk -v a="$first" -v b="$later" -v c="$clock" -v stolen=$stolen \
		'BEGIN { print a, b, c, stolen; exit !(c && (a + b) / c > 0.98 && a + b < 1.02 * c + stolen) }'
}

begin() {
	stolen_before=$(steal_counter)
	rm -f up hold clock
	mkfifo up hold
}

for options in '' '-F20000' '--engine=timer' '--timeline'; do
	name=${options:-default}
	begin
	countersink -q $options -o "p$name.pb.gz" -- sh -c '"$0" up hold clock & read -r line <up; echo $! >pid' "$TARGETS/goes_on"
	: >hold
	both "$name" "p$name.pb.gz" "p$name.pb.gz.$(cat pid)"
done

begin
"$TARGETS/deny_perf" -e 1 countersink -q -o d.pb.gz -- sh -c '"$0" up hold clock & read -r line <up; echo $! >pid' "$TARGETS/goes_on"
: >hold
both "without perf events" d.pb.gz "d.pb.gz.$(cat pid)"

begin
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$PWD/e.pb.gz COUNTERSINK_QUIET=1 \
	sh -c '"$0" up hold clock & read -r line <up; echo $! >pid' "$TARGETS/goes_on"
: >hold
both "the environment alone" e.pb.gz "e.pb.gz.$(cat pid)"

# No room for what was read: the later profile has all, and that is reported.
begin
# The recording is as large as a file may be: 63 blocks of 64 KiB.
(ulimit -f 4032; countersink -q -o f.pb.gz -- sh -c '"$0" up hold clock & read -r line <up; echo $! >pid' "$TARGETS/goes_on")
: >hold
ok "no room: the process leaves its profile" wait_until 30 test -s "f.pb.gz.$(cat pid)"
like "$(countersink report --all "f.pb.gz.$(cat pid)")" ' before$' "no room: the profile has all that the process did"
like "$(countersink report --all "f.pb.gz.$(cat pid)")" 'note .*is in this one, too' "no room: a note reports it"

done_testing

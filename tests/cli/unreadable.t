#!/bin/bash
# Programs that may be executed and not read: the kernel ends their events at the exec, so that their CPU time is known only
# as what wait4(2) has beside all others. It is theirs in the report, with the reason, and not the kernel's.
. "$(dirname "$0")/lib.sh"

needs_events

cp "$TARGETS/chain" dynamic
cp "$TARGETS/static_chain" static
cp dynamic closed_dynamic
cp static closed
chmod 111 closed closed_dynamic
chmod 777 .

# shown COMMAND...: run it; the brackets that have at least a tenth of the CPU time, and the programs that the report names.
shown() {
	rm -f c.pb.gz
	unprivileged countersink -o c.pb.gz -- "$@" >out 2>err || diag "$(cat err)"
	countersink report -j -a --no-pager c.pb.gz >report.json
	python3 -c '
import json
report = json.load(open("report.json"))
facts = [fact.split(": ", 1) for fact in report["facts"]]
rows = report["rows"]
total = sum(row["self"] for row in rows)
print(*sorted(row["name"] for row in rows if row["pseudo"] and row["self"] > total / 10),
      *sorted(text for key, text in facts if key == "unprofiled"), sep="; ")'
}
why='(may be executed and not read, so that the kernel ends its events)'

is "$(shown ./closed 0.1)" "[not injected: closed]; closed $why" "a command"
is "$(shown sh -c './closed 0.1; true')" "[not injected: closed]; closed $why" "below a program that is injected"
is "$(shown sh -c './closed 0.5; ./closed 0.5; true')" "[not injected: closed]; closed $why (2 times)" \
	"two times: its name is there once"
is "$(shown sh -c 'exec ./closed 0.5')" "[not injected: closed]; closed $why" "by exec, in place of one that is injected"
is "$(shown ./dynamic 0 spawn ./closed 0.5)" "[not injected: closed]; closed $why" "by posix_spawn(3)"
is "$(shown ./static 0 fork ./closed 0.5)" \
	"[not injected: closed]; closed (set-user-id, or may not be read: the kernel ended its events)" \
	"below a static program, where the kernel's records have to do"
is "$(shown sh -c './closed_dynamic 0.5; true')" "" "one that the library is injected into is profiled"
is "$(shown ./closed_dynamic 0.5)" "" "such a command is profiled"
is "$(python3 -c 'import json
rows = json.load(open("report.json"))["rows"]
print(sum(row["self"] for row in rows if row["module"] == "closed_dynamic") > sum(row["self"] for row in rows) / 2)')" True "its functions have its CPU time"
if [ "$(id -u)" = 0 ]; then
	cp static raised
	chmod 4755 raised
	is "$(shown sh -c './raised 0.5; true')" "[not injected: raised]; raised (set-user-id or with capabilities)" \
		"a set-user-ID program below one that is injected"
	is "$(shown sh -c 'exec ./raised 0.5')" "[not injected: raised]; raised (set-user-id or with capabilities)" \
		"a set-user-ID program by exec, in place of one that is injected"
	rm -f c.pb.gz
	countersink -o c.pb.gz -- sh -c './closed 0.5; true' 2>err
	like "$(cat err)" 'ms +closed +leaf' "root's launcher may read it: it is sampled"
else
	skip "a set-user-ID program" "only root can make one for another user"
fi
done_testing

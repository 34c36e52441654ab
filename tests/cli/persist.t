#!/bin/sh
# countersink persist: events that outlive the command that created them, from the command line.
. "$(dirname "$0")/lib.sh"

if ! countersink stat -x -e page-faults:u true 2>&1 | grep -q ',counted,'; then
	skip_all "perf_event_open is refused here"
fi
export COUNTERSINK_PERSIST_DIR=$TMP/base
directory=$COUNTERSINK_PERSIST_DIR/countersink-persist
mkdir "$COUNTERSINK_PERSIST_DIR"

keeper() { # the keeper of our directory
	pgrep -f "^countersink persist keep $directory\$"
}
no_keeper() {
	! keeper
}
value() {
	countersink persist read "$1" | awk '{ print $2 }'
}

is "$(countersink persist list)" "" "list is empty at the start"
is "$(countersink persist list --json)" "[]" "list --json is empty at the start"
ok "list starts no keeper" no_keeper

# A target that works on request.
mkfifo gate
sh -c 'while read -r line; do seq 20000 | sort -r >/dev/null; seq 1 $line >sorted; echo done >>worked; done' <gate &
target=$!
exec 9>gate
work() {
	rm -f worked
	echo "$1" >&9
	wait_until 60 test -s worked
}

id=$(countersink persist detach -e page-faults -p "$target")
is $? 0 "detach makes an event of a process persistent"
like "$id" '^[0-9]+$' "detach prints the id and nothing else"
ok "detach starts a keeper" keeper
like "$(countersink persist list)" "^ *$id  page-faults(:u)? +pid $target +ring +0  0600  uid $(id -u) " "list shows the event"
is "$(ls "$directory/events")" "$id" "the event has a file named by its id"
like "$(cat "$directory/events/$id")" "^pid $target\$" "the event's file has the PID"
is "$(stat -c %a "$directory" "$directory/socket" "$directory/events" "$directory/events/$id" | tr '\n' ' ')" "700 600 700 600 " "the directory, socket and event file are private"
before=$(value "$id")
work 100
after=$(value "$id")
ok "the event counts on ($before, then $after)" test "$after" -gt "$before"
like "$(countersink persist read "$id")" 'enabled ([0-9.]+) s  running \1 s$' "the event is enabled as long as running"

ring=$(countersink persist detach -e task-clock:u -p "$target" -m 8)
is $? 0 "detach makes a second event with a ring persistent"
work 100
is "$(keeper | wc -l | tr -d ' ')" 1 "the second event has the same keeper"
like "$(countersink persist list)" "^ *$ring  task-clock:u .* ring +8 " "list shows the ring's pages"
if have python3; then
	countersink persist list --json >json
	ok "list --json prints valid JSON" python3 -c 'import json, sys
o = {e["id"]: e for e in json.load(open("json"))}
id, ring, pid = map(int, sys.argv[1:])
assert len(o) == 2 and o[id]["pid"] == pid and o[id]["cpu"] == -1 and o[id]["mode"] == "0600", o
assert o[ring]["pages"] == 8 and o[ring]["backward"] and o[ring]["frequency"] == 997, o' "$id" "$ring" "$target"
	countersink persist read --json "$id" "$ring" >json
	ok "read --json prints valid JSON" python3 -c 'import json
o = json.load(open("json"))
assert len(o) == 2 and all(e["enabled_ns"] == e["running_ns"] > 0 for e in o), o'
else
	skip "list --json prints valid JSON" "there is no python3 to read it"
	skip "read --json prints valid JSON" "there is no python3 to read it"
fi
exec 9>&-
wait $target
ok "the count of an ended process stays readable" test "$(value "$id")" -ge "$after"

countersink persist attach "$id"
is $? 0 "attach takes the event back"
countersink persist read "$id" 2>err
is $? 1 "reading an attached event: status 1"
like "$(cat err)" "^countersink: event $id: there is no such persistent event\$" "reading an attached event is reported"
countersink persist attach "$id" "$ring" 2>err
is $? 1 "attach of two events of which one is missing: status 1"
ok "attach of the last event ends the keeper" wait_until 20 no_keeper
is "$(ls "$directory/events")" "" "the last attach leaves no event files"

# An event of a whole CPU needs privileges.
if countersink persist detach -C 0 -e page-faults >cpu 2>err; then
	id=$(cat cpu)
	like "$(countersink persist list)" "^ *$id  page-faults +cpu 0 " "list shows an event of a CPU"
	before=$(value "$id")
	wait_until 60 sh -c "countersink persist read $id | awk '{ exit !(\$2 > $before + 10) }'"
	is $? 0 "an event of a CPU counts every process there"
	countersink persist attach "$id"
else
	like "$(cat err)" '^countersink: page-faults: EACCES: .*(paranoid|CAP_PERFMON)' "a refused event of a CPU is reported with its reason"
fi

# A killed keeper.
id=$(countersink persist detach -p $$)
kill -KILL "$(keeper)"
ok "the keeper is killed" wait_until 20 no_keeper
countersink persist list 2>err
like "$(cat err)" '^countersink: 1 event ended with a keeper that was killed$' "list reports the events of a killed keeper"
id=$(countersink persist detach -p $$ 2>err)
like "$(cat err)" '^countersink: 1 earlier event ended with a keeper that was killed$' "detach reports the events of a killed keeper"
is "$(ls "$directory/events")" "$id" "the list is correct after a killed keeper"
countersink persist attach "$id"

# As another user.
if [ "$(id -u)" = 0 ] && have setpriv; then
	id=$(countersink persist detach -p $$ --mode=0644)
	secret=$(countersink persist detach -p $$)
	is "$(unprivileged countersink persist list | awk '{ print $1 }')" "$id" "others list only events they may read"
	like "$(unprivileged countersink persist read "$id")" "^ *$id +[0-9]+ " "others read an event with mode 0644"
	unprivileged countersink persist read "$secret" 2>err
	is $? 1 "others cannot read an event with mode 0600"
	like "$(cat err)" "it belongs to another user" "reading another user's event is reported"
	unprivileged countersink persist attach "$id" 2>err
	is $? 1 "others cannot attach another user's event"
	like "$(cat err)" "it belongs to another user" "attaching another user's event is reported"
	mkdir -m 777 theirs
	theirs=$(cd theirs && COUNTERSINK_PERSIST_DIR=$TMP/theirs unprivileged sh -c 'countersink persist detach -e page-faults -p $$')
	like "$theirs" '^[0-9]+$' "another user has a keeper of its own"
	COUNTERSINK_PERSIST_DIR=$TMP/theirs unprivileged countersink persist attach "$theirs"
	is $? 0 "another user attaches its own event"
	countersink persist attach "$id" "$secret"
else
	skip "other users" "needs root, to become another user"
fi

# The default directory is in \$XDG_RUNTIME_DIR.
mkdir -m 700 runtime
id=$(COUNTERSINK_PERSIST_DIR='' XDG_RUNTIME_DIR=$TMP/runtime countersink persist detach -p $$)
is "$(ls runtime/countersink-persist/events)" "$id" "the default directory is in XDG_RUNTIME_DIR"
countersink persist attach --persist-dir="$TMP/runtime" "$id"
is $? 0 "--persist-dir names the directory"

# refused REGEX NAME ARGUMENT...
refused() {
	regex=$1 name=$2
	shift 2
	countersink persist "$@" >out 2>err
	is "$? $(wc -c <out) $(wc -l <err | tr -d ' ')" "2 0 1" "$name: status 2, one line"
	like "$(cat err)" "$regex" "$name: the reason is reported"
}
refused 'no action given' "no action"
refused "unknown action 'keep'" "an unknown action" keep
refused 'no target given' "no target" detach
refused "option --cpu: 'x' is no number" "an invalid CPU" detach -C x
refused "option --mode: '0888'" "an invalid mode" detach -p 1 --mode 0888
refused 'option --pages: 3 is no power of two' "three pages" detach -p 1 -m 3
refused "unknown event 'cylces'.*did you mean 'cycles'" "an unknown event" detach -p 1 -e cylces
refused 'persist read needs an id' "no id" read
refused "takes no '5'" "an unexpected id" list 5
countersink persist read five 2>err
is $? 1 "read with an invalid id: status 1"
countersink persist detach -p 1073741822 2>err
is $? 1 "detach from a missing process: status 1"
like "$(cat err)" 'ESRCH: there is no process' "detach from a missing process explains ESRCH"
ok "no keeper runs at the end" wait_until 20 no_keeper
done_testing

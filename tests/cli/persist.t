#!/bin/sh
# countersink persist: events that outlive the command that made them, as a person or a script uses them.
. "$(dirname "$0")/lib.sh"

if ! countersink stat -x -e page-faults:u true 2>&1 | grep -q ',counted,'; then
	skip_all "perf_event_open is refused here"
fi
export COUNTERSINK_PERSIST_DIR=$TMP/base
folder=$COUNTERSINK_PERSIST_DIR/countersink-persist
mkdir "$COUNTERSINK_PERSIST_DIR"

keeper() { # the keeper of our folder
	pgrep -f "^countersink persist keep $folder\$"
}
no_keeper() {
	! keeper
}
value() {
	countersink persist read "$1" | awk '{ print $2 }'
}

is "$(countersink persist list)" "" "nothing is persistent"
is "$(countersink persist list --json)" "[]" "in JSON, too"
ok "and no keeper is started to say so" no_keeper

# A target that works when it is told to.
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
is $? 0 "an event of a process is made persistent"
like "$id" '^[0-9]+$' "its id is printed, and nothing else"
ok "a keeper has started" keeper
like "$(countersink persist list)" "^ *$id  page-faults(:u)? +pid $target +ring +0  0600  uid $(id -u) " "it is listed"
is "$(ls "$folder/events")" "$id" "a file has its id"
like "$(cat "$folder/events/$id")" "^pid $target\$" "and says what it is"
is "$(stat -c %a "$folder" "$folder/socket" "$folder/events" "$folder/events/$id" | tr '\n' ' ')" "700 600 700 600 " "all of it private"
before=$(value "$id")
work 100
after=$(value "$id")
ok "it counts on ($before, then $after)" test "$after" -gt "$before"
like "$(countersink persist read "$id")" 'enabled ([0-9.]+) s  running \1 s$' "enabled as long as running"

ring=$(countersink persist detach -e task-clock:u -p "$target" -m 8)
is $? 0 "one with a ring beside it"
work 100
is "$(keeper | wc -l | tr -d ' ')" 1 "in the same keeper"
like "$(countersink persist list)" "^ *$ring  task-clock:u .* ring +8 " "which is listed with its pages"
if have python3; then
	countersink persist list --json >json
	ok "JSON is JSON" python3 -c 'import json, sys
o = {e["id"]: e for e in json.load(open("json"))}
id, ring, pid = map(int, sys.argv[1:])
assert len(o) == 2 and o[id]["pid"] == pid and o[id]["cpu"] == -1 and o[id]["mode"] == "0600", o
assert o[ring]["pages"] == 8 and o[ring]["backward"] and o[ring]["frequency"] == 997, o' "$id" "$ring" "$target"
	countersink persist read --json "$id" "$ring" >json
	ok "of values, too" python3 -c 'import json
o = json.load(open("json"))
assert len(o) == 2 and all(e["enabled_ns"] == e["running_ns"] > 0 for e in o), o'
else
	skip "JSON is JSON" "there is no python3 to read it"
	skip "of values, too" "there is no python3 to read it"
fi
exec 9>&-
wait $target
ok "of a process that has ended the count stays" test "$(value "$id")" -ge "$after"

countersink persist attach "$id"
is $? 0 "attached"
countersink persist read "$id" 2>err
is $? 1 "it is gone"
like "$(cat err)" "^countersink: event $id: there is no such persistent event\$" "which is said"
countersink persist attach "$id" "$ring" 2>err
is $? 1 "one of two is not there: status 1"
ok "the other is attached all the same, and the keeper ends with the last" wait_until 20 no_keeper
is "$(ls "$folder/events")" "" "it leaves nothing"

# Who may have one on a whole CPU?
if countersink persist detach -C 0 -e page-faults >cpu 2>err; then
	id=$(cat cpu)
	like "$(countersink persist list)" "^ *$id  page-faults +cpu 0 " "an event of a CPU"
	before=$(value "$id")
	wait_until 60 sh -c "countersink persist read $id | awk '{ exit !(\$2 > $before + 10) }'"
	is $? 0 "counts whoever runs there"
	countersink persist attach "$id"
else
	like "$(cat err)" '^countersink: page-faults: EACCES: .*(paranoid|CAP_PERFMON)' "an event of a CPU is refused, and why"
fi

# A keeper that was killed.
id=$(countersink persist detach -p $$)
kill -KILL "$(keeper)"
ok "the keeper is killed" wait_until 20 no_keeper
countersink persist list 2>err
like "$(cat err)" '^countersink: 1 event ended with a keeper that was killed$' "which is told"
id=$(countersink persist detach -p $$ 2>err)
like "$(cat err)" '^countersink: 1 earlier event ended with a keeper that was killed$' "also to the next one who comes"
is "$(ls "$folder/events")" "$id" "the list is right again"
countersink persist attach "$id"

# As another user.
if [ "$(id -u)" = 0 ] && have setpriv; then
	id=$(countersink persist detach -p $$ --mode=0644)
	secret=$(countersink persist detach -p $$)
	is "$(unprivileged countersink persist list | awk '{ print $1 }')" "$id" "others see what they may read"
	like "$(unprivileged countersink persist read "$id")" "^ *$id +[0-9]+ " "and its value"
	unprivileged countersink persist read "$secret" 2>err
	is $? 1 "not that of others"
	like "$(cat err)" "it is another user's" "which is said"
	unprivileged countersink persist attach "$id" 2>err
	is $? 1 "nor can they end it"
	like "$(cat err)" "it is another user's" "which is said"
	mkdir -m 777 theirs
	theirs=$(cd theirs && COUNTERSINK_PERSIST_DIR=$TMP/theirs unprivileged sh -c 'countersink persist detach -e page-faults -p $$')
	like "$theirs" '^[0-9]+$' "they have keepers of their own"
	COUNTERSINK_PERSIST_DIR=$TMP/theirs unprivileged countersink persist attach "$theirs"
	is $? 0 "with their own events"
	countersink persist attach "$id" "$secret"
else
	skip "other users" "it takes root to become one"
fi

# Where nothing is said the folder is in \$XDG_RUNTIME_DIR.
mkdir -m 700 runtime
id=$(COUNTERSINK_PERSIST_DIR='' XDG_RUNTIME_DIR=$TMP/runtime countersink persist detach -p $$)
is "$(ls runtime/countersink-persist/events)" "$id" "the usual folder is in XDG_RUNTIME_DIR"
countersink persist attach --persist-dir="$TMP/runtime" "$id"
is $? 0 "which --persist-dir can name"

# refused REGEX NAME ARGUMENT...
refused() {
	regex=$1 name=$2
	shift 2
	countersink persist "$@" >out 2>err
	is "$? $(wc -c <out) $(wc -l <err | tr -d ' ')" "2 0 1" "$name: status 2, one line"
	like "$(cat err)" "$regex" "$name: said"
}
refused 'say what to do' "nothing to do"
refused "persist does not know 'keep'" "something else" keep
refused 'what is to be counted' "no target" detach
refused "option --cpu: 'x' is no number" "no CPU" detach -C x
refused "option --mode: '0888'" "no mode" detach -p 1 --mode 0888
refused 'option --pages: 3 is no power of two' "three pages" detach -p 1 -m 3
refused "unknown event 'cylces'.*did you mean 'cycles'" "no event" detach -p 1 -e cylces
refused 'persist read needs an id' "no id" read
refused "takes no '5'" "an id that is not asked for" list 5
countersink persist read five 2>err
is $? 1 "an id that is none"
countersink persist detach -p 1073741822 2>err
is $? 1 "a process that is not there"
like "$(cat err)" 'ESRCH: there is no process' "which is explained"
ok "no keeper is left" wait_until 20 no_keeper
done_testing

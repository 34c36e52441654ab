# shellcheck shell=bash
# Targets to attach to, for the tests of attach; after lib.sh.
is_root() { [ "$(id -u)" = 0 ]; }
targets=
trap 'kill -9 $targets 2>/dev/null; wait 2>/dev/null; remove_tmp' EXIT

# start COMMAND...: a target in the background, known as $target.
start() {
	"$@" >/dev/null 2>&1 &
	target=$!
	targets="$targets $target"
}
start_unprivileged() {
	if is_root; then
		start setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		start "$@"
	fi
}
end() {
	kill -9 "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}
hz=$(getconf CLK_TCK)
used_ms() { # of CPU time, by a process: in $used. No program is started for it, as it is asked for again and again.
	local fields

	read -r fields 2>/dev/null <"/proc/$1/stat" || fields=') 0 0 0 0 0 0 0 0 0 0 0 0 0'
	read -ra fields <<<"${fields##*) }"
	used=$(((fields[11] + fields[12]) * 1000 / hz))
}
ran_ms() {
	local used

	used_ms "$1"
	echo $used
}
has_run() {
	local used

	used_ms "$1"
	[ $used -ge "$2" ]
}
attach() { countersink attach "$@"; }
# attach_for MS PID COMMAND...: an attach that is ended when process PID has run for so many ms of CPU time since it was
# attached to, however long that takes. Its standard error is in err; returns its status.
attach_for() {
	local until=$1 pid=$2 attach
	shift 2
	: >err
	"$@" 2>err &
	attach=$!
	targets="$targets $attach"
	wait_until 60 sh -c 'grep -q "Ctrl-C ends it" err || ! kill -0 "$1"' sh $attach
	until=$(($(ran_ms "$pid") + until))
	until has_run "$pid" $until || ! kill -0 $attach 2>/dev/null; do sleep 0.01; done
	kill -TERM $attach 2>/dev/null
	wait $attach
}
# What a profile has of an event, and what attach --json printed of it.
sum_of() { # EVENT PROFILE
	countersink report --json -n 1 "$2" | tr -d ' \n' | sed 's/.*"name":"'"$1"'[:u]*","unit":"[a-z]*","sum":\([0-9]*\).*/\1/'
}
sampled_of() { # EVENT PROFILE: without what no sample has
	countersink export -f folded -e "$1" "$2" | awk '!/\[not sampled\] [0-9]+$/ { sum += $NF } END { printf "%.0f\n", sum }'
}
count_of() { # EVENT <JSON
	tr -d ' \n' | sed 's/.*"name":"'"$1"'[:u]*","value":\([0-9]*\).*/\1/'
}
is_traced() { # any thread of a process
	grep -lE '^State:.[tT]' /proc/"$1"/task/*/status 2>/dev/null | grep -q .
}
refuse() { # STATUS REGEX NAME ARGUMENT...: one line says why
	local status=$1 regex=$2 name=$3
	shift 3
	attach "$@" >out 2>err
	is $? "$status" "$name: status $status"
	like "$(cat err)" "$regex" "$name: the reason is reported"
	is "$(wc -l <err) $(wc -c <out)" "1 0" "$name: in one line"
}


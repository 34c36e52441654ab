# shellcheck shell=bash
# For the tests of the gate, after lib.sh; each has its own gate(), which leaves err.

# refused STATUS REGEX NAME ARGUMENT...: no verdict, one line says why.
refused() {
	local status=$1 regex=$2 name=$3
	shift 3
	gate "$@"
	is $? "$status" "$name: status $status"
	like "$(cat err)" "$regex" "$name: the reason is reported"
	is "$(wc -l <err)" 1 "$name: in one line"
}

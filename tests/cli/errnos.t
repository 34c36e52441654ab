#!/bin/sh
# README's table of errors has the printed texts, row by row; every errno has a row; and the commands print the same.
units=${BUILD:-$(dirname "$0")/../../build}/tests/unit
case $units in /*) ;; *) units=$PWD/$units ;; esac
. "$(dirname "$0")/lib.sh"

# Replace what differs between runs and machines: numbers, and the list of CPUs.
masked() {
	sed -E 's/0x[0-9a-f]+/X/g; s/online are [0-9,-]+/online are N/; s/(^|[^[:alnum:]])[0-9]+/\1N/g; s/N-N/N/g'
}

sed -n '/^<!-- errnos:/,/^<!-- end of errnos/p' "$SRC/README.md" | grep '^| `E' >readme.rows
ok "README has a table of errors" test "$(wc -l <readme.rows)" -ge 30
for name in E2BIG EACCES EBADF EBUSY EFAULT EINTR EINVAL EMFILE ENODEV ENOENT ENOSPC ENOSYS EOPNOTSUPP EOVERFLOW EPERM ESRCH; do
	ok "$name of perf_event_open(2) has a row" grep -q "^| \`$name\` |" readme.rows
done

# Each row, by provoking its error.
if [ "$(id -u)" != 0 ] || ! have setpriv || grep -q '^Seccomp:.*[12]' /proc/self/status ||
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" != 2 ]; then
	skip "the rows of the table are as printed" "needs root without a filter, and kernel.perf_event_paranoid 2"
	done_testing
fi
"$SRC/scripts/errnos-table" "$units" >printed.rows
masked <printed.rows >printed.masked
masked <readme.rows >readme.masked
judged=0
while IFS= read -r row; do
	how=$(printf '%s\n' "$row" | cut -d'|' -f2,3)
	if grep -qxF -- "$row" printed.masked; then
		tap_point 1 "as printed:$how"
		judged=$((judged + 1))
	elif ! grep -qF -- "|$how|" printed.masked; then
		skip "as printed:$how" "this machine does not give it"
	else
		tap_point 0 "as printed:$how"
		diag "README: $row"
		diag "printed: $(grep -F -- "|$how|" printed.masked)"
	fi
done <readme.masked
ok "nearly all rows are judged ($judged)" test "$judged" -ge 35

# The commands' own messages, where a user can provoke them: says NAME HOW COMMAND...
says() {
	says_name=$1 says_how=$2
	shift 2
	"$@" >out 2>err
	masked <err >err.masked
	text=$(grep -F -- "| $says_how |" readme.masked | sed 's/^| `\([A-Z0-9]*\)` | [^|]* | \(.*\) |$/\1: \2/')
	if grep -qF -- "$text" err.masked; then
		tap_point 1 "$says_name prints the table's text"
	else
		tap_point 0 "$says_name prints the table's text"
		diag "want: $text"
		diag "got: $(cat err)"
	fi
}
[ -e /sys/bus/event_source/devices/cpu ] ||
	says "stat -e cycles" "cycles without a PMU" "$COUNTERSINK" stat -e cycles true
says "stat under a filter" "a filter that says EPERM" "$TARGETS/deny_perf" "$COUNTERSINK" stat -e task-clock true
says "attach under a filter" "a filter that says ENOSYS" "$TARGETS/deny_perf" -e 38 "$COUNTERSINK" attach -- true
says "attach to another user's process" "another user's process" unprivileged "$COUNTERSINK" attach --no-stop -d 0.1 -p $$
says "persist of a whole CPU" "a whole CPU" unprivileged "$COUNTERSINK" persist detach --persist-dir=. -C 0 -e page-faults:u
done_testing

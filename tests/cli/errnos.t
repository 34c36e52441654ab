#!/bin/sh
# countersink-errors(7) has what is printed, entry by entry; every errno has an entry; and the commands print the same.
units=${BUILD:-$(dirname "$0")/../../build}/tests/unit
case $units in /*) ;; *) units=$PWD/$units ;; esac
. "$(dirname "$0")/lib.sh"

# What differs from run to run, and from machine to machine: numbers, and the list of CPUs.
masked() {
	sed -E 's/0x[0-9a-f]+/X/g; s/online are [0-9,-]+/online are N/; s/(^|[^[:alnum:]])[0-9]+/\1N/g; s/N-N/N/g'
}

# rows <SOURCE: the entries of the page's source, each on one line: | `ERRNO` | how | text |
rows() {
	awk '
		/^\.TP$/ { entry = 1; next }
		entry == 1 && /^\\fBE[0-9A-Z]+\\fR: / {
			name = substr($1, 4, length($1) - 7)
			how = substr($0, length($1) + 2)
			entry = 2
			next
		}
		entry == 2 { print "| `" name "` | " how " | " $0 " |" }
		{ entry = 0 }' | sed "s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\e/\\\\/g"
}

PAGE=$SRC/launcher/man/countersink-errors.7
rows <"$PAGE" >page.rows
ok "countersink-errors(7) has its entries" test "$(wc -l <page.rows)" -ge 30
for name in E2BIG EACCES EBADF EBUSY EFAULT EINTR EINVAL EMFILE ENODEV ENOENT ENOSPC ENOSYS EOPNOTSUPP EOVERFLOW EPERM ESRCH; do
	ok "$name of perf_event_open(2) has an entry" grep -q "^| \`$name\` |" page.rows
done

# Each entry, with all that it takes to provoke them.
if [ "$(id -u)" != 0 ] || ! have setpriv || grep -q '^Seccomp:.*[12]' /proc/self/status ||
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" != 2 ]; then
	skip "the entries are what is printed" "it takes root without a filter, and kernel.perf_event_paranoid 2"
	done_testing
fi
"$SRC/scripts/errnos-table" "$units" | rows >printed.rows
masked <printed.rows >printed.masked
masked <page.rows >page.masked
judged=0
while IFS= read -r row; do
	how=$(printf '%s\n' "$row" | cut -d'|' -f2,3)
	if grep -qxF -- "$row" printed.masked; then
		tap_point 1 "the text is what is printed:$how"
		judged=$((judged + 1))
	elif ! grep -qF -- "|$how|" printed.masked; then
		skip "the text is what is printed:$how" "this machine does not give it"
	else
		tap_point 0 "the text is what is printed:$how"
		diag "page: $row"
		diag "printed: $(grep -F -- "|$how|" printed.masked)"
	fi
done <page.masked
ok "at least 35 entries are compared ($judged)" test "$judged" -ge 35

# What the commands say, where their users can provoke it: says NAME HOW COMMAND...
says() {
	says_name=$1 says_how=$2
	shift 2
	"$@" >out 2>err
	masked <err >err.masked
	text=$(grep -F -- "| $says_how |" page.masked | sed 's/^| `\([A-Z0-9]*\)` | [^|]* | \(.*\) |$/\1: \2/')
	if grep -qF -- "$text" err.masked; then
		tap_point 1 "$says_name prints the text of the page"
	else
		tap_point 0 "$says_name prints the text of the page"
		diag "want: $text"
		diag "got: $(cat err)"
	fi
}
[ -e /sys/bus/event_source/devices/cpu ] ||
	says "stat -e cycles" "cycles without a PMU" "$COUNTERSINK" stat -e cycles true
says "stat under a filter" "a filter that returns EPERM" "$TARGETS/deny_perf" "$COUNTERSINK" stat -e task-clock true
says "attach under a filter" "a filter that returns ENOSYS" "$TARGETS/deny_perf" -e 38 "$COUNTERSINK" attach -- true
says "attach to another user's process" "another user's process" unprivileged "$COUNTERSINK" attach --no-stop -d 0.1 -p $$
says "persist of a whole CPU" "a whole CPU" unprivileged "$COUNTERSINK" persist detach --persist-dir=. -C 0 -e page-faults:u
done_testing

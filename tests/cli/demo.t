#!/bin/sh
# The demo's work, without its installation: a pipeline of programs, and a report by function that names each of them.
. "$(dirname "$0")/lib.sh"

"$COUNTERSINK" -o demo.html -- "$SRC/scripts/demo-work" "$COUNTERSINK" log.html >out 2>report
is $? 0 "the demo's pipeline exits with status 0" || diag "$(cat report)"
like "$(cat log.html)" "/page/4999" "the pipeline made its page, of the log's own names"
like "$(cat demo.html)" '"distance"' "the profile is written as a page"
like "$(awk 'in_table { print; exit } /self %/ { in_table = 1 }' report)" ' demo-log\.py +distance$' \
	"the first row of the report is a function of Python, with its file"
like "$("$COUNTERSINK" report --annotate distance demo.html.pb.gz)" '^ +[0-9.]+ +[0-9.]+ +42  +if costs\[i - 1\] < cost:$' \
	"the report shows the line of it that costs"
# The share of the compiled program in the pipeline is that of the machine's Python: only the whole table has all of it.
like "$("$COUNTERSINK" report --all demo.html.pb.gz)" " countersink +csink_" "the report names functions of a compiled program"
unnamed=$("$COUNTERSINK" report --all --csv demo.html.pb.gz | awk -F, '
	NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
	{ self = $column["self"]; all += self }
	$column["function"] ~ /^\[(python[0-9.]*|countersink)\+0x/ { unnamed += self }
	END { printf "%d\n", all ? 100 * unnamed / all : 100 }')
ok "less than a third of the samples are in functions of python and countersink without a name ($unnamed %)" test "$unnamed" -lt 33
is "$(wc -l <out)" 3 "stdout is the command's own: three lines"
ok "install-deps has nothing to do here" "$SRC/scripts/install-deps" check --dry-run
ok "install-deps knows its groups" sh -c '"$0" build --list | grep -q libdw' "$SRC/scripts/install-deps"
"$SRC/scripts/install-deps" nonsense >/dev/null 2>&1
is $? 2 "install-deps refuses a group that it does not know"
done_testing

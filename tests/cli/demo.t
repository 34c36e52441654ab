#!/bin/sh
# The demo's work, without its installation: a pipeline of programs, and a report by function that names each of them.
. "$(dirname "$0")/lib.sh"

"$COUNTERSINK" -o demo.pb.gz -- "$SRC/scripts/demo-work" demo.xz >out 2>report
is $? 0 "the demo's pipeline ends well" || diag "$(cat report)"
ok "it made its file" xz -t demo.xz
like "$(cat report)" "Perl_" "the report names functions"
like "$(cat report)" lzma "of several programs"
is "$(wc -l <out)" 3 "stdout is the command's own"
ok "install-deps has nothing to do here" "$SRC/scripts/install-deps" check --dry-run
ok "install-deps knows its groups" sh -c '"$0" build --list | grep -q libdw' "$SRC/scripts/install-deps"
"$SRC/scripts/install-deps" nonsense >/dev/null 2>&1
is $? 2 "install-deps refuses a group that it does not know"
done_testing

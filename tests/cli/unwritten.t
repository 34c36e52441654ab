#!/bin/bash
# Output that cannot be written, of every command: a full disk, a closed stream. One line reports what happened, why, and the
# remedy; results are saved where possible. Commands that run a command return its status; the others return their own error.
. "$(dirname "$0")/lib.sh"
[ -c /dev/full ] || skip_all "there is no /dev/full here"

mkdir place spare runtime && chmod 777 place spare && chmod 700 runtime && cd place || exit 1
TMPDIR=$TMP/spare XDG_RUNTIME_DIR=$TMP/runtime
export TMPDIR XDG_RUNTIME_DIR
countersink -q -o a.pb.gz -- "$TARGETS/burn" 50 >/dev/null || exit 1
cp a.pb.gz b.pb.gz
echo '{"v":1,"commit":"c","anchor":"a","cases":{"x":{"figures":{"cpu":[1.5,1,2,3,"count"]}}}}' >history.jsonl
: >lock
last='(make room, or )?choose another output file'

# reported NAME STATUS WHAT LAST: by the last command, whose status is $got.
reported() {
	is $got "$2" "$1: status $2"
	like "$(cat err)" "^countersink: $3: (No space left on device|it is closed); $4\$" "$1: the error is reported"
	is "$(grep -c '^countersink: .*\(No space\|is closed\)' err)" 1 "$1: the error is reported once"
}

# ---- standard output: the first word of the row is the status

seen=
while read -r status command; do
	seen="$seen ${command%% *}"
	# shellcheck disable=SC2086 # the row's words
	countersink $command >/dev/full 2>err
	got=$?
	reported "$command >/dev/full" "$status" 'standard output' "$last"
	# shellcheck disable=SC2086
	countersink $command >&- 2>err
	got=$?
	reported "$command >&-" "$status" 'standard output' "$last"
done <<-ROWS
	125 run --version
	125 run --print-config
	125 stat --help
	125 attach --help
	125 attach -q -j -o /dev/null -d 0.1 -p $$
	125 doctor
	125 doctor --json
	1 report a.pb.gz
	1 report --json a.pb.gz
	1 report --csv --all a.pb.gz
	1 report --tree a.pb.gz
	1 report --callers . a.pb.gz
	$(formats '1 export -f %s -o - a.pb.gz')
	1 diff a.pb.gz b.pb.gz
	1 diff --json a.pb.gz b.pb.gz
	1 merge --help
	1 gate --help
	1 gate -q --runs 2 --warmup 0 --vs true -- true
	1 gate -q --runs 2 --warmup 0 --tap tap --json - --vs true -- true
	1 history --help
	1 history history.jsonl
	1 history --export=csv history.jsonl
	1 events
	1 events -j page-faults
	1 reserve --status --lock-file=lock
	1 reserve --status --json --lock-file=lock
	1 reserve -V
	1 persist list --json
	1 keep --help
	1 salvage --help
	1 send --help
	1 top --help
	1 completion bash
	1 completion zsh
	1 completion fish
	1 help
	1 help gate
ROWS
countersink --help | sed -n '/^Commands/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p' | sort >commands
# shellcheck disable=SC2086 # a word each
is "$(printf '%s\n' $seen | sort -u | tr '\n' ' ')" "$(tr '\n' ' ' <commands)" "every command is tried"
unlike "$(cat commands)" '^$' "the list of commands is not empty"

# ---- files

while read -r status what kept command; do
	rm -f "$TMP"/spare/*
	# shellcheck disable=SC2086 # the row's words
	countersink $command >out 2>err
	got=$?
	reported "$command" "$status" "$what" "$([ "$kept" = - ] && echo "$last" || echo "${kept//_/ }")"
done <<-ROWS
	7 /dev/full the_profile_is_in_$TMP/spare/full run -q -o /dev/full -- sh -c exit\${IFS}7
	7 option.--output:./dev/full the_missing_output_is_on_standard_error stat -o /dev/full -- sh -c exit\${IFS}7
	7 option.--output:./dev/full the_missing_output_is_on_standard_error stat -j -o /dev/full -- sh -c exit\${IFS}7
	7 option.--output:./dev/full the_missing_output_is_on_standard_error stat -x -r 2 -o /dev/full -- sh -c exit\${IFS}7
	7 /dev/full the_profile_is_in_$TMP/spare/full attach -q -o /dev/full -- sh -c exit\${IFS}7
	0 /dev/full the_profile_is_in_$TMP/spare/full attach -q -o /dev/full -d 0.1 -p $$
	1 /dev/full - report -o /dev/full a.pb.gz
	$(formats '1 /dev/full - export -f %s -o /dev/full a.pb.gz')
	1 /dev/full - diff --html /dev/full a.pb.gz b.pb.gz
	1 /dev/full - history --html /dev/full history.jsonl
	1 /dev/full - history -f github -o /dev/full history.jsonl
	1 /dev/full - merge -o /dev/full a.pb.gz b.pb.gz
	1 /dev/full - gate -q --runs 2 --warmup 0 --tap /dev/full --vs true -- true
	1 /dev/full - gate -q --runs 2 --warmup 0 --junit /dev/full --vs true -- true
	1 /dev/full - gate -q --runs 2 --warmup 0 --json /dev/full --vs true -- true
	1 /dev/full - gate -q --runs 2 --warmup 0 --markdown /dev/full --vs true -- true
	1 /dev/full - gate -q --runs 2 --warmup 0 --verdict /dev/full --vs true -- true
	1 option.--baseline:./dev/full the_baseline_is_in_$TMP/spare/full gate -q --runs 2 -b /dev/full --update-baseline -- true
ROWS

# ---- saved results

rm -f "$TMP"/spare/*
countersink -q -o /dev/full -- true 2>err
ok "run: the profile that was saved elsewhere is complete" countersink report "$TMP/spare/full"
countersink stat -e task-clock -o /dev/full -- true 2>err
like "$(cat err)" ' task-clock' "stat: the results are on stderr"
countersink stat -j -e task-clock -o /dev/full -- true 2>err
if have python3; then
	ok "stat: the results on stderr are JSON, as asked for" sh -c 'sed 1d err | python3 -m json.tool'
	countersink stat -j -I 20 -e task-clock -o /dev/full -- sleep 0.2 2>err
	ok "stat: the results on stderr have all intervals" sh -c 'sed 1d err | python3 -c "import json, sys
assert len(json.load(sys.stdin)[\"intervals\"]) > 1"'
else
	skip "stat: the results on stderr are JSON, as asked for" "no python3"
	skip "stat: the results on stderr have all intervals" "no python3"
fi
countersink stat -x -e task-clock -o /not/there/x.csv -- sh -c 'exit 8' 2>err
is $? 8 "stat: a missing directory does not stop the command"
like "$(cat err)" '^countersink: option --output: /not/there/x.csv: No such file or directory; the missing output is on standard error' "stat: a missing directory is reported"
like "$(cat err)" '^task-clock,nanoseconds,' "stat: a missing directory: the results are on stderr"
countersink diff --html /dev/full a.pb.gz b.pb.gz >out 2>err
like "$(cat out)" 'burn +spin' "diff: the table is printed although the page cannot be written"
countersink report -o /dev/full a.pb.gz >out 2>err
like "$(cat out)" 'burn +spin' "report: the table is printed although the file cannot be written"
countersink gate -q --runs 2 --warmup 0 --vs true -- true >/dev/full 2>err
like "$(cat err)" 'the output is incomplete; the verdict:' "gate: the verdict is on stderr"
ln -s /dev/full page.html
countersink -q -o page.html -- sh -c 'exit 9' 2>err
is $? 9 "run: a page that cannot be written: the status is the command's"
like "$(cat err)" '^countersink: page.html: No space left on device; the profile is in page.html.pb.gz$' "run: a page that cannot be written: the profile's place is reported"
ok "run: a page that cannot be written: the profile is readable" countersink report page.html.pb.gz

# ---- no message can be printed either: the command runs, and its status is returned

for how in '2>/dev/full' '2>&-' '>/dev/full 2>/dev/full' '<&- >&- 2>&-'; do
	for command in 'run -o r.pb.gz' stat 'attach -o r.pb.gz' 'reserve --lock-file=lock'; do
		got=$(eval "(countersink $command -- sh -c 'echo ran >>ran; exit 6') $how"; echo $?)
		is "$got:$(cat ran)" "6:ran" "$command $how: the command runs"
		rm -f ran
	done
done
is "$(countersink -q -o r.pb.gz -- sh -c '[ -e /proc/self/fd/1 ] || echo closed >&2' 2>&1 >&-)" closed \
	"a closed stream is closed for the command"

done_testing

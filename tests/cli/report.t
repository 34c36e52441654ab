#!/bin/sh
# `countersink report`, and go tool pprof on the same files.
. "$(dirname "$0")/lib.sh"

record() { # directory: record a run of the target there, as a launcher's library does
	mkdir -m 700 "$1" && COUNTERSINK_RUN_DIR=$PWD/$1 LD_PRELOAD=$LIB "$TARGETS/inlines" 2000 >/dev/null
}

# ---- a run directory ----
ok 'a run leaves recordings' record run
"$COUNTERSINK" report run >out 2>err
is $? 0 'a run directory is reported'
is "$(cat err)" '' 'report of a run directory prints nothing on stderr'
like "$(head -n 1 out)" 'of CPU time in .* 1 process, 1 thread; .* by task-clock' 'the verdict is the first line'
like "$(cat out)" 'churn' 'the hot function is there'
like "$(cat out)" 'inlines +(scramble|rotate) \(inlined\)' 'inlined functions are reported'
like "$(cat out)" 'samples cover [0-9.]* %' 'the covered share of CPU time is reported'
unlike "$(cat out)" "$(printf '\033')" 'a report to a file has no colour'
ok 'report keeps the recordings' test -e run

"$COUNTERSINK" report --quiet -o x.pb.gz run >out 2>err
is "$? $(cat out err)" '0 ' 'report -o prints nothing'
ok 'report -o removes the run directory' test ! -e run
ok 'report -o writes the profile' test -s x.pb.gz

# ---- a profile ----
"$COUNTERSINK" report x.pb.gz >out 2>err
is "$? $(cat err)" '0 ' 'a profile is reported'
like "$(cat out)" 'churn' 'the report of a profile has its functions'
like "$(tail -n 1 out)" '^next: go tool pprof -http : x.pb.gz$' 'the report ends with the next command to try'
is "$("$COUNTERSINK" report --fold-native x.pb.gz)" "$(cat out)" '--fold-native changes nothing where no interpreted function is'
"$COUNTERSINK" report -o y.pb.gz x.pb.gz >first
"$COUNTERSINK" report y.pb.gz >second
is "$(sed '$d' first)" "$(sed '$d' second)" 'a copy gives the same report'
"$COUNTERSINK" report --all x.pb.gz >all
ok '--all has no fewer rows' test "$(wc -l <all)" -ge "$(wc -l <out)"
is "$(grep -c -- '--all' all)" 0 '--all leaves no row out'
is "$("$COUNTERSINK" report -n 3 x.pb.gz | grep -cE '^ +[0-9.]+ +[0-9.]+ [a-z]+ +[0-9.]+ ')" 3 '--limit 3 prints three rows' ||
	"$COUNTERSINK" report -n 3 x.pb.gz | sed 's/^/# /'
like "$("$COUNTERSINK" report --limit 1 x.pb.gz)" 'in [0-9]+ more functions: --all' '--limit reports the number of rows left out'
"$COUNTERSINK" report -n 0 x.pb.gz >out2 2>err
is "$? $(cat out2)" '2 ' '--limit 0: status 2'
cp x.pb.gz countersink.pb.gz
is "$("$COUNTERSINK" report | sed '$d')" "$(sed '$d' out)" 'countersink.pb.gz is the default'
is "$("$COUNTERSINK" report - <x.pb.gz 2>&1)" "$(sed '$d' out)" '- is standard input'
like "$(NO_COLOR="" CLICOLOR_FORCE=1 "$COUNTERSINK" report x.pb.gz)" "$(printf '\033')" 'CLICOLOR_FORCE gives colour'
unlike "$(NO_COLOR=1 CLICOLOR_FORCE=1 "$COUNTERSINK" report x.pb.gz)" "$(printf '\033')" 'NO_COLOR overrides CLICOLOR_FORCE'
chmod 644 x.pb.gz
like "$(unprivileged "$COUNTERSINK" report x.pb.gz 2>&1)" 'churn' 'an unprivileged user reads a profile'

# ---- files that are no profile ----
refused() { # name argument pattern
	"$COUNTERSINK" report "$2" >out 2>err
	is "$? $(wc -l <err) $(cat out)" '1 1 ' "$1 is refused in one line"
	like "$(cat err)" "^countersink: .*$3" "$1: the reason is reported"
}
head -c 100 x.pb.gz >cut.pb.gz
echo 'hello, world' >text
: >empty
mkdir nothing
refused 'a missing file' nowhere.pb.gz 'No such file'
refused 'a truncated file' cut.pb.gz 'truncated gzip stream'
refused 'a text file' text 'not a pprof profile'
refused 'an empty file' empty 'empty'
refused 'a directory without recordings' nothing 'no recording'
head -c 20000000 /dev/zero | gzip >zeros
refused 'a file of zeros' zeros 'not a pprof profile'
"$COUNTERSINK" report -o /nowhere/x.pb.gz x.pb.gz >out 2>err
is $? 1 'an output that cannot be written: status 1'
like "$(cat err)" '/nowhere/x.pb.gz: No such file' 'an output that cannot be written is named'
record run
"$COUNTERSINK" report --quiet -o /dev/full run >out 2>err
is $? 1 'a full device: status 1'
like "$(cat err)" 'No space left.*the recordings are kept' 'a full device is reported, and that recordings are kept'
ok 'a full device: the recordings are kept' test -e run
"$COUNTERSINK" report x.pb.gz >/dev/full 2>err
is "$?" 1 'a report that cannot be printed: status 1'
"$COUNTERSINK" report a b >out 2>err
is $? 2 'two files: status 2'
"$COUNTERSINK" report --no-such-option >out 2>err
is $? 2 'an unknown option: status 2'

# ---- other readers ----
if command -v go >/dev/null; then
	PPROF_BINARY_PATH=$PWD go tool pprof -top x.pb.gz >top 2>err
	is $? 0 'go tool pprof reads the profile'
	like "$(cat top)" 'churn' 'go tool pprof names the hot function'
	like "$(cat top)" 'Type: task-clock' 'go tool pprof shows the event by default'
	go tool pprof -raw x.pb.gz >raw 2>err
	like "$(cat raw)" 'churn .*/inlines.cc:[1-9]' 'go tool pprof sees source lines'
	like "$(cat raw)" '/inlines [0-9a-f]{40} ' 'go tool pprof sees the mapping with its build-id'
	like "$(go tool pprof -list '^churn$' x.pb.gz 2>&1)" '[0-9]ms .*hash = scramble' 'go tool pprof lists the source with costs'
	is "$(go tool pprof -top -tagignore=pseudo x.pb.gz 2>err | grep -c '\[start-up')" 0 'go tool pprof can filter pseudo-functions'
else
	skip 'go tool pprof reads the profile' 'go is not installed'
fi

# ---- options after the file ----
is "$("$COUNTERSINK" report x.pb.gz --csv --limit 2)" "$("$COUNTERSINK" report --csv --limit 2 x.pb.gz)" 'options may follow the file'
is "$("$COUNTERSINK" report --csv x.pb.gz --limit 2)" "$("$COUNTERSINK" report --csv --limit 2 x.pb.gz)" 'options may stand before and after the file'
is "$("$COUNTERSINK" report -- x.pb.gz --csv 2>&1 | grep -c 'not 2')" 1 'after -- there are files only'
"$COUNTERSINK" diff x.pb.gz x.pb.gz --json >mixed
"$COUNTERSINK" diff --json x.pb.gz x.pb.gz >first
ok 'diff accepts options after the files' cmp mixed first
is "$("$COUNTERSINK" -q --no-report -o echo.pb.gz echo --json)" '--json' "arguments after a command are the command's"

done_testing

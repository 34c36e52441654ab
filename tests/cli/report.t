#!/bin/sh
# `countersink report`, and what go tool pprof makes of the same files.
. "$(dirname "$0")/lib.sh"

record() { # folder: record a run of the target there, as a launcher's library does
	mkdir -m 700 "$1" && COUNTERSINK_RUN_DIR=$PWD/$1 LD_PRELOAD=$LIB "$TARGETS/inlines" 2000 >/dev/null
}

# ---- a run folder ----
ok 'a run leaves recordings' record run
"$COUNTERSINK" report run >out 2>err
is $? 0 'a run folder is reported'
is "$(cat err)" '' 'without complaint'
like "$(head -n 1 out)" 'of CPU time in .* 1 process, 1 thread; .* by task-clock' 'the verdict is the first line'
like "$(cat out)" 'churn' 'the hot function is there'
like "$(cat out)" 'inlines +(scramble|rotate) \(inlined\)' 'inlined functions too'
like "$(cat out)" 'samples cover [0-9.]* %' 'and how much is covered'
unlike "$(cat out)" "$(printf '\033')" 'no colour in a file'
ok 'the recordings stay' test -e run

"$COUNTERSINK" report --quiet -o x.pb.gz run >out 2>err
is "$? $(cat out err)" '0 ' 'a profile is written in silence'
ok 'the folder is gone' test ! -e run
ok 'the profile is there' test -s x.pb.gz

# ---- a profile ----
"$COUNTERSINK" report x.pb.gz >out 2>err
is "$? $(cat err)" '0 ' 'a profile is reported'
like "$(cat out)" 'churn' 'with its functions'
like "$(tail -n 1 out)" '^next: go tool pprof -http : x.pb.gz$' 'and what to do next'
"$COUNTERSINK" report -o y.pb.gz x.pb.gz >first
"$COUNTERSINK" report y.pb.gz >second
is "$(sed '$d' first)" "$(sed '$d' second)" 'a copy gives the same report'
"$COUNTERSINK" report --all x.pb.gz >all
ok '--all has no fewer rows' test "$(wc -l <all)" -ge "$(wc -l <out)"
is "$(grep -c -- '--all' all)" 0 'and leaves nothing out'
is "$("$COUNTERSINK" report -n 3 x.pb.gz | grep -c 'inlines  ')" 3 '--limit has that many' ||
	"$COUNTERSINK" report -n 3 x.pb.gz | sed 's/^/# /'
like "$("$COUNTERSINK" report --limit 1 x.pb.gz)" 'in [0-9]+ more functions: --all' 'and says what is left out'
"$COUNTERSINK" report -n 0 x.pb.gz >out2 2>err
is "$? $(cat out2)" '2 ' 'a limit of nothing is wrong usage'
cp x.pb.gz countersink.pb.gz
is "$("$COUNTERSINK" report | sed '$d')" "$(sed '$d' out)" 'countersink.pb.gz is the default'
is "$("$COUNTERSINK" report - <x.pb.gz 2>&1)" "$(sed '$d' out)" 'standard input is a file'
like "$(NO_COLOR="" CLICOLOR_FORCE=1 "$COUNTERSINK" report x.pb.gz)" "$(printf '\033')" 'CLICOLOR_FORCE gives colour'
unlike "$(NO_COLOR=1 CLICOLOR_FORCE=1 "$COUNTERSINK" report x.pb.gz)" "$(printf '\033')" 'NO_COLOR takes it away'
chmod 644 x.pb.gz
like "$(unprivileged "$COUNTERSINK" report x.pb.gz 2>&1)" 'churn' 'an unprivileged reader is served'

# ---- what is no profile ----
refused() { # name argument pattern
	"$COUNTERSINK" report "$2" >out 2>err
	is "$? $(wc -l <err) $(cat out)" '1 1 ' "$1 is refused in one line"
	like "$(cat err)" "^countersink: .*$3" 'with the reason'
}
head -c 100 x.pb.gz >cut.pb.gz
echo 'hello, world' >text
: >empty
mkdir nothing
refused 'a file that is not there' nowhere.pb.gz 'No such file'
refused 'a file that was cut' cut.pb.gz 'truncated gzip stream'
refused 'a text' text 'not a pprof profile'
refused 'an empty file' empty 'empty'
refused 'a folder without recordings' nothing 'no recording'
head -c 20000000 /dev/zero | gzip >zeros
refused 'zeros' zeros 'not a pprof profile'
"$COUNTERSINK" report -o /nowhere/x.pb.gz x.pb.gz >out 2>err
is $? 1 'a place that cannot be written is an error'
like "$(cat err)" '/nowhere/x.pb.gz: No such file' 'by its name'
record run
"$COUNTERSINK" report --quiet -o /dev/full run >out 2>err
is $? 1 'a full device is an error'
like "$(cat err)" 'No space left.*the recordings are kept' 'and costs nothing'
ok 'the recordings are there' test -e run
"$COUNTERSINK" report x.pb.gz >/dev/full 2>err
is "$?" 1 'a report that cannot be printed is an error'
"$COUNTERSINK" report a b >out 2>err
is $? 2 'two files are wrong usage'
"$COUNTERSINK" report --no-such-option >out 2>err
is $? 2 'so is an unknown option'

# ---- others ----
if command -v go >/dev/null; then
	PPROF_BINARY_PATH=$PWD go tool pprof -top x.pb.gz >top 2>err
	is $? 0 'go tool pprof reads the profile'
	like "$(cat top)" 'churn' 'with the hot function'
	like "$(cat top)" 'Type: task-clock' 'the event by default'
	go tool pprof -raw x.pb.gz >raw 2>err
	like "$(cat raw)" 'churn .*/inlines.cc:[1-9]' 'lines'
	like "$(cat raw)" '/inlines [0-9a-f]{40} ' 'the mapping with its build-id'
	like "$(go tool pprof -list '^churn$' x.pb.gz 2>&1)" '[0-9]ms .*hash = scramble' 'the source with its costs'
	is "$(go tool pprof -top -tagignore=pseudo x.pb.gz 2>err | grep -c '\[start-up')" 0 'pseudo-functions can be filtered'
else
	skip 'go tool pprof reads the profile' 'go is not installed'
fi

# ---- options behind the file, as people add them to the line before ----
is "$("$COUNTERSINK" report x.pb.gz --csv --limit 2)" "$("$COUNTERSINK" report --csv --limit 2 x.pb.gz)" 'options may follow the file'
is "$("$COUNTERSINK" report --csv x.pb.gz --limit 2)" "$("$COUNTERSINK" report --csv --limit 2 x.pb.gz)" 'or stand on both sides'
is "$("$COUNTERSINK" report -- x.pb.gz --csv 2>&1 | grep -c 'not 2')" 1 'behind -- there are files alone'
"$COUNTERSINK" diff x.pb.gz x.pb.gz --json >mixed
"$COUNTERSINK" diff --json x.pb.gz x.pb.gz >first
ok 'diff takes them there, too' cmp mixed first
is "$("$COUNTERSINK" -q --no-report -o echo.pb.gz echo --json)" '--json' 'but what follows a command is the command'\''s'

done_testing

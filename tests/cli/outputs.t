#!/bin/bash
# Files written where other users can write: no output follows, opens or replaces another user's file or link,
# and files that this user made and named are written as usual.
. "$(dirname "$0")/lib.sh"

umask 022
mkdir place sticky secret spare
chmod 777 place spare
chmod 1777 sticky
chmod 700 secret
cd place || exit 1
countersink -q -o a.pb.gz -- "$TARGETS/burn" 20 || exit 1
cp a.pb.gz b.pb.gz
echo '{"v":1,"commit":"c","anchor":"a","cases":{"x":{"figures":{"cpu":[1.5,1,2,3,"count"]}}}}' >history.jsonl
mode() {
	stat -c %a "$1"
}

# ---- outputs named by the user

echo old >kept && chmod 600 kept
countersink export -f folded -o kept a.pb.gz
is "$(mode kept)" 600 "a file that is replaced keeps its mode"
like "$(cat kept)" burn "a file that is replaced has the new text"
countersink -q -o kept.pb.gz -- true
is "$(mode kept.pb.gz)" 644 "a new file has the umask's mode"
chmod 640 kept.pb.gz
(umask 077 && countersink -q -o kept.pb.gz -- true)
is "$(mode kept.pb.gz) $(mode kept.pb.gz.old)" "640 640" "a profile and its .old file keep the mode"
(umask 077 && countersink export -f folded -o private a.pb.gz)
is "$(mode private)" 600 "a new file has mode 600 under umask 077"

mkdir sub
ln -s sub/target link
countersink -q -o link -- true
ok "a dangling link of the user's own is followed" test -s sub/target
ok "a followed link stays a link" test -L link
countersink -q -o link -- true
ok "the .old file is beside the link's target" test -s sub/target.old
ln -s "$PWD/link" again && ln -s . here
countersink export -f folded -o here/here/again a.pb.gz
like "$(cat sub/target)" burn "links to links are followed: relative, absolute, and of directories"
ln -s loop loop
countersink export -f folded -o loop a.pb.gz 2>err
like "$(cat err)" '^countersink: loop: Too many levels of symbolic links; ' "a loop of links is an error"

mkfifo fifo
cat fifo >got &
countersink export -f folded -o fifo a.pb.gz
wait $!
like "$(cat got)" burn "a FIFO of the user's own is written to"
countersink export -f folded -o /dev/stdout a.pb.gz >got
like "$(cat got)" burn "/dev/stdout is written to"
{ echo before && countersink export -f folded -o /dev/stdout a.pb.gz && echo after; } >got
is "$(sed -n '1p;$p' got | tr '\n' ' ')" "before after " "/dev/stdout keeps other output before and after"
countersink export -f folded -o /dev/fd/7 a.pb.gz 7>got
like "$(cat got)" burn "/dev/fd/7 is written to"
countersink export -f folded -o >(cat >got; : >finished) a.pb.gz
wait_until 30 test -e finished
like "$(cat got)" burn "a process substitution is written to"
ln -s /dev/stdout out
like "$(countersink export -f folded -o out a.pb.gz)" burn "a link to /dev/stdout is written to"
countersink export -f folded -o /dev/fd/99 a.pb.gz 2>err
like "$(cat err)" '^countersink: /dev/fd/99: it is closed; ' "a closed descriptor is an error"
ok "/dev/null is written to" countersink -q -o /dev/null -- true
name=$(printf 'n%.0s' {1..255})
ok "a file name of the greatest length is written" countersink export -f folded -o "$name" a.pb.gz
is "$(find . -name '*.????????????' | wc -l)" 0 "no temporary file is left"
countersink stat -o counts -- sh -c 'test -e counts && exit 5'
is $? 5 "stat's output file exists while the command runs"
echo before >summary.md
countersink gate -q --runs 2 --warmup 0 --markdown summary.md --vs true -- true >/dev/null
is "$(head -1 summary.md) $(wc -l <summary.md | sed 's/^1$/short/;s/^[0-9].*$/long/')" "before long" "Markdown is appended"

# ---- files and links of other users (--reuid needs root)

if [ "$(id -u)" != 0 ]; then
	skip "files and links of other users" "needs root, to be two users"
	done_testing
fi

# planted KIND PATH...: another user creates it.
planted() {
	local kind=$1 path
	shift
	rm -rf "$TMP"/sticky/* "$TMP"/secret/*
	echo precious >"$TMP/secret/victim"
	chmod 600 "$TMP/secret/victim"
	for path; do
		case $kind in
		link) unprivileged ln -s "$TMP/secret/victim" "$path" ;;
		hanging) unprivileged ln -s "$TMP/secret/new" "$path" ;;
		FIFO) unprivileged mkfifo "$path" ;;
		file) unprivileged sh -c 'echo theirs >"$0"; chmod 666 "$0"' "$path" ;;
		esac
	done
}
# The victim and the planted file are as they were. A socket or directory would add no case.
unharmed() {
	[ "$(cat "$TMP/secret/victim")" = precious ] && [ "$(mode "$TMP/secret/victim")" = 600 ] &&
		[ "$(ls "$TMP/secret")" = victim ] && { ! [ -f "$1" ] || [ -L "$1" ] || [ "$(cat "$1")" = theirs ]; }
}

S=$TMP/sticky
for kind in link hanging FIFO file; do
	while read -r file status command; do
		planted $kind "$S/$file"
		# shellcheck disable=SC2086 # the row's words
		TMPDIR=$TMP/spare timeout -s KILL 60 countersink $command >out 2>err
		is $? "$status" "$kind at $command: status"
		like "$(grep -c "$S/$file.*: .*another user" err)" '^[12]$' "$kind at $command: refused, and reported in a line"
		ok "$kind at $command: nothing is harmed" unharmed "$S/$file"
	done <<-ROWS
		x 6 run -q -o $S/x -- sh -c exit\${IFS}6
		x 6 stat -o $S/x -- sh -c exit\${IFS}6
		x 6 attach -q -o $S/x -- sh -c exit\${IFS}6
		x.html 6 run -q -o $S/x.html -- sh -c exit\${IFS}6
		x 1 report -o $S/x a.pb.gz
		x 1 merge -q -o $S/x a.pb.gz b.pb.gz
		x 1 export -f html -o $S/x a.pb.gz
		x 1 export -f perf.data -o $S/x a.pb.gz
		x 1 export -f callgrind -o $S/x a.pb.gz
		x 1 history --html $S/x history.jsonl
		x 1 history -f csv -o $S/x history.jsonl
		x 1 diff --html $S/x a.pb.gz b.pb.gz
		x 1 gate -q --runs 2 --warmup 0 --history $S/x --anchor a --commit c --vs true -- true
		x 1 gate -q --runs 2 --warmup 0 --tap $S/x --vs true -- true
		x 1 gate -q --runs 2 --warmup 0 --json $S/x --vs true -- true
		x 1 gate -q --runs 2 --warmup 0 --junit $S/x --vs true -- true
		x 1 gate -q --runs 2 --warmup 0 --markdown $S/x --vs true -- true
		x 1 gate -q --runs 2 --warmup 0 --html $S/x --vs true -- true
		x 1 gate -q --runs 2 --warmup 0 --verdict $S/x --vs true -- true
		x 1 gate -q --runs 2 -b $S/x --update-baseline -- true
	ROWS
done
rm -f "$TMP"/spare/*

# A directory on the way.
planted link
unprivileged ln -s "$TMP/secret" "$S/dir"
countersink export -f folded -o "$S/dir/victim" a.pb.gz 2>err
like "$(cat err)" "^countersink: $S/dir/victim: a symbolic link on the way belongs to another user" "a link to a directory is refused"
ok "a link to a directory: nothing is harmed" unharmed "$S/dir"
planted link
unprivileged sh -c 'echo theirs >"$0"' "$S/x.old"
countersink -q -o "$S/x" -- true
TMPDIR=$TMP/spare countersink -q -o "$S/x" -- true 2>err
is "$(cat "$S/x.old")" theirs "another user's FILE.old is not removed"
like "$(cat err)" "^countersink: $S/x: it belongs to another user.*; the profile is in $TMP/spare/x$" "another user's file is reported, with the profile's place"

# The fallback directory.
for kind in link hanging FIFO file; do
	planted $kind "$S/x.gz"
	TMPDIR=$S timeout -s KILL 60 countersink -q -o /nowhere/x.gz -- sh -c 'exit 6' 2>err
	is $? 6 "$kind at the fallback: status"
	ok "$kind at the fallback: nothing is harmed" unharmed "$S/x.gz"
	saved=$(sed -n 's/.*the profile is in //p' err)
	isnt "$saved" "$S/x.gz" "$kind at the fallback: the profile is elsewhere"
	is "$(mode "$saved")" 600 "$kind at the fallback: the saved profile has mode 600"
	rm -f "$saved" "$saved.old"
done
mkdir theirs && chown 65534 theirs
TMPDIR=$PWD/theirs countersink -q -o /nowhere/y-$$.gz -- true 2>err
is "$(ls theirs)" "" "another user's directory is no fallback"
rm -f "$(sed -n 's/.*the profile is in //p' err)"
echo more >"$TMP/spare/z.gz" && chmod 644 "$TMP/spare/z.gz"
TMPDIR=$TMP/spare countersink -q -o /nowhere/z.gz -- true 2>err
is "$(mode "$TMP/spare/z.gz")" 600 "the fallback file has mode 600 although an earlier one was readable"

# In another user's directory that user's links and files are used, as the kernel does.
chown 65534 theirs && unprivileged sh -c 'cd theirs && echo old >file && ln -s file link'
countersink export -f folded -o theirs/link a.pb.gz
like "$(cat theirs/file)" burn "a link of the owner's in another user's directory is followed"
unprivileged mkfifo theirs/fifo
timeout -s KILL 60 countersink export -f folded -o theirs/fifo a.pb.gz 2>err
like "$(cat err)" '^countersink: theirs/fifo: it is another user.s FIFO, and no process reads it' "another user's FIFO without a reader is refused, not waited for"
ok "a pipe at /dev/stdout is not another user's file" sh -c 'countersink export -f folded -o /dev/stdout a.pb.gz | cat'

done_testing

#!/bin/bash
# `countersink merge --tree`: processes that share a directory of profiles, in any shape of tree and number, and killed at any
# point, give the bytes of one merge.
. "$(dirname "$0")/lib.sh"

merge() {
	"$COUNTERSINK" merge -q "$@"
}
same() {
	cmp "$1" "$2"
}
tree() { # PROCESSES OPTION... DIRECTORY: so many at once
	local nr=$1
	shift
	seq "$nr" | xargs -P "$nr" -I{} "$COUNTERSINK" merge -q "$@"
}
work() { # DIRECTORY: what is in the directories for results
	find "$1" -path '*/.countersink-merge-*/*' -printf '%f\n' | sort | paste -sd' '
}

mkdir all few
for i in $(seq -w 70); do
	for k in 1 2 3 4 5; do
		echo "main;step_$((10#$i % 7));work_$((10#$i * k % 11)) $((10#$i + k))"
	done >"$i.folded"
	merge -o "all/p$i.pb.gz" "$i.folded"
done
cp all/p0*.pb.gz few

# ---- orders and shapes
ok '70 profiles are merged in order' merge -o flat.pb.gz all/*.pb.gz
# shellcheck disable=SC2046
ok 'and in reverse order' merge -o back.pb.gz $(ls -r all/*.pb.gz)
# shellcheck disable=SC2046
ok 'and shuffled' merge -o shuffled.pb.gz $(shuf --random-source=<(yes 1) -e all/*.pb.gz)
ok 'reverse order: the same bytes' same flat.pb.gz back.pb.gz
ok 'shuffled: the same bytes' same flat.pb.gz shuffled.pb.gz
for shape in '--tree 1' '--tree 3' '--tree=2 1' '--tree=2 4' '--tree=7 4' '--tree=70 2' '--tree=99999 2'; do
	option=${shape% *} nr=${shape#* }
	rm -f out.pb.gz
	ok "$option, processes: $nr" tree "$nr" "$option" -o out.pb.gz all
	ok "$option, processes: $nr: the same bytes" same flat.pb.gz out.pb.gz
	is "$(work all)" "$(yes 'done' | head -n "$(find all -maxdepth 1 -name '.countersink-merge-*' | wc -l)" | paste -sd' ')" "$option, processes: $nr: of results only the mark is left"
done
like "$("$COUNTERSINK" merge --tree -o said.pb.gz few 2>&1)" '^countersink: said\.pb\.gz: 9 profiles, [0-9]+ distinct samples' 'the process that writes the output reports it'
before=$(stat -c %y said.pb.gz)
is "$("$COUNTERSINK" merge --tree -o said.pb.gz few 2>&1)" '' 'one that comes later has nothing to do'
is "$(stat -c %y said.pb.gz)" "$before" 'and leaves the output as it is'
rm said.pb.gz
ok 'an output that was removed is made again' tree 2 --tree -o said.pb.gz few
ok 'it has all profiles' same said.pb.gz <(merge -o /dev/stdout few/*.pb.gz)
cp all/p70.pb.gz few/q.pb.gz
ok 'after another profile has come' tree 2 --tree -o said.pb.gz few
ok 'the output has that, too' same said.pb.gz <(merge -o /dev/stdout few/*.pb.gz)
rm few/q.pb.gz
ok 'the output may be in the directory' tree 2 --tree=3 -o few/out.pb.gz few
ok 'it has the profiles, and not itself' same few/out.pb.gz <(merge -o /dev/stdout few/p*.pb.gz)
is "$(cd few && "$COUNTERSINK" merge --tree=3 -o out.pb.gz . 2>&1)" '' 'and is the same by another name'
rm -f few/out.pb.gz few/out.pb.gz.old

# ---- labels are kept as without --tree
mkdir ranks
for rank in 0 1 2; do
	OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=3 "$COUNTERSINK" -q -o "ranks/r$rank.pb.gz" -- true
done
for option in --keep-ranks --keep-ids; do
	ok "$option with --tree" tree 2 --tree=2 $option -o labels.pb.gz ranks
	ok "$option with --tree: the bytes of the merge without" same labels.pb.gz <(merge $option -o /dev/stdout ranks/*.pb.gz)
	rm labels.pb.gz
done

# ---- claims
# What another process has claimed, and it lives, is not done.
start=$(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)
id="$(hostname) $(cat /proc/sys/kernel/random/boot_id) $(readlink /proc/self/ns/pid) $$ $start"
rm -rf few/.countersink-merge-*
merge --tree=3 -o claimed.pb.gz few
directory=$(echo few/.countersink-merge-*)
rm "$directory/done" claimed.pb.gz
printf '%s' "$id" >"$directory/0-1.claim"
merge --tree=3 -o claimed.pb.gz few &
pid=$!
until [ -e "$directory/0-0.pb.gz" ] && [ -e "$directory/0-2.pb.gz" ]; do
	kill -0 "$pid" || break
done
ok 'a process waits for what another one has claimed' test ! -e claimed.pb.gz -a ! -e "$directory/0-1.pb.gz" -a -d "/proc/$pid"
rm "$directory/0-1.claim"
wait "$pid"
is $? 0 'and goes on once the claim is given up'
ok 'the same bytes' same claimed.pb.gz <(merge -o /dev/stdout few/*.pb.gz)
rm "$directory/done" claimed.pb.gz
printf '%s' "${id% *} 1" >"$directory/0-1.claim" # the PID is another process's now
ok 'what a process that has died had claimed is done by another' merge --tree=3 -o claimed.pb.gz few
ok 'in the same bytes' same claimed.pb.gz <(merge -o /dev/stdout few/*.pb.gz)

# ---- killed at any point, and started again
# Each of its system calls that change something or read a name, the first, the second, ...
killed=0 wrong=''
merge -o want.pb.gz few/*.pb.gz
for call in link rename renameat unlink unlinkat mkdir write linkat openat; do
	nth=1
	while :; do
		rm -rf few/.countersink-merge-* killed.pb.gz
		# The shell of a subshell that is killed has nothing to report.
		(strace -o /dev/null -e trace=$call -e inject=$call:signal=KILL:when=$nth "$COUNTERSINK" merge -q --tree=3 -o killed.pb.gz few; exit $?) 2>/dev/null && break
		killed=$((killed + 1))
		tree 2 --tree=3 -o killed.pb.gz few || wrong="$wrong $call-$nth:failed"
		cmp -s killed.pb.gz want.pb.gz || wrong="$wrong $call-$nth:differs"
		[ ! -e killed.pb.gz.old ] || wrong="$wrong $call-$nth:twice"
		[ "$(echo killed.pb.gz*)" = killed.pb.gz ] || wrong="$wrong $call-$nth:temporary"
		rm -f killed.pb.gz?*
		[ "$(work few)" = 'done' ] || wrong="$wrong $call-$nth:left:$(work few)"
		[ "$call" != openat ] || nth=$((nth + 6))
		nth=$((nth + 1))
	done
done
is "$wrong" '' 'killed at any of its system calls and started again: the same bytes, written once, nothing left'

# ---- another process makes the output meanwhile
# One is stopped at each of its system calls, loses its claims, as after a time, and goes on once the other is done.
stopped=0 wrong=''
for call in link linkat rename unlink openat write; do
	nth=1
	while :; do
		rm -rf few/.countersink-merge-* both.pb.gz* log
		strace -D -o log -e trace=$call -e inject=$call:signal=STOP:when=$nth "$COUNTERSINK" merge -q --tree=3 -o both.pb.gz few &
		pid=$!
		wait_until 30 sh -c "grep -q 'stopped by SIGSTOP' log || ! kill -0 $pid" 2>/dev/null
		grep -q 'stopped by SIGSTOP' log || {
			! kill -0 "$pid" 2>/dev/null || wrong="$wrong $call-$nth:late"
			break
		}
		stopped=$((stopped + 1))
		rm -f few/.countersink-merge-*/*.claim
		merge -q --tree=3 -o both.pb.gz few || wrong="$wrong $call-$nth:other"
		kill -CONT "$pid"
		wait "$pid" || wrong="$wrong $call-$nth:failed"
		[ "$(echo both.pb.gz*)" = both.pb.gz ] || wrong="$wrong $call-$nth:twice"
		cmp -s both.pb.gz want.pb.gz || wrong="$wrong $call-$nth:differs"
		nth=$((nth + 1))
		[ "$call" != openat ] || nth=$((nth + 2))
	done
	wait "$pid"
done
is "$wrong" '' 'stopped at any of its system calls until another process is done: no failure, the output is written once'
ok "it was stopped at $stopped of them" test "$stopped" -ge 20
ok "it was killed often ($killed times)" test "$killed" -gt 20

# ---- what is wrong
printf 'no profile' >few/z.pb.gz
tree 3 --tree=3 -o damaged.pb.gz few 2>err
is $? 123 'a damaged profile: each process fails'
like "$(cat err)" '^countersink: few/z\.pb\.gz: .*nothing is merged$' 'a damaged profile is named'
ok 'and nothing is written' test ! -e damaged.pb.gz
rm few/z.pb.gz
mkdir empty
for arguments in '--tree few all' '--tree' '--tree few/p01.pb.gz' '--tree missing' '--tree=1 few' '--tree=x few' '--tree=-3 few' '--tree=1000000 few'; do
	# shellcheck disable=SC2086
	"$COUNTERSINK" merge $arguments 2>err
	is $? 2 "merge $arguments: status 2"
done
"$COUNTERSINK" merge --tree empty 2>err
is $? 1 'a directory without profiles: status 1'
like "$(cat err)" '^countersink: empty: no profile' 'a directory without profiles: the reason'
"$COUNTERSINK" merge --tree -o /dev/null few 2>err
is $? 1 'an output that is no file: status 1'
like "$(cat err)" 'has to be a file' 'an output that is no file: the reason'
"$COUNTERSINK" merge --tree -q -o missing/out.pb.gz few 2>err
is $? 1 'an output in a directory that is missing: status 1'
like "$(cat err)" 'missing/out\.pb\.gz' 'an output in a directory that is missing is named'

# ---- what others may have put there
rm -rf few/.countersink-merge-*
merge -o want.pb.gz few/*.pb.gz
mkdir foreign
touch foreign/theirs foreign/1-2.pb.gz
touch -d '2 days ago' foreign/done foreign/1-2.pb.gz foreign
ln -s ../foreign few/.countersink-merge-link
mkdir few/.countersink-merge-old few/.countersink-merge-abandoned few/.countersink-merge-recent few/.countersink-merge-theirs
touch few/.countersink-merge-recent/0-0.pb.gz
touch -d '2 hours ago' few/.countersink-merge-old/done few/.countersink-merge-old
touch -d '2 days ago' few/.countersink-merge-abandoned/0-0.pb.gz few/.countersink-merge-abandoned
touch few/.countersink-merge-theirs/precious
touch -d '2 hours ago' few/.countersink-merge-theirs/done few/.countersink-merge-theirs
ok 'merged beside what is left of other merges' merge --tree=3 -o beside.pb.gz few
is "$(ls foreign | paste -sd' ')" '1-2.pb.gz done theirs' 'nothing is removed through a link'
is "$(ls few/.countersink-merge-theirs)" 'precious' 'nor what is not of a merge'
ok 'the mark of an older merge is removed' test ! -e few/.countersink-merge-old
ok 'and what a merge has left that no process works on' test ! -e few/.countersink-merge-abandoned
ok 'but not what may be worked on' test -e few/.countersink-merge-recent/0-0.pb.gz
rm -r few/.countersink-merge-link few/.countersink-merge-theirs few/.countersink-merge-recent
directory=$(echo few/.countersink-merge-*)
rm -r "$directory" beside.pb.gz
ln -s ../foreign "$directory"
merge --tree=3 -o beside.pb.gz few 2>err
is "$? $(ls foreign | paste -sd' ')" '1 1-2.pb.gz done theirs' 'a link in place of the directory for results: status 1, and nothing is made'
like "$(cat err)" 'countersink-merge-.*: Not a directory' 'a link in place of the directory for results: the reason'
rm "$directory"
if [ "$(id -u)" = 0 ]; then
	mkdir "$directory"
	chown 65534 "$directory"
	chmod 1777 few
	merge --tree=3 -o beside.pb.gz few 2>err
	is $? 1 "another user's directory for results, where all can make one: status 1"
	like "$(cat err)" 'it belongs to another user, in a directory that others can write' "another user's directory for results: the reason"
	chmod 755 few
	rm -r "$directory"
else
	skip "another user's directory for results, where all can make one" 'only root can make one'
fi

# ---- an output in the directory under another name
ln -s few/sum.pb.gz link.pb.gz
for i in 1 2; do
	rm -rf few/.countersink-merge-*
	ok "an output that a link leads to, merge $i" merge --tree=3 -o link.pb.gz few
	ok "has the profiles, and not itself, merge $i" same few/sum.pb.gz want.pb.gz
done
rm -f few/sum.pb.gz few/sum.pb.gz.old

# ---- where there are no hard links
ok 'without hard links' strace -o /dev/null -e trace=link,linkat -e inject=link,linkat:error=EPERM "$COUNTERSINK" merge -q --tree=3 -o unlinked.pb.gz few
ok 'the same bytes' same unlinked.pb.gz want.pb.gz
is "$(work few | tr ' ' '\n' | sort -u)" 'done' 'and nothing is left'

# ---- where files cannot be written, or disappear
rm -rf few/.countersink-merge-* unlinked.pb.gz
merge --tree=3 -o unmarked.pb.gz few
directory=$(echo few/.countersink-merge-*)
rm unmarked.pb.gz "$directory/done"
strace -o /dev/null -e trace=rename -e inject=rename:error=ENOSPC "$COUNTERSINK" merge -q --tree=3 -o unmarked.pb.gz few 2>err
is $? 1 'the mark cannot be written: status 1'
like "$(cat err)" '/done: No space left on device; the output is written' 'the mark cannot be written: the reason'
ok 'the output is there' same unmarked.pb.gz want.pb.gz
ok 'the same command makes the mark' merge --tree=3 -o unmarked.pb.gz few
ok 'and leaves the output as it is' test -e "$directory/done" -a ! -e unmarked.pb.gz.old
rm unmarked.pb.gz "$directory/done"
strace -o trace -P "$directory/0-1.pb.gz" -e trace=openat -e inject=openat:error=ENOENT:when=1 "$COUNTERSINK" merge -q --tree=3 -o unmarked.pb.gz few
is "$? $(grep -c INJECTED trace)" '0 1' 'a result that another process removes is made again'
ok 'with the same bytes' same unmarked.pb.gz want.pb.gz
done_testing

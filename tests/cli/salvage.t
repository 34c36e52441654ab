#!/bin/bash
# Programs that are profiled by their environment alone and killed: the next start has their profiles made, each once.
. "$(dirname "$0")/lib.sh"

mkdir -m 711 shm out
XDG_RUNTIME_DIR=$TMP/shm
TMPDIR=$TMP/none
COUNTERSINK_PLACE=$TMP/shm
export XDG_RUNTIME_DIR TMPDIR COUNTERSINK_PLACE

# start OUTPUT COMMAND...: without a launcher.
start() {
	local output=$1
	shift
	LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$output "$@"
}
# die OUTPUT MS: a program that works for so long, and is killed by itself.
die() {
	# shellcheck disable=SC2016
	start "$1" sh -c '"$0" "$1"; kill -KILL $$' "$TARGETS/burn" "$2" >died 2>&1
}
nr() {
	find "$1" -mindepth 1 -maxdepth 1 | wc -l
}
empty() {
	test -z "$(ls "$1")"
}
# The kernel lets go of a killed process's mappings a little after its parent has waited for it.
salvaged() {
	countersink salvage shm >>words 2>&1 || echo "status $?" >>words
	empty shm
}

# ---- a crash loop
for _ in 1 2 3 4 5 6; do
	die "$TMP/out/loop.pb.gz" 20
done 2>/dev/null
ok "six programs are killed one after the other" test ! -e out/loop.pb.gz
wait_until 30 sh -c 'sleep 0.1; test "$(ls out | wc -l)" -ge 5 || { LD_PRELOAD=$1 COUNTERSINK_OUTPUT=$0/healthy.pb.gz /bin/true; false; }' "$TMP" "$LIB"
ok "the last one's profile is made by the next start" wait_until 30 sh -c 'test "$(ls out | wc -l)" = 6 || { LD_PRELOAD=$1 COUNTERSINK_OUTPUT=$0/healthy.pb.gz /bin/true; false; }' "$TMP" "$LIB"
ok "nothing is left of them" wait_until 30 empty shm
is "$(find out -name 'loop.killed-20[0-9]*T[0-9]*Z-[0-9]*-??????.pb.gz' | wc -l)" 6 "each has a name of its start, PID and run"
bad=
for file in out/*; do
	report=$(countersink report --all "$file" 2>&1)
	case $report in
	*' 2 processes, '*' burn_60'*) ;;
	*) bad="$bad $file" ;;
	esac
done
is "$bad" "" "each profile has both processes of its run"
unlike "$report" '(note|warning) .*out/loop' "the place of the profile is no note of the report"
rm -rf out/* healthy.pb.gz*

# ---- the start that finds some
die "$TMP/out/x.pb.gz" 5
# The program's files, session and directory are its own: a pipe of its has an end when it ends.
got=$(start "$TMP/own.pb.gz" sh -c 'ps -o comm= --ppid $$ | grep -c countersink; echo done' 2>&1)
is "$got" "0
done" "the program that starts has no further child, and its output ends with it"
ok "the profile of the killed one is made" wait_until 30 sh -c 'ls out/x.killed-*'
ok "its recordings are removed" wait_until 30 empty shm
rm -rf out/*
die "$TMP/out/init.pb.gz" 5
if [ "$(id -u)" = 0 ] && unshare -pf true 2>/dev/null; then
	# As PID 1, which inherits what has lost its parent: it must not have a child that it did not start.
	# shellcheck disable=SC2016
	LD_PRELOAD='' unshare -pf --mount-proc sh -c 'LD_PRELOAD=$0 COUNTERSINK_OUTPUT=$2 exec python3 -c "
import os
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print(os.getpid(), \"no child\", len(os.listdir(\"$1\")))"' "$LIB" "$TMP/out" "$TMP/one.pb.gz" >one 2>&1
	like "$(tail -n 1 one)" '^1 no child 1$' "a program that is PID 1 has no child of ours: the helper has ended before it begins"
else
	skip "a program that is PID 1" "no pid namespaces here"
fi
wait_until 30 salvaged
rm -rf out/*

# ---- real programs
start "$TMP/out/python.pb.gz" python3 -c 'import os, signal
sum(i * i for i in range(300000))
os.kill(os.getpid(), signal.SIGKILL)' >/dev/null 2>&1
# No start comes after it: the profile is made by this command, and by no helper of the library.
: >words
ok "salvage makes the profile of python3" wait_until 30 salvaged
unlike "$(cat words)" '^status' "salvage has status 0"
like "$(cat words)" '^countersink: .*/out/python\.killed-.*: made of the recordings in shm/countersink-......$' "salvage names the profile and its recordings"
is "$(nr out)" 1 "there is one profile"
if have redis-server; then
	LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/out/redis.pb.gz redis-server --port 0 --unixsocket "$TMP/redis.sock" --save '' >redis.out 2>&1 &
	redis=$!
	ok "redis-server answers" wait_until 30 test -S redis.sock
	kill -KILL $redis
	wait $redis 2>/dev/null
	ok "salvage makes the profile of redis-server" wait_until 30 salvaged
	is "$(nr out)" 2 "it is one more"
	like "$(countersink report out/redis.* 2>&1)" 'command +redis-server' "redis-server's profile is its own"
else
	skip "redis-server" "it is not installed"
fi
like "$(countersink report --all out/python.* 2>&1)" '<genexpr>' "python3's profile has its functions"
countersink salvage shm >words 2>&1
is "$? $(cat words)" "0 countersink: found no recordings of killed runs" "salvage reports that there is nothing"
rm -rf out/*

# ---- what is left alone
# shellcheck disable=SC2016
LD_PRELOAD=$LIB COUNTERSINK_OUTPUT=$TMP/out/live.pb.gz sh -c ': >up; while ! test -e stop; do :; done' &
wait_until 30 test -e up
countersink salvage -q shm
is "$? $(nr shm) $(nr out)" "0 1 0" "a run that goes on is left alone"
: >stop
wait $!
is "$(echo out/*)" out/live.pb.gz "it makes its own profile"
rm -rf out/* up stop
# A process of the run lives on, and one is between two programs.
# shellcheck disable=SC2016
start "$TMP/out/child.pb.gz" sh -c 'sh -c "echo \$\$ >pid; : >up; while ! test -e stop; do :; done" & until test -e up; do :; done; kill -KILL $$' >/dev/null 2>&1
countersink salvage -q shm
is "$? $(nr shm) $(nr out)" "0 1 0" "a run of which a child lives is left alone"
: >stop
wait_until 30 sh -c '! kill -0 $(cat pid) 2>/dev/null'
wait_until 30 sh -c '"$0" salvage -q shm; ls out/child.killed-*' "$COUNTERSINK"
is "$? $(ls shm)" "0 " "it is salvaged when its last process has ended"
rm -rf out/* up stop
countersink -q -o launched.pb.gz -- sh -c ': >up; while ! test -e stop; do :; done' &
wait_until 30 test -e up
countersink salvage -q shm
is "$? $(nr shm)" "0 1" "the run of a launcher is left alone"
: >stop
wait $!
ok "the launcher makes its profile" test -s launched.pb.gz
die /dev/null 5
countersink salvage shm >words 2>&1
is "$? $(nr shm)" "0 1" "recordings whose output is a device are kept"
like "$(cat words)" 'name no output: .countersink report -o FILE shm/countersink-' "they are reported with what to do"
start "$TMP/out/other.pb.gz" /bin/true
start "$TMP/out/other.pb.gz" /bin/true
is "$(nr shm)" 1 "later starts leave them alone"
rm -rf shm/* out/*
if [ "$(id -u)" = 0 ]; then
	die "$TMP/out/theirs.pb.gz" 5
	chown -R 65534 shm/countersink-*
	countersink salvage -q shm
	is "$? $(nr shm) $(nr out)" "0 1 0" "recordings of another user are left alone"
	rm -rf shm/*
fi
ln -s "$TMP/out" shm/countersink-AbCdEf
mkdir -m 700 shm/countersink-Empty1 shm/countersink-Empty2
touch -d '1 hour ago' shm/countersink-Empty2
countersink salvage -q shm
is "$(cd shm && echo *)" "countersink-AbCdEf countersink-Empty1" "a link and a directory that was made just now are left alone, an old empty one is removed"
rm -rf shm/*

# ---- what fails
die "$TMP/gone/x.pb.gz" 5
countersink salvage shm >words 2>&1
is "$? $(nr shm)" "1 1" "where the profile cannot be written, status 1, and the recordings are kept"
like "$(cat words)" "gone/x.killed-.*: No such file or directory; the recordings in shm/countersink-...... are kept" "the reason is reported"
mkdir gone
countersink salvage -q shm
is "$? $(nr gone) $(nr shm)" "0 1 0" "the next salvage makes the profile"
# A process that was killed between publishing and removing: the profile is not made twice, nor overwritten.
die "$TMP/out/twice.pb.gz" 5
cp -rp shm kept
countersink salvage -q shm
cksum out/* >once
rm -rf shm && mv kept shm
countersink salvage -q shm
is "$? $(nr shm)" "0 0" "recordings whose profile was published already are removed"
is "$(cksum out/*)" "$(cat once)" "the profile is as it was"

# ---- a bounded place
mkdir -m 711 place
export COUNTERSINK_PLACE=$TMP/place
for _ in 1 2 3 4 5 6; do
	die "$TMP/nowhere/x.pb.gz" 5
done 2>/dev/null
is "$(nr place) $(nr shm)" "6 0" "recordings go to the place that is named"
start "$TMP/before.pb.gz" /bin/true
unlike "$(countersink report before.pb.gz)" 'killed runs before this one' "a profile before any was removed has no warning"
find place -name '*.0.rec' -printf '%T@ %h\n' | sort -n | cut -d' ' -f2 | uniq >order
oldest=$(head -n 1 order) newest=$(tail -n 1 order)
bytes=$(du -B 1 -s "$newest" | cut -f1)
countersink salvage -q --max-place=$((bytes * 3)) place >words 2>&1
left=$(find place -mindepth 1 -maxdepth 1 -type d | wc -l)
ok "a bound removes some runs ($left of 6 are left)" test "$left" -ge 1 -a "$left" -le 4
like "$(cat words)" "^countersink: place: $((6 - left)) killed runs were removed without a profile: their recordings took more than --max-place" "they are counted"
ok "the newest is kept" test -d "$newest"
ok "the oldest is removed" test ! -e "$oldest"
start "$TMP/after.pb.gz" /bin/true
like "$(countersink report after.pb.gz)" "warning +$((6 - left)) killed runs before this one were not kept" "later profiles have their number"
for room in 0 K 1KM 64MB 17179869184G; do
	countersink salvage --max-place="$room" place >words 2>&1
	is "$?:$(grep -c "^countersink: option --max-place: '$room' is " words)" 2:1 "--max-place=$room is refused"
done
countersink salvage -q --max-place=1G place >words 2>&1
is "$(grep -c "are kept$" words):$(grep -c "without a profile" words)" "$left:0" "--max-place=1G is room enough for what is left"
# The library's helper has the bound from the environment.
find place -mindepth 1 -maxdepth 1 -type d -exec touch -d '1 hour ago' {} + # as if no start had tried lately
ok "the helper that a start brings forth keeps to COUNTERSINK_MAX_PLACE" wait_until 30 sh -c '
	LD_PRELOAD=$0 COUNTERSINK_MAX_PLACE=1 COUNTERSINK_OUTPUT=$1 /bin/true
	test "$(find place -mindepth 1 -type d | wc -l)" = 0 || { sleep 0.1; false; }' "$LIB" "$TMP/last.pb.gz"
start "$TMP/last.pb.gz" /bin/true
like "$(countersink report last.pb.gz)" "warning +6 killed runs before this one were not kept" "all that were removed are counted"
unset COUNTERSINK_PLACE
# shellcheck disable=SC2016
countersink -q --place=place -o placed.pb.gz -- sh -c 'echo "$COUNTERSINK_RUN_DIR"' >placed
like "$(cat placed)" "^$TMP/place/countersink-" "--place is where a launcher's run directory is made"
countersink -q --place=nowhere -o placed.pb.gz -- sh -c 'echo "$COUNTERSINK_RUN_DIR"' >placed 2>words
like "$(cat placed)" "^$TMP/shm/countersink-" "without that directory another one is used"
is "$(cat words)" "countersink: option --place: nowhere: No such file or directory; another directory is used" "and that is reported"

# ---- at random
BUILD=$BUILT "$SRC/tests/salvage/stress" "$TMP/stress" 60 6 >stress.out 2>&1
is "$?:$(grep -v ' started, ' stress.out)" "0:" "60 programs, and a third of what salvages their recordings, are killed at random: each has one profile"
diag "$(tail -n 1 stress.out)"
done_testing

#!/bin/bash
# Other users cannot read recordings, and other users' links, files and environment are neither followed nor trusted.
. "$(dirname "$0")/lib.sh"

mkdir -m 711 shm
XDG_RUNTIME_DIR=$TMP/shm
export XDG_RUNTIME_DIR

# Recordings while they are written: their directory and their files.
# shellcheck disable=SC2016
countersink -q -o p.pb.gz -- sh -c 'cd "$COUNTERSINK_RUN_DIR"; stat -c "%a %F" . *.rec; umask 0; "$0" 10' "$TARGETS/burn" >out
is "$(sed -n 1p out)" "700 directory" "the run directory has mode 700"
like "$(sed -n 2p out)" '^600 regular' "recordings have mode 600"
for _ in 1 2 3; do
	# shellcheck disable=SC2016
	countersink -q -o p.pb.gz -- sh -c 'basename "$COUNTERSINK_RUN_DIR"'
done >names
is "$(sort -u names | wc -l)" 3 "the run directory has another name each time"
(
	umask 0
	# shellcheck disable=SC2016
	countersink -q -o p.pb.gz -- sh -c 'stat -c %a "$COUNTERSINK_RUN_DIR" "$COUNTERSINK_RUN_DIR"/*.rec'
) >out
is "$(tr '\n' ' ' <out)" "700 600 " "under umask 0 the run directory and recordings are private"

# Links in a run directory that another process named.
mkdir -m 700 theirs
echo precious >victim
# shellcheck disable=SC2016
COUNTERSINK_RUN_DIR=$TMP/theirs sh -c 'ln -s ../victim "theirs/$$.0.rec"; ln -s ../new "theirs/$$.1.rec"
	LD_PRELOAD=$1 exec "$0" 20' "$TARGETS/burn" "$LIB" >out 2>err
is "$(cat victim)" precious "a link at a recording's path is not followed"
ok "a dangling link at a recording's path is not followed" test ! -e new

# Recordings are untrusted input.
mkdir -m 700 recordings
cp "$(command -v sh)" recordings/1.0.rec
ln -s /etc/passwd recordings/2.0.rec
mkfifo recordings/3.0.rec
head -c 4096 /dev/urandom >recordings/4.0.rec
: >recordings/5.0.rec
timeout -s KILL 60 countersink report recordings >out 2>err
isnt $? 137 "report of invalid recordings does not hang"
unlike "$(cat out err)" root: "report of invalid recordings follows and shows none of them"

# A program with more privileges than its caller: linked with the library, and configured by the environment.
if [ "$(id -u)" = 0 ]; then
	cat >linked.c <<-END
		#include <stdio.h>
		#include <unistd.h>
		int main(void) { printf("%d\n", geteuid()); for (volatile long i = 0; i < 50000000; i++); return 0; }
	END
	cc -o linked linked.c -Wl,--no-as-needed -L"$BUILD/lib" -lcountersink -Wl,-rpath,"$BUILD/lib"
	mkdir -m 700 open
	COUNTERSINK_RUN_DIR=$TMP/open ./linked >out
	is "$(find open -name '*.rec' | wc -l)" 1 "a program that is linked with the library records"
	rm -f open/*
	chmod 777 open
	chmod 4755 linked
	unprivileged env COUNTERSINK_RUN_DIR="$TMP/open" COUNTERSINK_OUTPUT="$TMP/open/x" ./linked >out 2>err
	is "$(cat out err)" 0 "a set-user-id program linked with the library runs with its privileges"
	is "$(ls open)" "" "a set-user-id program linked with the library ignores the environment"

	# Dropped privileges: the run directory of the new user is private, and used only if we made it.
	# shellcheck disable=SC2016
	countersink -q -o p.pb.gz -- setpriv --reuid=65534 --clear-groups sh -c '
		stat -c "%a %u" "$COUNTERSINK_RUN_DIR.65534"; ls "$COUNTERSINK_RUN_DIR"' >out 2>err
	is "$(cat out)" "700 65534" "a process that drops privileges gets a run directory of its own"
	like "$(cat err)" '^ls: .*Permission denied' "a process that drops privileges cannot read the earlier run directory"
	is "$(wc -l <err)" 1 "a process that drops privileges gets no message of ours"
	is "$(ls shm)" "" "all run directories are removed"
	# shellcheck disable=SC2016
	countersink -q -o p.pb.gz -- sh -c 'mkdir "$COUNTERSINK_RUN_DIR.65534"
		exec setpriv --reuid=65534 --clear-groups "$0" 20' "$TARGETS/burn" >out 2>err
	is "$(find shm -name '*.rec' | wc -l)" 0 "a run directory that another process made is not used"
	rmdir shm/*.65534
fi
done_testing

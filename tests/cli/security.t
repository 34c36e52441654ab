#!/bin/bash
# What one user records is nobody else's to read, and what others put in our way is neither followed nor believed.
. "$(dirname "$0")/lib.sh"

mkdir -m 711 shm
XDG_RUNTIME_DIR=$TMP/shm
export XDG_RUNTIME_DIR

# Recordings, while they are written: their folder and their files.
# shellcheck disable=SC2016
countersink -q -o p.pb.gz -- sh -c 'cd "$COUNTERSINK_RUN_DIR"; stat -c "%a %F" . *.rec; umask 0; "$0" 10' "$TARGETS/burn" >out
is "$(sed -n 1p out)" "700 directory" "the run folder is its owner's alone"
like "$(sed -n 2p out)" '^600 regular' "and so are recordings"
for _ in 1 2 3; do
	# shellcheck disable=SC2016
	countersink -q -o p.pb.gz -- sh -c 'basename "$COUNTERSINK_RUN_DIR"'
done >names
is "$(sort -u names | wc -l)" 3 "its name is another one each time"
(
	umask 0
	# shellcheck disable=SC2016
	countersink -q -o p.pb.gz -- sh -c 'stat -c %a "$COUNTERSINK_RUN_DIR" "$COUNTERSINK_RUN_DIR"/*.rec'
) >out
is "$(tr '\n' ' ' <out)" "700 600 " "whatever the umask"

# Links in a folder that somebody else chose for us.
mkdir -m 700 theirs
echo precious >victim
# shellcheck disable=SC2016
COUNTERSINK_RUN_DIR=$TMP/theirs sh -c 'ln -s ../victim "theirs/$$.0.rec"; ln -s ../new "theirs/$$.1.rec"
	LD_PRELOAD=$1 exec "$0" 20' "$TARGETS/burn" "$LIB" >out 2>err
is "$(cat victim)" precious "a link at a recording's place is not followed"
ok "nor one that leads nowhere" test ! -e new

# What is collected is input of a stranger's.
mkdir -m 700 folder
cp "$(command -v sh)" folder/1.0.rec
ln -s /etc/passwd folder/2.0.rec
mkfifo folder/3.0.rec
head -c 4096 /dev/urandom >folder/4.0.rec
: >folder/5.0.rec
timeout -s KILL 60 countersink report folder >out 2>err
isnt $? 137 "recordings that are none are no trap"
unlike "$(cat out err)" root: "and none is followed or shown"

# A program with rights that its caller has not: linked with the library, and asked by the environment.
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
	is "$(cat out err)" 0 "set-user-id, it runs with its rights"
	is "$(ls open)" "" "and believes no environment"

	# Rights that are given up: the folder of the user that it became is his alone, and only if we made it.
	# shellcheck disable=SC2016
	countersink -q -o p.pb.gz -- setpriv --reuid=65534 --clear-groups sh -c '
		stat -c "%a %u" "$COUNTERSINK_RUN_DIR.65534"; ls "$COUNTERSINK_RUN_DIR"' >out 2>err
	is "$(cat out)" "700 65534" "who gives up rights gets a folder of his own"
	like "$(cat err)" '^ls: .*Permission denied' "and sees nothing of the rights that it had"
	is "$(wc -l <err)" 1 "without a word of ours"
	is "$(ls shm)" "" "and all are removed"
	# shellcheck disable=SC2016
	countersink -q -o p.pb.gz -- sh -c 'mkdir "$COUNTERSINK_RUN_DIR.65534"
		exec setpriv --reuid=65534 --clear-groups "$0" 20' "$TARGETS/burn" >out 2>err
	is "$(find shm -name '*.rec' | wc -l)" 0 "a folder that others made there is not used"
	rmdir shm/*.65534
fi
done_testing

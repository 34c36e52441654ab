#!/bin/bash
# A place for run directories that is full: the next one is taken, by the library alone and by the launcher.
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
	skip "full places" "only root can mount a small file system"
	done_testing
	exit
fi
mkdir -m 711 small next alone
cp "$LIB" alone/ # without a countersink beside it, which would make profiles of the killed ones
# shellcheck disable=SC2016
unshare -m sh -c '
	mount -t tmpfs -o size=256k,mode=711 none small || exit 1
	mount --bind next /dev/shm || exit 1
	export XDG_RUNTIME_DIR="$PWD/small"
	i=0
	while [ $((i += 1)) -le 40 ]; do
		LD_PRELOAD=$PWD/alone/libcountersink.so COUNTERSINK_OUTPUT="$PWD/p.pb.gz" sh -c "kill -9 \$\$"
	done 2>killed
	ls small | wc -l >nr_small
	for i in small next; do ls -d $i/countersink-*; done >dirs
	for i in $(cat dirs); do ls $i/*.rec; done >recordings 2>empty
	LD_PRELOAD=$0 COUNTERSINK_OUTPUT="$PWD/later.pb.gz" "$1" 30 2>later >later.out
	countersink -o run.pb.gz -- "$1" 30 >run 2>&1
	echo $? >run.status
	rm -rf small/*
	head -c 1M /dev/zero >small/fill 2>/dev/null
	countersink -q -o full.pb.gz -- sh -c "echo \$COUNTERSINK_RUN_DIR" >full 2>&1
' "$LIB" "$TARGETS/burn" >out 2>&1
is "$?$(cat out)" 0 "the places are made"
is "$(grep -v Killed killed)" "" "40 programs are killed, none complains"
is "$(wc -l <recordings)" 40 "each of them leaves a recording"
is "$(cat empty)" "" "no run directory without a recording is left"
ok "the small place takes some of them" grep -q ^small/ dirs
ok "the next place takes the others" grep -q ^next/ dirs
is "$(cat later)" "" "a program that starts while the first place is full complains of nothing"
like "$(countersink report --all later.pb.gz 2>&1)" ' burn_30' "a program that starts while the first place is full is profiled"
is "$(cat run.status)" 0 "the launcher runs while the first place is full"
like "$(cat run)" ' burn_30' "the launcher profiles while the first place is full"
like "$(cat full)" '^/dev/shm/countersink-' "the launcher goes on to the place with room"
done_testing

#!/bin/bash
# The binary tarball: what it needs, that it runs wherever it is unpacked, and beside one of another version.
. "$(dirname "$0")/../cli/lib.sh"
. "$SRC/tests/package/system.sh"

# Debian 11 is the oldest release that can be had.
made tar --suite bullseye --max-glibc 2.28
MACHINE=$(uname -m)
TREE=countersink-$VERSION-linux-$MACHINE
mkdir first
tar -C first -xf "$PACKAGES/$TREE.tar.xz"
HERE=$TMP/first/$TREE
tarball "$PACKAGES/$TREE.tar.xz" "$HERE" "$MACHINE" readelf

# works TREE WHAT: a command is profiled by the tree's launcher and library.
works() {
	"$1/bin/countersink" -o works.pb.gz -- sh -c 'echo "$LD_PRELOAD"; exec perl -e "$0"' "$BUSY" >works.out 2>works.err
	is "$?:$(xargs <works.out)" "0:$1/lib/countersink/\$PLATFORM/libcountersink.so done" "$2: the tree's own library is injected" || diag "$(cat works.err)"
	like "$(cat works.err)" 'main::busy' "$2: functions are named"
	rm -f alone.pb.gz
	LD_PRELOAD=$1/lib/countersink/libcountersink.so COUNTERSINK_OUTPUT=alone.pb.gz COUNTERSINK_EVENTS=page-faults:u,minor-faults:u perl -e 1 >alone.out 2>&1
	is "$(cat alone.out):$(ls alone.pb.gz)" ":alone.pb.gz" "$2: so are launcher and library for programs found by the library alone"
}
works "$HERE" "where it was unpacked"
mkdir elsewhere
mv "first/$TREE" elsewhere/moved
works "$TMP/elsewhere/moved" "moved"
mkdir 'a blank'
cp -r elsewhere/moved 'a blank/tree'
'a blank/tree/bin/countersink' -o blank.pb.gz -- echo ran >blank.out 2>blank.err
is "$(cat blank.out)" ran "in a path with a blank the command runs"
like "$(cat blank.err)" 'whose path has no blanks or colons' "and the reason why it is not profiled is reported"
rm -r 'a blank/tree/lib'
cp -r 'a blank/tree' bare
bare/bin/countersink -o bare.pb.gz -- echo ran >bare.out 2>bare.err
is "$(cat bare.out)" ran "a launcher without its libraries runs the command"
like "$(cat bare.err)" 'incomplete installation' "and reports that they are missing"
chmod -R a-w elsewhere/moved
works "$TMP/elsewhere/moved" "without a right to write there"
chmod -R u+w elsewhere/moved

# In bare systems; with the oldest one's glibc, too.
for suite in bullseye $PACKAGE_SUITES; do
	root=$TMP/$suite
	ok "a bare $suite" system "$suite" "$root"
	cp -r elsewhere/moved "$root/opt/countersink"
	inside "$root" /opt/countersink/bin/countersink -o /tmp/p.pb.gz -- perl -e "$BUSY" >run.out 2>run.err
	is "$?:$(cat run.out)" "0:done" "$suite: a command is profiled, and its output is its own" || diag "$(cat run.err)"
	like "$(cat run.err)" 'main::busy|Perl_pp_' "$suite: functions are named"
	is "$(inside "$root" sh -c "LD_PRELOAD=/opt/countersink/lib/countersink/libcountersink.so COUNTERSINK_EVENTS=page-faults:u,minor-faults:u COUNTERSINK_OUTPUT=/tmp/a.pb.gz perl -e 1 2>&1; ls /tmp/a.pb.gz")" \
		/tmp/a.pb.gz "$suite: the library for programs is loaded, too"
done
OPT=-O0 "$SRC/scripts/package" tar --max-glibc 2.4 --output "$TMP" >max.out 2>&1
isnt $? 0 "a tarball that needs more than --max-glibc is not made"
like "$(cat max.out)" 'glibc 2\.[0-9]+ is needed, and 2\.4 was to suffice; by bin/countersink: [a-z_]+@GLIBC' "and what needs it is named"

# Another version, whose recordings have another format. Not optimised, as what it does is not measured.
git clone -q "file://$SRC" other.git
RECORDING=$(sed -n 's/^#define CSINK_REC_VERSION \([0-9]*\).*/\1/p' "$SRC/include/internal/recording_format.h")
sed -i 's/^\(#define CSINK_VERSION\) .*/\1 "0.99.0"/' other.git/include/internal/base.h
sed -i "s/^\\(#define CSINK_REC_VERSION\\) .*/\\1 $((RECORDING + 1))/" other.git/include/internal/recording_format.h
ok "another version is built" make -s -j2 -C other.git OPT=-O0 install PREFIX="$TMP/other"
is "$("$TMP/other/bin/countersink" --version | awk '{ print $2; exit }')" 0.99.0 "it has its version"
works "$TMP/other" "the other version beside it"
works "$TMP/elsewhere/moved" "this version beside the other"
# killed TREE: recordings of a run without launcher whose process is killed, in the directory $runs.
killed() {
	runs=$TMP/runs-${1##*/}
	mkdir "$runs"
	XDG_RUNTIME_DIR=$runs LD_PRELOAD=$1/lib/countersink/libcountersink.so COUNTERSINK_OUTPUT=$TMP/killed.pb.gz \
		perl -e '$i++ while $i < 3e6; kill 9, $$' >killed.out 2>&1
	run=$(find "$runs" -mindepth 1 -name 'countersink*' -type d | head -n 1)
}
for pair in "$TMP/other $TMP/elsewhere/moved" "$TMP/elsewhere/moved $TMP/other"; do
	read -r writer reader <<<"$pair"
	killed "$writer"
	isnt "$run" "" "a killed run of ${writer##*/} leaves recordings"
	"$reader/bin/countersink" report "$run" >refused.out 2>&1
	is "$?:$(wc -l <refused.out)" 1:1 "the recordings of ${writer##*/} are refused by ${reader##*/} with a line"
	like "$(cat refused.out)" 'version' "which names the version as the cause"
	ok "the version that made them reads them" "$writer/bin/countersink" report "$run"
done
done_testing

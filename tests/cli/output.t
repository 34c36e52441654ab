#!/bin/bash
# The profile's path: templates, the .old file, and paths that cannot be written.
. "$(dirname "$0")/lib.sh"

mkdir place
chmod 777 place
cd place || exit 1

countersink -q -- true
ok "the default is countersink.pb.gz" test -s countersink.pb.gz
cp countersink.pb.gz first
countersink -q -- true
ok "an older one is kept as .old" cmp -s first countersink.pb.gz.old
COUNTERSINK_OUTPUT=byenv.pb.gz countersink -q -- true
ok "COUNTERSINK_OUTPUT names the profile" test -s byenv.pb.gz
host=$(uname -n)
countersink -q -o '%c-%h-%r-%%.gz' -- /bin/true
ok "%c %h %r %% are replaced" test -s "true-$host-0-%.gz"
countersink -q -o 'pid-%p' -- true &
wait $!
ok "%p is the PID that the shell knows" test -s "pid-$!"
OMPI_COMM_WORLD_RANK=3 countersink -q -o 'rank-%r' -- true
ok "%r is the rank of OpenMPI" test -s rank-3
PMI_RANK=4 countersink -q -o 'rank-%r' -- true
ok "%r is the rank of MPICH" test -s rank-4
SLURM_PROCID=5 countersink -q -o 'rank-%r' -- true
ok "%r is the rank of Slurm" test -s rank-5
PMI_RANK=../../x countersink -q -o 'evil-%r' -- true
ok "a slash in a rank is replaced" test -s evil-.._.._x
countersink -q -o /dev/stdout -- true | gzip -t
is $? 0 "a pipe as output is written to"
countersink -q -o moved.gz -- sh -c 'cd / && true'
ok "a relative path is relative to the launcher's directory" test -s moved.gz

# elsewhere REGEX NAME ARGUMENT...: reported beforehand; the command runs; the profile is saved in $TMPDIR and named.
mkdir "$TMP/spare"
chmod 777 "$TMP/spare"
elsewhere() {
	local regex=$1 name=$2
	shift 2
	rm -f "$TMP/spare/"*
	TMPDIR=$TMP/spare "$@" -- sh -c 'echo run >&2; exit 6' 2>err
	is $? 6 "$name: the command's status is kept"
	like "$(sed '/^run$/,$d' err)" "$regex" "$name: reported before the command starts"
	like "$(sed '1,/^run$/d' err)" "the profile is in $TMP/spare/" "$name: the profile's place is reported at the end"
	saved=$(sed -n 's/.*the profile is in //p' err)
	ok "$name: the saved profile exists" test -s "$saved"
	ok "$name: the saved profile is readable" countersink report "$saved"
}
elsewhere 'no such directory: /nowhere/at/all;' "a missing directory" countersink -q -o /nowhere/at/all/x.gz
elsewhere 'is a directory: name a file in it' "a directory" countersink -q -o "$TMP/place"
elsewhere 'is a directory: name a file in it' "this directory" countersink -q -o .
ok "a directory as output: the saved profile has the default name" test -s "$TMP/spare/countersink.pb.gz"
elsewhere 'is a directory: name a file in it' "the parent directory" countersink -q -o ..
elsewhere 'is a directory: name a file in it' "a directory and a slash" countersink -q -o "$TMP/place/"
countersink -q -o '' -- sh -c ': >ran' 2>err
is $? 125 "an empty output name: status 125"
like "$(cat err)" '^countersink: option --output: the value is empty' "an empty output name is reported before the command runs"
ok "an empty output name: the command does not run" test ! -e ran
PMI_RANK=.. countersink -q -o "$TMP/place/%r/x.gz" -- true 2>err
like "$(cat err)" "no such directory: $TMP/place/__;" "a rank of .. does not leave the directory"
rm -f "$(sed -n 's/.*the profile is in //p' err)"
elsewhere 'names a directory' "a slash at the end" countersink -q -o nothing/
mkdir closed
mkdir -m 777 beyond
ln -s ../beyond/x.gz closed/link
chmod 555 closed
for what in nothing "a file"; do
	unprivileged countersink -q -o closed/link -- true 2>err
	is "$? $(cat err)" "0 " "through a link to $what: the link's own directory need not be writable"
done
ok "the profile is at the link's target" test -s beyond/x.gz
elsewhere 'not writable for this user' "a directory without write permission" unprivileged countersink -q -o closed/x.gz
elsewhere 'Not a directory' "a file in place of a directory" countersink -q -o countersink.pb.gz/x.gz
if [ "$(id -u)" = 0 ]; then
	mkdir small
	if mount -t tmpfs -o size=16k none small 2>/dev/null; then
		head -c 1M /dev/zero >small/filler 2>/dev/null
		elsewhere 'No space left' "a full disk" countersink -q -o small/x.gz
		is "$(ls small)" filler "a full disk: nothing is left there"
		mount -o remount,ro small
		elsewhere 'Read-only file system' "a read-only disk" countersink -q -o small/x.gz
		umount small
	else
		skip "a full disk" "no right to mount"
	fi
else
	skip "a full disk" "only root can mount"
fi
# The device is full only when the profile is written.
TMPDIR=$TMP/spare countersink -q -o /dev/full -- sh -c 'exit 6' 2>err
is $? 6 "a full device: the command keeps its status"
like "$(cat err)" '/dev/full: No space left on device; the profile is in' "a full device is reported with the place of the saved profile"
TMPDIR=/nowhere HOME=/nowhere unprivileged countersink -q -o closed/x.gz -- true 2>err
saved=$(sed -n 's/.*the profile is in //p' err)
like "$saved" '^/tmp/' "without TMPDIR the profile is saved in /tmp"
rm -f "$saved"

done_testing

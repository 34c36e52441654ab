#!/bin/bash
# The limits of containers, one at a time and together, each in namespaces that have exactly these: a program's output and status
# are what they are without countersink, and there is a profile, or one line with what is missing, why, and the remedy.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] && have unshare && have setpriv && unshare -mpf true 2>/dev/null ||
	skip_all "only root can make these namespaces"
mkdir -m 777 work
: >no_users
chmod 644 no_users
# shellcheck disable=SC2016 # the inner shell expands it
program='perl -e '\''my $s = 0; $s += $_ % 7 for 1 .. 3e5; print "perl $s\n"'\''; "$0" 60; echo "to stderr" >&2; exit 3'

# limited USER LIMIT... -- COMMAND...: the command where each limit holds, by that user, in the directory work.
limited() {
	local user=$1 setup='mount --make-rprivate / && mount --bind "$TMP/work" "$TMP/work"' last='' flags=-m deny=
	shift
	while [ "$1" != -- ]; do
		case $1 in
		read_only) setup="$setup"' && mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp && mount --bind "$TMP/work" "$TMP/work" &&
				mount -o remount,rw,bind "$TMP/work" || exit 1
			for place in /var/tmp /run /root; do mount -t tmpfs -o ro none $place || exit 1; done; mount -o remount,ro,bind /' ;;
		no_work) setup="$setup"' && mount -o remount,ro,bind "$TMP/work"' ;;
		no_shm) setup="$setup"' && mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9 && mount -o remount,ro /dev' ;;
		shm_*) setup="$setup && mount -t tmpfs -o mode=1777,size=${1#shm_} none /dev/shm" ;;
		no_passwd) setup="$setup"' && mount --bind "$TMP/no_users" /etc/passwd && unset HOME USER LOGNAME' ;;
		no_proc) last='umount -l /proc || exit 1' ;;
		pid_1)
			flags=-mpf
			setup="$setup && mount -t proc none /proc"
			;;
		no_events) deny=$TARGETS/deny_perf ;;
		esac
		shift
	done
	shift
	[ "$user" = 0 ] || user="$user setpriv --reuid=$user --regid=$user --clear-groups"
	(
		unset XDG_RUNTIME_DIR TMPDIR
		# shellcheck disable=SC2086 # words of options
		TMP=$TMP exec timeout 60 unshare $flags sh -c "$setup || exit 1"'
			cd "$TMP/work" || exit 1
			'"$last"'
			exec "$@"' sh ${deny:+"$deny"} ${user#"${user%% *}"} "$@"
	)
}

# held_to NAME LIMIT...: the program under countersink where these limits hold, as root, as user 65534 and as a user without an entry.
held_to() {
	local name=$1 user
	shift
	for user in 0 65534 12345; do
		rm -f work/*
		limited $user "$@" -- sh -c "$program" "$TARGETS/burn" >plain.out 2>plain.err
		got=$?
		is "$got:$(tail -n 1 plain.err)" "3:to stderr" "$name, user $user: the limits can be made" || diag "$(cat plain.err)"
		limited $user "$@" -- "$COUNTERSINK" -o p.pb.gz -- sh -c "$program" "$TARGETS/burn" >out 2>err
		is "$?:$(cat out)" "$got:$(cat plain.out)" "$name, user $user: status and output are those of the program alone"
		is "$(grep -c '^to stderr$' err)" 1 "$name, user $user: so is what it writes to stderr"
		grep '^countersink: ' err >ours
		judge "$name, user $user"
	done
}

sampled() { # in all: the functions are in the profile, and no line but the report's
	is "$(cat ours)" "" "$1: no message" || diag "$(cat err)"
	like "$("$COUNTERSINK" report --all work/p.pb.gz 2>&1)" ' burn_60' "$1: the profile has the program's functions" || diag "$(cat err)"
}

one_line() { # $expected: the whole of what is reported beside the report
	is "$(wc -l <ours)" 1 "$1: one message" || diag "$(cat err)"
	like "$(cat ours)" "$expected" "$1: it has what is missing, why, and the remedy"
}

judge() { sampled "$1"; }
held_to "a read-only root" read_only
held_to "no /dev/shm" no_shm
held_to "64 MiB of /dev/shm" shm_64m
held_to "256 KiB of /dev/shm" shm_256k
held_to "no user's entry" no_passwd
held_to "no /proc" no_proc
held_to "PID 1" pid_1
held_to "no perf_event_open" no_events
held_to "all but /dev/shm and a place to write" read_only shm_256k no_passwd no_proc pid_1 no_events

counted() {
	one_line "$1"
	ok "$1: what was counted is in a profile" test -s work/p.pb.gz
}
judge() { counted "$1"; }
expected='^countersink: no directory for recordings in .*: (Read-only file system|No such file or directory); the command is counted only \(--place=DIRECTORY names one that can be written\)$'
held_to "a read-only root without /dev/shm" read_only no_shm
held_to "all limits" read_only no_shm no_passwd no_proc pid_1 no_events

judge() {
	one_line "$1"
	is "$(ls work)" "" "$1: no file is left"
}
expected='^countersink: the profile cannot be written to p\.pb\.gz: .*: Read-only file system, nor to .*; the run continues without a profile \(make one of them writable, or name another with -o FILE or TMPDIR\)$'
held_to "no place to write" read_only no_shm no_work
held_to "all limits and no place to write" read_only no_shm no_work no_passwd no_proc pid_1 no_events
done_testing

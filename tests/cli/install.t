#!/bin/sh
# make install installs below PREFIX and DESTDIR a countersink that works from there; make uninstall removes it.
. "$(dirname "$0")/lib.sh"

make_in() {
	make -s -C "$SRC" "$@"
}

ok "install under a prefix" make_in install PREFIX="$TMP/prefix"
if [ -x "$BUILT/bin/countersink-send" ]; then
	ok "countersink-send runs from the prefix" "$TMP/prefix/bin/countersink-send" --version
else
	skip "countersink-send runs from the prefix" "the headers of libcurl are not here"
fi
ok "the launcher runs from the prefix" "$TMP/prefix/bin/countersink" --version
"$TMP/prefix/bin/countersink" -o installed.pb.gz -- "$TARGETS/burn" 100 >burn.out 2>burn.err
is $? 0 "the installed launcher profiles a program" || diag "$(cat burn.err)"
like "$(cat burn.err)" 'burn_60' "the installed launcher uses the library beside it: the hot function is named"

ok "install with a stage" make_in install PREFIX=/usr DESTDIR="$TMP/stage"
ok "the stage has the launcher" test -x "$TMP/stage/usr/bin/countersink"
is "$(cd "$TMP/stage/usr/share/man" && find . -type f | sort)" \
	"$(cd "$SRC/launcher/man" && ls | sed 's|.*\.\([1-9]\)$|./man\1/&|' | sort)" "every manual page is in its section's directory"
is "$(ls "$TMP/stage/usr/share/countersink/schema")" "$(ls "$SRC/launcher/schema")" "the stage has the schemas of JSON"
ok "the stage has the library" test -f "$TMP/stage/usr/lib/countersink/libcountersink.so"
is "$(readlink "$TMP/stage/usr/lib/libcountersink.so")" countersink/libcountersink.so \
	"a link leads to the library from its place in earlier versions"

ok "install with the library in lib64" make_in install PREFIX="$TMP/wide" LIBDIR="$TMP/wide/lib64"
"$TMP/wide/bin/countersink" -o wide.pb.gz -- "$TARGETS/burn" 100 >burn.out 2>burn.err
is $? 0 "the launcher profiles with the library in lib64" || diag "$(cat burn.err)"
like "$(cat burn.err)" 'burn_60' "the hot function is named with the library in lib64"
# works_in LIBDIR: what the launcher in BINDIR beside it, and the library alone, profile.
works_in() {
	"$TMP/multi/bin/countersink" -q -o multi.pb.gz -- sh -c 'echo "${LD_PRELOAD#'"$TMP/multi"'}"; "$0" 100' "$TARGETS/burn" >burn.out 2>burn.err
	is "$?:$(head -n 1 burn.out)" "0:/$1/countersink/\$PLATFORM/libcountersink.so" "the launcher injects the library in $1" || diag "$(cat burn.err)"
	like "$("$TMP/multi/bin/countersink" report multi.pb.gz)" 'burn_60' "the hot function is named with the library in $1"
	for entry in countersink/libcountersink.so 'countersink/$PLATFORM/libcountersink.so'; do
		rm -f alone.pb.gz
		LD_PRELOAD=$TMP/multi/$1/$entry COUNTERSINK_OUTPUT=alone.pb.gz COUNTERSINK_EVENTS=page-faults:u,minor-faults:u \
			"$TARGETS/burn" 100 >alone.out 2>&1
		is "$?:$(grep -vc '^burn ' alone.out):$(ls alone.pb.gz)" "0:0:alone.pb.gz" \
			"$1/$entry alone finds its countersink and its API library" || diag "$(cat alone.out)"
	done
}
for dir in lib/"$(uname -m)"-linux-gnu lib lib64; do
	ok "install with the library in $dir, and no link to it" make_in install PREFIX="$TMP/multi" LIBDIR="$TMP/multi/$dir" LIBDIR_LINK=
	is "$(find "$TMP/multi/$dir" -maxdepth 1 -name 'libcountersink.so*')" "" "where the linker looks is no library that is injected, with $dir"
	works_in "$dir"
	ok "uninstall what was installed with the library in $dir" make_in uninstall PREFIX="$TMP/multi" LIBDIR="$TMP/multi/$dir" LIBDIR_LINK=
	is "$(find "$TMP/multi" -type f -o -type l)" "" "uninstall leaves no file with $dir"
done
(umask 077 && make_in install PREFIX="$TMP/private/tree")
is "$?:$(find "$TMP/private/tree" ! -perm -o+r -o -type d ! -perm -o+x)" "0:" \
	"what is installed with umask 077 can be read by all users"
ok "install with Debian's directory of libraries" make_in install PREFIX="$TMP/multi" LIBDIR="$TMP/multi/lib/$(uname -m)-linux-gnu"
is "$(find "$TMP/multi/lib" -maxdepth 2 -name libcountersink.so)" "" "Debian's directory of libraries has no link to the one that is injected"
make_in install PREFIX="$TMP/apart" LIBDIR="$TMP/elsewhere" >apart.out 2>&1
isnt $? 0 "a library directory where the launcher would not find it is refused"
like "$(cat apart.out)" 'LIBDIR must be' "the refused library directory is reported with the reason"

LD_PRELOAD=$TMP/prefix/lib/libcountersink.so COUNTERSINK_OUTPUT=$TMP/alone.pb.gz "$TARGETS/burn" 100 >alone.out 2>&1
is "$(grep -vc '^burn ' alone.out)" 0 "the installed library alone prints nothing"
ok "the installed library alone leaves a profile" "$TMP/prefix/bin/countersink" report alone.pb.gz
# A program linked with the library, without a launcher: it finds the keeper of its events beside the library.
cat >keeps.c <<'END'
#include <countersink/persist.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_PAGE_FAULTS, .exclude_kernel = 1};
	struct csink_persist_event event = {.attr = attr, .pid = getppid(), .cpu = -1, .name = "kept"};
	int fd = (int)syscall(SYS_perf_event_open, &attr, getppid(), -1, -1, PERF_FLAG_FD_CLOEXEC);
	int err = csink_persist_detach(fd, &event, NULL);

	/* The program must have no child that it did not start. */
	printf("%d %d\n", err, (int)waitpid(-1, NULL, WNOHANG));
	return 0;
}
END
ok "a program is built with the installed headers and library" ${CC:-cc} -I"$TMP/prefix/include" -o keeps keeps.c \
	-L"$TMP/prefix/lib" -lcountersink-api -Wl,-rpath,"$TMP/prefix/lib"
if "$TMP/prefix/bin/countersink" stat -x -e page-faults:u true 2>&1 | grep -q ',counted,'; then
	mkdir kept
	export COUNTERSINK_PERSIST_DIR=$TMP/kept
	is "$(PATH=/usr/bin:/bin ./keeps)" "0 -1" "a linked program makes an event persistent, and has no child of ours"
	id=$("$TMP/prefix/bin/countersink" persist list | awk '/ kept / { print $1 }')
	like "$id" '^[0-9]+$' "a linked program's event outlives it"
	is "$("$TMP/prefix/bin/countersink" -q -o keeps.pb.gz -- ./keeps)" "0 -1" "a linked program under countersink makes an event persistent"
	# shellcheck disable=SC2046 # words
	ok "both persistent events are attached" "$TMP/prefix/bin/countersink" persist attach \
		$("$TMP/prefix/bin/countersink" persist list | awk '{ print $1 }')
	is "$(ls kept/countersink-persist/events)" "" "no persistent event is left"
	unset COUNTERSINK_PERSIST_DIR
else
	skip "a linked program makes an event persistent" "perf_event_open is refused here"
fi
# Names with blanks and a quote: a stage may have them, and so may a prefix, from where programs linked with the API run.
odd="$TMP/it's a stage"
ok "install with blanks and a quote in DESTDIR" make_in install PREFIX=/usr DESTDIR="$odd"
is "$(cd "$odd" && find . ! -type d | sort)" "$(cd "$TMP/stage" && find . ! -type d | sort)" \
	"the stage with blanks in its name has the same files as one without"
ok "the stage's files have the same text" diff -r "$odd" "$TMP/stage"
ok "uninstall with blanks in DESTDIR" make_in uninstall PREFIX=/usr DESTDIR="$odd"
is "$(find "$odd" ! -type d)" "" "uninstall leaves no file in the stage with blanks in its name"
ok "install with blanks in PREFIX" make_in install PREFIX="$TMP/a prefix & more"
is "$(cd "$TMP/a prefix & more" && find . ! -type d | sort)" "$(cd "$TMP/prefix" && find . ! -type d | sort)" \
	"the prefix with blanks has the same files as one without"
ok "the prefix's files have the same text" diff -r --no-dereference "$TMP/a prefix & more" "$TMP/prefix"
ok "install with blanks in PREFIX and BINDIR, and the library in lib64" make_in install PREFIX="$TMP/b prefix" LIBDIR="$TMP/b prefix/lib64"
make_in install PREFIX="$TMP/b prefix" LIBDIR="$TMP/b" >apart.out 2>&1
is "$?:$(grep -c "LIBDIR must be" apart.out)" 2:1 "a library directory that is one word of the prefix's is refused"
"$TMP/a prefix & more/bin/countersink" -q -o blank.pb.gz -- "$TARGETS/burn" 20 >burn.out 2>burn.err
is "$?:$(grep -c 'a directory whose path has no blanks' burn.err)" 0:1 \
	"the program runs, and a launcher in a directory with blanks says that no library can be injected from there" || diag "$(cat burn.err)"
for prefix in "a prefix & more" "b prefix"; do
	libdir="$TMP/$prefix/lib"
	test -d "$libdir" || libdir="$TMP/$prefix/lib64"
	make_in uninstall PREFIX="$TMP/$prefix" LIBDIR="$libdir"
	is "$?:$(find "$TMP/$prefix" ! -type d)" "0:" "uninstall leaves no file in $prefix"
done
ok "uninstall succeeds" make_in uninstall PREFIX="$TMP/prefix"
is "$(find "$TMP/prefix" -type f)" "" "uninstall leaves no file"
done_testing

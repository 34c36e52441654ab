#!/bin/sh
# make install puts a countersink where PREFIX and DESTDIR say, which works from there, and uninstall takes it away.
. "$(dirname "$0")/lib.sh"

make_in() {
	make -s -C "$SRC" "$@"
}

ok "install under a prefix" make_in install PREFIX="$TMP/prefix"
ok "the launcher runs from there" "$TMP/prefix/bin/countersink" --version
"$TMP/prefix/bin/countersink" -o installed.pb.gz -- "$TARGETS/burn" 100 >burn.out 2>burn.err
is $? 0 "it profiles a program" || diag "$(cat burn.err)"
like "$(cat burn.err)" 'burn_60' "with the library beside it: the hot function is named"

ok "install with a stage" make_in install PREFIX=/usr DESTDIR="$TMP/stage"
ok "the stage has the launcher" test -x "$TMP/stage/usr/bin/countersink"
ok "and the library" test -f "$TMP/stage/usr/lib/libcountersink.so"

ok "install with the library in lib64" make_in install PREFIX="$TMP/wide" LIBDIR="$TMP/wide/lib64"
"$TMP/wide/bin/countersink" -o wide.pb.gz -- "$TARGETS/burn" 100 >burn.out 2>burn.err
is $? 0 "it profiles from there" || diag "$(cat burn.err)"
like "$(cat burn.err)" 'burn_60' "with the hot function named"
make_in install PREFIX="$TMP/apart" LIBDIR="$TMP/elsewhere" >apart.out 2>&1
isnt $? 0 "a library folder where the launcher would not find it is refused"
like "$(cat apart.out)" 'LIBDIR must be' "with the reason"

LD_PRELOAD=$TMP/prefix/lib/libcountersink.so COUNTERSINK_OUTPUT=$TMP/alone.pb.gz "$TARGETS/burn" 100 >alone.out 2>&1
is "$(grep -vc '^burn ' alone.out)" 0 "the library alone says nothing"
ok "and leaves a profile" "$TMP/prefix/bin/countersink" report alone.pb.gz
ok "uninstall" make_in uninstall PREFIX="$TMP/prefix"
is "$(find "$TMP/prefix" -type f)" "" "uninstall leaves no file"
done_testing

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

ok "install with a library folder of its own" make_in install PREFIX="$TMP/multi" LIBDIR="$TMP/multi/lib/here"
ok "uninstall" make_in uninstall PREFIX="$TMP/prefix"
is "$(find "$TMP/prefix" -type f)" "" "uninstall leaves no file"
done_testing

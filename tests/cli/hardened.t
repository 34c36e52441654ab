#!/bin/bash
# Built with the flags of distributions' packages (dpkg-buildflags' hardening=+all, rpm's optflags, -flto), all
# of countersink compiles without a message, and what it builds works.
. "$(dirname "$0")/lib.sh"

# build LEVEL FILE...: of the tree below hardened, with _FORTIFY_SOURCE at that level, and $lto.
build() {
	level=$1
	shift
	make -s -C "$SRC" -j2 PLAIN="$TMP/hardened$level" OPT=-O2 CPPFLAGS="-Wdate-time -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$level" \
		CFLAGS="-fstack-protector-strong -fstack-clash-protection $cet -Wformat=2 -Werror=format-security -Werror $lto" \
		LDFLAGS="-Wl,-z,relro -Wl,-z,now $lto" "$@" >build.out 2>&1
}
cet='' lto=''
if [ "$(uname -m)" = x86_64 ]; then
	cet=-fcf-protection=full
fi
build 3 all
is "$?:$(cat build.out)" "0:" "everything builds with _FORTIFY_SOURCE=3 and a package's other flags, without a message"
lto='-flto=2 -ffat-lto-objects' # as some distributions do by default
build 2 "$TMP/hardened2/lib/libcountersink.so"
is "$?:$(cat build.out)" "0:" "the injected library builds with _FORTIFY_SOURCE=2 and -flto, without a message"
for level in 2 3; do
	ok "the library that was built with _FORTIFY_SOURCE=$level is there" test -s hardened$level/lib/libcountersink.so
	is "$(nm -D --undefined-only hardened$level/lib/libcountersink.so | grep _chk@)" "" \
		"with _FORTIFY_SOURCE=$level the injected library calls no checking function of libc"
done
is "$(LD_PRELOAD=$TMP/hardened2/lib/libcountersink.so COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT=$TMP/l.pb.gz "$TARGETS/burn" 60 2>&1 | grep -c '^burn ')" 1 \
	"with the library that was built with -flto a program runs"
hardened3/bin/countersink -o h.pb.gz -- "$TARGETS/burn" 60 >out 2>err
is "$?:$(grep -c '^burn ' out)" 0:1 "with the hardened build a program runs" || diag "$(cat err)"
like "$(cat err)" ' burn_60' "the hardened build profiles it"
done_testing

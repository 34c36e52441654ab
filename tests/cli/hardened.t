#!/bin/bash
# Built with the flags of distributions' packages (dpkg-buildflags' hardening=+all, rpm's optflags, -flto), the libraries
# compile without a message, and the injected one profiles. The launcher has such flags in every build; that it compiles
# without a message is asked in .ci/run, and with Debian's own flags in tests/package/deb.t.
. "$(dirname "$0")/lib.sh"

# build LEVEL LIBRARY...: in the tree hardened$LEVEL, with _FORTIFY_SOURCE at that level, and $lto.
build() {
	level=$1
	shift
	make -s -C "$SRC" -j2 PLAIN="$TMP/hardened$level" OPT=-O2 CPPFLAGS="-Wdate-time -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$level" \
		CFLAGS="-fstack-protector-strong -fstack-clash-protection $cet -Wformat=2 -Werror=format-security -Werror $lto" \
		LDFLAGS="-Wl,-z,relro -Wl,-z,now $lto" "${@/#/$TMP/hardened$level/lib/}" >build.out 2>&1
}
cet='' lto=''
if [ "$(uname -m)" = x86_64 ]; then
	cet=-fcf-protection=full
fi
others="libcountersink-api.a countersink/libcountersink-alloc.so countersink/libcountersink-lock.so"
for level in 3 2; do
	# shellcheck disable=SC2086 # a list
	build $level libcountersink.so $others
	is "$?:$(cat build.out)" "0:" "the injected library builds${others:+, and the others do,} with _FORTIFY_SOURCE=$level and a package's other flags${lto:+, -flto among them}, without a message"
	library=$TMP/hardened$level/lib/libcountersink.so
	ok "the library that was built with _FORTIFY_SOURCE=$level is there" test -s "$library"
	is "$(nm -D --undefined-only "$library" | grep _chk@)" "" "with _FORTIFY_SOURCE=$level the injected library calls no checking function of libc"
	mkdir -p hardened$level/bin && cp "$BUILT/bin/countersink" hardened$level/bin/ # which takes the library that is beside it
	hardened$level/bin/countersink -o $level.pb.gz -- "$TARGETS/burn" 60 >out 2>err
	is "$?:$(grep -c '^burn ' out)" 0:1 "with the library that was built so a program runs" || diag "$(cat err)"
	like "$(cat err)" ' burn_60' "that library profiles it"
	others='' lto='-flto=2 -ffat-lto-objects' # as some distributions do by default
done
done_testing

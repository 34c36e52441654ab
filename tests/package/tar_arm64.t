#!/bin/bash
# The binary tarball for arm64, made on another machine: what it needs, and that it works in an emulated machine.
. "$(dirname "$0")/../cli/lib.sh"
. "$SRC/tests/package/system.sh"

made tar --suite bullseye --machine aarch64 --max-glibc 2.28
TREE=countersink-$VERSION-linux-aarch64
BALL=$PACKAGES/$TREE.tar.xz
tar -xf "$BALL"
tarball "$BALL" "$TREE" aarch64 aarch64-linux-gnu-readelf
tar -tf "$BALL" | grep -v '/$' | sed "s|^$TREE/||" | sort >files
for file in bin/countersink lib/libcountersink-api.a lib/countersink/aarch64/libcountersink.so share/bash-completion/completions/countersink \
	share/man/man1/countersink.1 share/doc/countersink/LICENSE; do
	ok "$file is there" grep -qxF "$file" files
done
unlike "$(cat files)" 'countersink-send' "countersink-send, which needs libcurl, is not"
like "$(cat "$TREE/share/bash-completion/completions/countersink")" 'complete .*countersink' "the completion is what that launcher wrote"

# Another machine's files of countersink are stubs.
machines=$(find "$TREE" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec aarch64-linux-gnu-readelf -h {} + 2>/dev/null | sed -n 's/^ *Machine: *//p' | sort | uniq -c | sort -rn)
like "$(echo "$machines" | head -n 1)" 'AArch64' "the programs and libraries are for that machine" || diag "$machines"
is "$(aarch64-linux-gnu-readelf -h "$TREE/bin/countersink" "$TREE/lib/countersink/aarch64/libcountersink.so" "$TREE"/lib/countersink/*.so "$TREE"/lib/libcountersink-api.so |
	sed -n 's/^ *Machine: *//p' | sort -u)" AArch64 "launcher, library and preload objects all are"

# From a clone in a directory of another length.
mkdir -p a-directory/whose/path/is/longer
git clone -q "file://$SRC" a-directory/whose/path/is/longer/far.git
mkdir -p a-directory/whose/path/is/longer/far.git/build
ln -s "$KEPT_SYSTEMS" a-directory/whose/path/is/longer/far.git/build/package-systems
a-directory/whose/path/is/longer/far.git/scripts/package tar --suite bullseye --machine aarch64 --output "$TMP/far" >far.out 2>&1
ok "a clone in another directory gives the same bytes" cmp "$BALL" "$TMP/far/$TREE.tar.xz" || diag "$(cat far.out)"

# refused REASON WORD...: the command line is wrong, and nothing is made.
refused() {
	reason=$1
	shift
	"$SRC/scripts/package" "$@" --output "$TMP/refused" >refused.out 2>&1
	is "$?:$(sed -n 1p refused.out):$(ls refused 2>&1)" "2:package: $reason:ls: cannot access 'refused': No such file or directory" "scripts/package $* is refused"
}
refused "--machine: of tar alone" deb --machine aarch64
refused "--machine: aarch64, not 'vax'" tar --machine vax

# In an emulated machine with Debian's arm64 packages.
SYSTEM=$BUILT/arm64-guest
ok "a system for arm64" "$SRC/tests/arm64/pack_system" "$SYSTEM"
export SYSTEM
BUILD=$BUILT-aarch64 "$SRC/tests/arm64/boot" tar "$BALL" "$SRC/tests/kernels/guest.sh" "$SRC/tests/package/guest_gate.sh" >guest.out 2>guest.err
is "$(grep -c '^ok ' guest.out):$(grep '^not ok' guest.out)" "$(sed -n 's/^1\.\.//p' guest.out):" "every point in the emulated machine passes" ||
	diag "$(cat guest.out guest.err)"
like "$(cat guest.out)" 'guest_gate.sh: the gate compares two commands' "the gate ran there, too"
done_testing

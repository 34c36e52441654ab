#!/bin/bash
# The source tarball: the same commit gives the same bytes, packed and built, in any directory.
. "$(dirname "$0")/../cli/lib.sh"

NAME=countersink-$(make -s -C "$SRC" show-version)
is "$(countersink --version | awk '{ print $2; exit }')" "${NAME#*-}" "make and the launcher have the same version"

NEAR=$TMP/a FAR=$TMP/a-directory/whose/path/is/longer
mkdir -p "$FAR"
git clone -q "file://$SRC" near.git
git clone -q "file://$SRC" "$FAR/far.git"
ok "the tarball is made of a clone" make -s -C near.git dist
# Neither the caller's umask nor the times of the files are in it.
find "$FAR/far.git" -name '*.c' -exec touch -d 2001-01-01 {} +
(umask 077 && make -s -C "$FAR/far.git" dist >far.out)
is "$(cat far.out)" "$FAR/far.git/build/packages/$NAME.tar.xz" "what was made is printed"
BALL=near.git/build/packages/$NAME.tar.xz
ok "a clone in another directory gives the same bytes" cmp "$BALL" "$(cat far.out)"
is "$(tar -tf "$BALL" | cut -d/ -f1 | sort -u)" "$NAME" "all is in one directory, which has the version in its name"
is "$(tar -tf "$BALL" | sed "s|^$NAME/||; /\/\$/d; /^\$/d" | sort)" "$(git -C near.git ls-files | sort)" "the files are those of the commit"
SOURCE_DATE_EPOCH=86400 near.git/scripts/package dist --output "$TMP/set" >set.out
is "$(tar --utc -tvf "set/$NAME.tar.xz" | awk '{ print $4 }' | sort -u)" 1970-01-02 "SOURCE_DATE_EPOCH is the time of the files"
echo '/* changed */' >>near.git/include/internal/base.h
like "$(near.git/scripts/package dist --output "$TMP/set" 2>&1)" 'changes that are not committed are left out' \
	"what is not committed is left out, with a line"
ok "and changes no byte" cmp "$BALL" "set/$NAME.tar.xz"
SOURCE_DATE_EPOCH=now near.git/scripts/package dist --output "$TMP/set" >set.out 2>&1
isnt $? 0 "a time that is no number is refused"

# refused REASON WORD...: the command line is wrong, and nothing is made.
refused() {
	reason=$1
	shift
	"$SRC/scripts/package" "$@" --output "$TMP/refused" >refused.out 2>&1
	is "$?:$(sed -n 1p refused.out):$(ls refused 2>&1)" "2:package: $reason:ls: cannot access 'refused': No such file or directory" "scripts/package $* is refused"
}
refused "'dist' and 'deb': give one" dist deb
refused "--suite: dist builds nothing" dist --suite bookworm
refused "--max-glibc: of tar alone" deb --max-glibc 2.28

mkdir -p "$NEAR"
tar -C "$NEAR" -xf "$BALL"
tar -C "$FAR" -xf "$BALL"
ok "the sources of a tarball give the tarball again" make -s -C "$NEAR/$NAME" dist
ok "with the same bytes" cmp "$BALL" "$NEAR/$NAME/build/packages/$NAME.tar.xz"
for tree in "$NEAR" "$FAR"; do
	ok "the sources are built in ${tree#"$TMP"/}" make -s -j2 -C "$tree/$NAME"
done
for file in bin/countersink bin/countersink-send lib/libcountersink.so "lib/libcountersink-api.so.${NAME#*-}" \
	lib/libcountersink-api.a lib/countersink/qemu_count.so lib/countersink/libcountersink-alloc.so lib/countersink/libcountersink-lock.so; do
	[ -e "$BUILT/$file" ] || continue # no libcurl here
	ok "$file has the same bytes in both, with its debug information" cmp "$NEAR/$NAME/build/$file" "$FAR/$NAME/build/$file"
done
unlike "$(strings -a "$FAR/$NAME/build/bin/countersink" "$FAR/$NAME/build/lib/libcountersink.so")" "$FAR" "and no path of the place where they were built"
done_testing

#!/bin/bash
# Debian's packages: built, judged by lintian, installed in bare systems, used, upgraded, purged.
. "$(dirname "$0")/../cli/lib.sh"
. "$SRC/tests/package/system.sh"

export DEBFULLNAME="The publisher" DEBEMAIL=publisher@debian.org
# A message of the compiler with the flags of packages is an error.
DEB_CFLAGS_APPEND=-Werror made deb
FULL=$VERSION-0upstream1
MACHINE=$(dpkg --print-architecture)
TRIPLET=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
PROFILER=countersink_${FULL}_$MACHINE.deb
API=libcountersink-api0_${FULL}_$MACHINE.deb
DEV=libcountersink-api-dev_${FULL}_$MACHINE.deb
is "$(cd "$PACKAGES" && find . -name '*.deb' ! -name '*-dbgsym_*' | sort | xargs)" "./$PROFILER ./$DEV ./$API" "three packages are made"
ok "lintian has neither errors nor warnings" lintian --allow-root --fail-on error,warning "$PACKAGES/countersink_${FULL}_$MACHINE.changes"
is "$(dpkg-deb -f "$PACKAGES/$PROFILER" Maintainer)" "The publisher <publisher@debian.org>" "DEBFULLNAME and DEBEMAIL are the maintainer"

# Dependencies are those of install-deps' table.
for package in $("$SRC/scripts/install-deps" build --list | awk '{ print $2 }' | grep -vxE 'gcc|libc6-dev|make'); do
	like "$(sed -n '/^Build-Depends:/,/^[A-Z]/p' "$PACKAGES/countersink_$FULL.dsc")" "[ ,]$package(,|\$)" "the source package needs $package"
done
is "$(dpkg-deb -f "$PACKAGES/$PROFILER" Recommends)" "$("$SRC/scripts/install-deps" runtime --list | awk '{ print $2 }' | sort | paste -sd, | sed 's/,/, /g')" \
	"what is used where it is there is recommended"
is "$(dpkg-deb -f "$PACKAGES/$API" Package)" "$(objdump -p "$BUILT/lib/libcountersink-api.so" | awk '$1 == "SONAME" { sub(/\.so\./, "", $2); print $2 }')" \
	"the library's package is called by its soname"

# A function more or less in the library fails the build.
mkdir symbols
dpkg-deb -x "$PACKAGES/$API" symbols/api
for change in '/csink_pmc_read@/d' 's/csink_pmc_read@/csink_pmc_reap@/'; do
	sed "$change" "$SRC/scripts/packaging/debian/libcountersink-api0.symbols" >symbols/changed
	dpkg-gensymbols -c4 -plibcountersink-api0 -v"$VERSION" -esymbols/api/usr/lib/"$TRIPLET"/libcountersink-api.so.0 -Isymbols/changed -Osymbols/out >symbols/log 2>&1
	isnt $? 0 "the build fails where the symbols file is another one ($change)"
done

for suite in $PACKAGE_SUITES; do
	root=$TMP/$suite
	ok "a bare $suite" system "$suite" "$root"
	cp "$PACKAGES"/*.deb "$root/root/"
	inside "$root" sh -c 'apt-get -qq update && apt-get -qq install --no-install-recommends -y perl libcurl4 libdw1 libelf1 libunwind8 zlib1g' >apt.out 2>&1 ||
		diag "$(tail -n 5 apt.out)"
	files "$root" >before

	# Without its library the profiler is not configured; unpacked all the same, it says what is missing.
	inside "$root" dpkg -i "/root/$PROFILER" >dpkg.out 2>&1
	isnt $? 0 "$suite: the profiler alone is refused"
	like "$(cat dpkg.out)" 'depends on libcountersink-api0' "$suite: and the package that is missing is named"
	inside "$root" countersink -q -e page-faults:u,minor-faults:u -o /tmp/half.pb.gz -- perl -e "$BUSY" >half.out 2>&1
	is "$?:$(grep -c '^done$' half.out)" 0:1 "$suite: without the library for programs the command runs all the same"

	ok "$suite: the packages are installed" inside "$root" dpkg -i "/root/$API" "/root/$PROFILER"
	is "$(inside "$root" countersink --version | awk '{ print $2; exit }')" "$VERSION" "$suite: the launcher starts"
	# Frames of Perl are read of 5.36; else there are those of its evaluator.
	case $(inside "$root" perl -e 'printf "%vd", $^V') in
	5.36.*) named='main::busy' ;;
	*) named='perl +(Perl_pp_|\[perl)' ;;
	esac
	inside "$root" countersink -o /tmp/p.pb.gz -- perl -e "$BUSY" >run.out 2>run.err
	is "$?:$(cat run.out)" "0:done" "$suite: a command is profiled, and its output is its own" || diag "$(cat run.err)"
	like "$(cat run.err)" "$named" "$suite: its functions are named"
	like "$(inside "$root" countersink report /tmp/p.pb.gz)" "$named" "$suite: and are so in the profile"
	is "$(inside "$root" sh -c 'ls /usr/lib/*/libcountersink.so* /usr/lib/libcountersink.so*' 2>/dev/null)" "" \
		"$suite: where the linker looks is no library that is injected"
	ok "$suite: the library is injected without launcher" inside "$root" sh -c \
		"LD_PRELOAD='/usr/lib/$TRIPLET/countersink/\$PLATFORM/libcountersink.so' COUNTERSINK_EVENTS=page-faults:u,minor-faults:u COUNTERSINK_OUTPUT=/tmp/alone.pb.gz \
			perl -e 'print 1' && test -s /tmp/alone.pb.gz"
	rm "$root/usr/lib/$TRIPLET/countersink/libcountersink.so"
	inside "$root" countersink -o /tmp/gone.pb.gz -- perl -e 'print "ran\n"' >gone.out 2>gone.err
	like "$(cat gone.err)" 'has no libcountersink.so \(incomplete installation' "$suite: a launcher without its library says so"
	ok "$suite: the packages are installed again" inside "$root" dpkg -i "/root/$API" "/root/$PROFILER"
	ok "$suite: the packages are purged" inside "$root" dpkg -P countersink libcountersink-api0
	files "$root" >after
	is "$(diff before after)" "" "$suite: no file is left"

	# The source package's own tests, with the packages that were made.
	like "$(tar -xOf "$PACKAGES/countersink_$FULL.debian.tar.xz" debian/tests/control)" 'Tests: profile' "the source package has tests"
	mkdir "$root/root/source"
	tar -C "$root/root/source" --strip-components=1 -xf "$PACKAGES/countersink_$VERSION.orig.tar.xz"
	tar -C "$root/root/source" -xf "$PACKAGES/countersink_$FULL.debian.tar.xz"
	inside "$root" apt-get -qq install --no-install-recommends -y autopkgtest dpkg-dev >apt.out 2>&1 || diag "$(tail -n 5 apt.out)"
	ok "$suite: autopkgtest passes" inside "$root" sh -c 'cd /root && autopkgtest -B ./*.deb source/ -- null'
done
done_testing

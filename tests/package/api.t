#!/bin/bash
# libcountersink-api for programs: what pkg-config and CMake find in an installation, also after it was moved; and that the
# binary interface is the one which tests/abi has kept.
. "$(dirname "$0")/../cli/lib.sh"

VERSION=$(make -s -C "$SRC" show-version)
cat >use.c <<'END'
#include <countersink/timerq.h>
#include <countersink/version.h>
#include <stdio.h>
int main(void)
{
	printf("%u %d\n", csink_api_version(), csink_timerq_bytes(1) > 0);
	return csink_api_version() != CSINK_API_VERSION;
}
END
mkdir consumer
cat >consumer/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18)
project(consumer C)
find_package(countersink-api ${WANTED} REQUIRED)
add_executable(shared ../use.c)
target_link_libraries(shared PRIVATE countersink::api)
add_executable(static ../use.c)
target_link_libraries(static PRIVATE countersink::api_static)
END

# pc WORDS: pkg-config's answer about the installation in $place; in any other it does not look.
pc() {
	PKG_CONFIG_LIBDIR=$place/pkgconfig pkg-config "$@" countersink-api
}

# consume: programs by pkg-config and by CMake, of the installation whose library directory is $place.
consume() {
	ok "$1: countersink-api.pc is valid" pc --validate
	is "$(pc --modversion)" "$VERSION" "$1: its version is that of make"
	# shellcheck disable=SC2046 # words
	ok "$1: a program is built by pkg-config" ${CC:-cc} -o by_pc use.c $(pc --cflags --libs)
	is "$(LD_LIBRARY_PATH=$place ./by_pc)" "1 1" "$1: and runs"
	# shellcheck disable=SC2046
	ok "$1: a program is linked statically with it" ${CC:-cc} -o static_by_pc use.c $(pc --cflags) -Wl,-Bstatic $(pc --libs) -Wl,-Bdynamic
	is "$(env -u LD_LIBRARY_PATH ./static_by_pc)" "1 1" "$1: and runs without the library"
	rm -rf built
	ok "$1: CMake finds the library" cmake -S consumer -B built "${2:--DCMAKE_PREFIX_PATH=$place/..}"
	ok "$1: programs are built by CMake" cmake --build built
	is "$(built/shared; env -u LD_LIBRARY_PATH built/static)" "$(printf '1 1\n1 1')" "$1: and run, with the library and with its archive"
	unlike "$(readelf -d built/static)" libcountersink-api "$1: the latter does not need the library"
}

ok "install" make -s -C "$SRC" install PREFIX="$TMP/first"
place=$TMP/first/lib
consume "where it was installed"
mkdir -p "far away"
mv first "far away/moved"
place="$TMP/far away/moved/lib"
is "$(grep -rl "$TMP" "$place/pkgconfig" "$place/cmake")" "" "no file for pkg-config or CMake has the place of the installation"
mv "far away/moved" moved
place=$TMP/moved/lib
consume "after a move"
MULTI=lib/$(uname -m)-linux-gnu
ok "install in a directory as Debian has them" make -s -C "$SRC" install PREFIX="$TMP/multi" LIBDIR="$TMP/multi/$MULTI"
mv multi multi-moved
place=$TMP/multi-moved/$MULTI
consume "a directory as Debian has them" "-Dcountersink-api_DIR=$place/cmake/countersink-api"
ok "install in a stage for /usr" make -s -C "$SRC" install PREFIX=/usr LIBDIR="/usr/$MULTI" DESTDIR="$TMP/stage"
place=$TMP/stage/usr/$MULTI
is "$(PKG_CONFIG_SYSROOT_DIR=$TMP/stage pc --cflags --libs | xargs -n1 | sort | xargs)" \
	"-I$TMP/stage/usr/include -L$place -lcountersink-api" "below a system's root, that root is put before the paths once"

# What does not suit is refused.
place=$TMP/moved/lib
for wanted in 0.0:yes 0.1:yes "$VERSION:yes" 0.2:no 1:no 0.1.99:no; do
	rm -rf built
	cmake -S consumer -B built -DCMAKE_PREFIX_PATH="$TMP/moved" -DWANTED="${wanted%:*}" >cmake.out 2>&1
	is "$?" "$([ "${wanted#*:}" = yes ] && [ "${wanted%:*}" != 0.0 ] && echo 0 || echo 1)" "CMake: version ${wanted%:*} is wanted"
done
rm moved/lib/libcountersink-api.a
rm -rf built
cmake -S consumer -B built -DCMAKE_PREFIX_PATH="$TMP/moved" >cmake.out 2>&1
isnt $? 0 "CMake: an installation that lacks a file is refused"
like "$(tr -s '\n ' ' ' <cmake.out)" 'libcountersink-api\.a is not there' "and the file is named"

# The binary interface. abidiff's status: 4 something changed, 8 so that programs break.
KEPT=$SRC/tests/abi/libcountersink-api.$(uname -m).abi
compare() {
	abidiff --suppressions "$SRC/tests/abi/others.abignore" "$1" "$2" >diff.out 2>&1
}
if [ -e "$KEPT" ]; then
	ok "abidw and abidiff are installed (scripts/install-deps package)" sh -c 'command -v abidw && command -v abidiff >/dev/null'
	"$SRC/tests/abi/text" "$BUILT/lib/libcountersink-api.so" >now.abi
	compare "$KEPT" now.abi
	is $? 0 "the interface is the one of tests/abi" || {
		diag "$(cat diff.out)"
		diag "if no program breaks by it: tests/abi/text build/lib/libcountersink-api.so >${KEPT#"$SRC"/}"
	}
	is "$(sed -n "s/.*elf-symbol name='\([^']*\)' version='COUNTERSINK.*/\1/p" "$KEPT" | sort)" \
		"$(sed 's,/\*.*\*/,,; s/^ \*.*//' "$SRC/preload/api/libcountersink-api.map" | grep -o 'csink_[a-z_0-9]*' | grep -vx csink_private_names | sort)" \
		"it has the functions of the version script"
	python3 - <<-'END'
		import re
		text = open('now.abi').read()
		open('less.abi', 'w').write(re.sub(r"\n *<elf-symbol name='csink_pmc_read'.*|\n *<function-decl name='csink_pmc_read'(.|\n)*?</function-decl>", '', text))
		grown = re.sub(r"(<class-decl name='csink_pmc_value' size-in-bits=')320", r"\g<1>384", text)
		open('grown.abi', 'w').write(grown)
		open('kernel.abi', 'w').write(re.sub(r"(<class-decl name='perf_event_attr' size-in-bits=')\d+", r"\g<1>4096", text))
	END
	compare "$KEPT" less.abi
	is "$(($? & 8))" 8 "a function that is gone is found"
	compare "$KEPT" grown.abi
	is "$(($? & 4))" 4 "a structure that has grown is found"
	compare "$KEPT" kernel.abi
	is $? 0 "a structure of the kernel's headers may grow"
else
	skip "the interface is the one of tests/abi" "none is kept for $(uname -m)"
fi
done_testing

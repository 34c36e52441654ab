#!/bin/bash
# The place of the tree: what is built does not depend on it, and its path may have blanks, quotes and symbolic links.
. "$(dirname "$0")/lib.sh"

# place DIRECTORY: the tree there, without what is built.
place() {
	mkdir "$1"
	for file in "$SRC"/*; do
		case ${file##*/} in
		build* | compile_commands.json) ;;
		*) ln -s "$file" "$1/" ;;
		esac
	done
}

# build DIRECTORY: one file of the library and one of the launcher.
OBJECTS='build/obj/preload/core/libc_version.o build/obj/launcher/base/path.o'
build() {
	# shellcheck disable=SC2086 # words
	(cd "$1" && make -s $OBJECTS) >build.out 2>&1
	is "$?:$(cat build.out)" "0:" "sources are compiled in $1"
}

place plain
build plain
place "it's a (second) place for \$5"
ln -s "it's a (second) place for \$5" link
for directory in "it's a (second) place for \$5" link; do
	rm -rf link/build
	build "$directory"
	for object in $OBJECTS; do
		ok "$object has the same bytes in $directory" cmp "plain/$object" "$directory/$object"
	done
done
unlike "$(strings -a plain/build/obj/launcher/base/path.o)" "$TMP" "debug information has no path of the place"
ok "the compilation database is written there" make -s -C link compile_commands.json
ok "and is JSON" python3 -m json.tool link/compile_commands.json json.out
done_testing

#!/bin/bash
# Every source file is built and every test is run: by one of the Makefile's lists, or by a rule or script that names it.
. "$(dirname "$0")/lib.sh"

# untaken ROOT: source files and tests below ROOT that no rule uses, a line each.
untaken() (
	cd "$1" || exit
	make -s --no-print-directory show-sources | sort >"$TMP/taken"
	grep -v '^#' tests/rules.mk >"$TMP/rules"
	find launcher preload tests -type d -name 'build*' -prune -o -type f \
		\( -name '*.[cS]' -o -name '*.cc' -o -name '*.rs' -o -name '*.t' -o -name '*.go' -o -name '*.java' \) -print |
		sort | comm -23 - "$TMP/taken" | while read -r file; do
		name=${file##*/}
		# A rule names a file as it is, by a pattern's stem, or in a list without its ending; a script beside it by its name; of Java or Go, a test does.
		grep -qwF -e "$name" -e "${name%.*}" -e "$file" "$TMP/rules" ||
			grep -qrlwF --include='*.py' -e "$name" "${file%/*}" "${file%/*}/.." 2>/dev/null ||
			{ [[ $name = *.java || $name = *.go ]] && grep -rqwF -e "$name" "$SRC/tests/cli"; } || echo "$file"
	done
)

is "$(untaken "$SRC")" "" "every source file is built, every test is run"

# A copy with one file too many in each directory shows that the point above can fail.
mkdir copy
(cd "$SRC" && tar -cf - --exclude=./build\* --exclude=./.git .) | tar -xf - -C copy
strays="launcher/output/html/deep/stray.c preload/stray/stray.c tests/bench/stray.t tests/cli/stray/stray.t tests/stray/stray.c
	tests/unit/stray.c"
for file in $strays; do
	mkdir -p "copy/${file%/*}"
	echo 'int stray;' >"copy/$file"
done
is "$(untaken copy)" "$(printf '%s\n' $strays)" "a file that is never built or run is found, in each directory"

# uncopied DIRECTORY: tests that need, of BUILD, what lib.sh does not copy where root's user cannot enter the tree.
uncopied() {
	grep -rhoE '\$(BUILD|\{BUILD\})"?/[a-z][a-z/_.-]*' --include='*.t' "$1" | tr -d '"{}' |
		grep -vE '^\$BUILD/(bin|lib|tests/targets|go-cache)(/|$)'
}
is "$(uncopied "$SRC/tests/cli")" "" "tests read what is tested from the copy of the build tree, and all else from the tree itself"
mkdir needs
sed 's/TREE/BUILD/g' >needs/needs.t <<'END'
size "$TREE"/obj/x.o; "$TREE/bin/countersink"; RESOLVE=$TREE/tests/symbols/resolve
END
is "$(uncopied needs | cut -d / -f 2-)" "$(printf '%s\n' obj/x.o tests/symbols/resolve)" "a test that reads another part of the copy is found"

# unread HEADER: members of the recording's structures that the launcher never names, so that none is written for nothing.
unread() {
	grep -oE '^	[a-z_][a-z0-9_ ]* \**[a-z_]+(\[[A-Z_0-9]*\])?(, \**[a-z_]+)*;' "$1" | sed 's/^	[a-z_0-9 ]* //; s/\[[^]]*\]//g; s/[*;,]/ /g' |
		tr -s ' ' '\n' | grep -v '^reserved$' | sort -u | while read -r member; do
		grep -rqw --include='*.[ch]' -e "$member" "$SRC/launcher" || echo "$member"
	done
}
LAYOUT=$SRC/include/internal/recording_format.h
is "$(unread "$LAYOUT")" "" "every member of the recording is read"
sed 's/^	uint64_t magic;/&\n	uint64_t first_unread[CSINK_NR_LOSSES];\n	uint32_t second_unread, third_unread;/' "$LAYOUT" >layout.h
is "$(unread layout.h)" "$(printf '%s\n' first_unread second_unread third_unread)" "a member that is never read is found"
done_testing

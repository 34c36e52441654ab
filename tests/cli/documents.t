#!/bin/sh
# README.md and the other documents name what there is: commands, scripts, files, make targets, variables, keys.
. "$(dirname "$0")/lib.sh"

cd "$SRC" || exit 1
for command in $("$COUNTERSINK" help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
	ok "README.md names the command $command" grep -Eq "countersink( |\`)$command|\`$command\`" README.md
done
for script in demo check install-deps check-fresh; do
	ok "README.md names scripts/$script, which can be executed" sh -c 'grep -q "scripts/$1" README.md && test -x "scripts/$1"' sh $script
done
ok "README.md has at most 150 lines" test "$(wc -l <README.md)" -le 150
ok "README.md has at most 10 KB" test "$(wc -c <README.md)" -le 10000

# Links, and files that are named as code with a directory of ours before them.
for document in *.md $(find launcher preload tests -name '*.md' | sort); do
	directory=$(dirname "$document")
	{
		grep -oE '\]\([^)]*\)' "$document" | sed 's/^](//; s/)$//' | grep -v '^https:' | sed "s|^|$directory/|"
		grep -oE '`(include|launcher|preload|scripts|tests|\.ci)/[A-Za-z0-9_./-]*`' "$document" | tr -d '`'
	} | grep -v NAME | sort -u | while read -r file; do
		[ -e "$file" ] || echo "$file"
	done >"$TMP/missing"
	is "$(cat "$TMP/missing")" "" "each file that $document names exists"
	grep -oE '`make [^`]*`' "$document" | tr -d '`' | tr ' ' '\n' | grep -E '^[a-z][a-z-]+$' | grep -vx make | sort -u |
		while read -r target; do
			grep -qE "^([a-z_. -]* )?$target( [a-z_. -]*)?:" Makefile tests/rules.mk || echo "$target"
		done >"$TMP/missing"
	is "$(cat "$TMP/missing")" "" "each make target that $document names exists"
done

# plain_man PAGE: its source without markup.
plain_man() {
	sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' "launcher/man/$1"
}

# entries PAGE: the words before a comma or a blank of each tagged paragraph.
entries() {
	plain_man "$1" | awk '/^\.TP/ { tag = 1; next } tag { sub(/ \(.*/, ""); gsub(/,/, ""); print; tag = 0 }' | tr ' ' '\n'
}

# Every key and label of a profile has an entry.
entries countersink-profile.5 | sort -u >"$TMP/entries"
sed -n 's/^#define CSINK_\(FACT\|LABEL\)_[A-Z_]* "\([^"]*\)".*/\2/p' launcher/profile/facts.h | sort -u >"$TMP/keys"
ok "facts.h has keys" test "$(wc -l <"$TMP/keys")" -gt 30
is "$(comm -13 "$TMP/entries" "$TMP/keys")" "" "countersink-profile(5) explains every key and label of facts.h"

# Every export format has an entry.
entries countersink-export.1 | sort -u >"$TMP/entries"
formats | sort >"$TMP/formats"
ok "export has formats" test "$(wc -l <"$TMP/formats")" -ge 7
is "$(comm -13 "$TMP/entries" "$TMP/formats")" "" "countersink-export(1) explains every format of export"

# Every variable of the options, and every one that launcher and library pass to each other.
entries countersink-environment.7 | grep '^COUNTERSINK_' | sort -u >"$TMP/entries"
{
	"$COUNTERSINK" help run | grep -oE 'COUNTERSINK_[A-Z_]+'
	sed -n 's/^#define CSINK_ENV_[A-Z_]* CSINK_ENV_PREFIX "\(.*\)".*/COUNTERSINK_\1/p' include/internal/shared_options.h
} | sort -u >"$TMP/variables"
ok "the options and shared_options.h have variables" test "$(wc -l <"$TMP/variables")" -gt 20
is "$(comm -13 "$TMP/entries" "$TMP/variables")" "" \
	"countersink-environment(7) explains every variable of run's options and of the run directory"
done_testing

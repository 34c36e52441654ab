#!/bin/sh
# README.md agrees with --help.
. "$(dirname "$0")/lib.sh"

sed -n '/^<!-- options:/,/^<!-- end of options/p' "$SRC/README.md" | sed '1d;$d' >readme.table
"$SRC/scripts/options-table" "$COUNTERSINK" >help.table
ok "--help prints a table of options" test "$(wc -l <help.table)" -gt 8
ok "README's table of options is the one of --help (scripts/options-table prints it)" diff readme.table help.table
for command in $("$COUNTERSINK" help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
	ok "README names the command $command" grep -Eq "countersink( |\`)$command|\`$command\`" "$SRC/README.md"
done
for script in demo check install-deps check-fresh; do
	ok "README names scripts/$script, which is there" sh -c 'grep -q "scripts/$1" "$2/README.md" && test -x "$2/scripts/$1"' \
		sh $script "$SRC"
done
done_testing

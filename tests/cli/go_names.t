#!/bin/bash
# Names, lines and inlined calls of programs by Go, from their own tables.
. "$(dirname "$0")/lib.sh"

have go && have python3 && have addr2line || skip_all "no go, python3 or addr2line here"
RESOLVE=$BUILT/tests/symbols/resolve
GOCACHE=$(go_cache)
export GOCACHE GO111MODULE=off
cp "$SRC/tests/targets/outside.go.txt" outside.go
go build -o whole outside.go 2>err || skip_all "go builds nothing here: $(head -c 200 err)"

# Random addresses of functions, and what the symbol table has at each.
cat >addresses.py <<'END'
import random, re, subprocess, sys
starts = []
for line in subprocess.run(['nm', '-n', sys.argv[1]], capture_output=True, text=True).stdout.splitlines():
    parts = line.split(None, 2)
    if len(parts) == 3 and parts[1] in 'tT':
        starts.append((int(parts[0], 16), parts[2]))
random.seed(7)
chosen = []
for i in sorted(random.randrange(len(starts) - 1) for _ in range(3000)):
    (start, name), end = starts[i], starts[i + 1][0]
    # With C: those of Go are in packages.
    if end <= start or name in ('runtime.text', 'runtime.etext') or sys.argv[2:] and not re.match(r'[^_.].*\.', name):
        continue
    # The linker writes "[...]" for what is in brackets.
    name = re.sub(r'\[.*\]', '[...]', name[:-5] if name.endswith('.abi0') else name)
    chosen.append((random.randrange(start, end), name))
with open('addresses', 'w') as addresses, open('truth', 'w') as truth:
    for address, name in sorted(chosen):
        print('%x' % address, file=addresses)
        print(name, file=truth)
END
# outermost OBJECT: of each address the outermost function; innermost: the innermost with its line.
outermost() { "$RESOLVE" "$1" <addresses | awk -F '\t' '/^0x/ { name = "" } NF > 1 { name = $2 } /^$/ { print name }'; }
innermost() { "$RESOLVE" "$1" <addresses | awk -F '\t' '/^0x/ { first = 1 } NF > 1 && first { print $3; first = 0 }'; }
agree() { # FILE FILE: how many of a thousand lines are equal
	paste -d '\n' "$1" "$2" | awk 'NR % 2 { last = $0; next } { all++; same += $0 == last } END { print all ? int(same * 1000 / all) : 0 }'
}

python3 addresses.py whole
ok "there are $(wc -l <addresses) addresses" test "$(wc -l <addresses)" -gt 2500
outermost whole >names
ok "names are those of the symbol table: $(agree names truth) of 1,000" test "$(agree names truth)" -ge 999
is "$("$RESOLVE" whole <addresses | grep -c '\.abi0')" 0 "no name ends in .abi0"
innermost whole >lines
addr2line -e whole <addresses | sed 's/ (discriminator.*//; s,^\./,,' >lines.addr2line
paste lines lines.addr2line | grep -v '^:0' >both # padding behind a function has no line
cut -f 1 both >ours
cut -f 2 both >theirs
ok "lines are those of addr2line: $(agree ours theirs) of 1,000" test "$(agree ours theirs)" -ge 990
"$RESOLVE" whole <addresses >found
ok "some addresses are in inlined calls" test "$(awk -F '\t' '/^0x/ { n = 0 } NF > 1 && ++n == 2' found | wc -l)" -gt 100
# addr2line 2.40 prints the outer function a second time in place of an inlined one.
if have llvm-symbolizer; then
	awk -F '\t' '/^0x/ { names = "" } NF > 1 { names = $2 " " names } /^$/ { print names }' found >inlined
	sed 's/^/0x/' addresses | llvm-symbolizer --obj=whole 2>/dev/null | awk '/^$/ { print names; names = ""; n = 0; next }
		{ if (n++ % 2 == 0) names = $0 " " names }' | sed 's/\.abi0 / /g; s/\[.*\]/[...]/' | paste inlined - | grep -v '??' >both
	cut -f 1 both >ours
	cut -f 2 both >theirs
	ok "inlined calls are those of llvm-symbolizer: $(agree ours theirs) of 1,000" test "$(agree ours theirs)" -ge 990
else
	skip "inlined calls beside llvm-symbolizer's" "it is not installed"
fi

strip -o stripped whole
unlike "$(readelf -SW stripped)" '\.(symtab|debug_info)' "the stripped program has neither symbols nor debug information"
"$RESOLVE" stripped <addresses >found.stripped
ok "a stripped program: the same names, lines and inlined calls" cmp found found.stripped
perl -0777 -pe 'substr($_, 40, 8) = "\0" x 8; substr($_, 58, 6) = "\0" x 6' <stripped >headless
"$RESOLVE" headless <addresses >found.headless
ok "a program without headers of sections: the same names, lines and inlined calls" cmp found found.headless

if go build -buildmode=pie -o pie outside.go 2>err; then
	python3 addresses.py pie
	outermost pie >names
	ok "a position-independent program: $(agree names truth) of 1,000 names" test "$(agree names truth)" -ge 999
else
	skip "a position-independent program" "go builds none here"
fi

# With C, the linker of C lays it out, which has the table in another section; functions of C are in the symbol table alone.
(echo 'package main'; echo 'import "C"') >with_c.go
for mode in exe pie; do
	if ! CGO_ENABLED=1 go build -buildmode=$mode -o with_c outside.go with_c.go 2>err; then
		skip "a program with C ($mode)" "go builds none here: $(head -c 200 err)"
		continue
	fi
	python3 addresses.py with_c go
	outermost with_c >names
	ok "a program with C ($mode): $(agree names truth) of 1,000 names" test "$(agree names truth)" -ge 999
	"$RESOLVE" with_c <addresses >found
	strip -o with_c.stripped with_c
	"$RESOLVE" with_c.stripped <addresses >found.stripped
	ok "a program with C ($mode), stripped: the same names, lines and inlined calls" cmp found found.stripped
done

countersink attach -o go.pb.gz -- ./stripped 500ms 2>err
like "$(countersink report --all go.pb.gz 2>&1)" ' main\.work( |$)' "a stripped program that is sampled from outside has its functions"
is "$(countersink export -f folded go.pb.gz | grep -F '[no symbol]')" "" "a stripped program that is sampled from outside has a name for each function"
like "$(countersink report --by line go.pb.gz 2>&1)" 'outside\.go:[1-9]' "a stripped program that is sampled from outside has lines"

done_testing

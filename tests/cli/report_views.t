#!/bin/bash
# The forms of `countersink report`: trees, callers, other rows, filters, formats for machines, the pager.
. "$(dirname "$0")/lib.sh"

ok 'threads8 is profiled' "$COUNTERSINK" -q -F 2000 -o t.pb.gz -- "$TARGETS/threads8" 300
ok 'a C++ program is profiled' "$COUNTERSINK" -q -F 2000 -o i.pb.gz -- "$TARGETS/inlines" 3000
printf 'main;parse;read 60\nmain;parse 25\nmain;write;flush 14\nmain;tiny;dot 1\n' >f.folded

# ---- folded stacks, whose exact results are known
report() {
	"$COUNTERSINK" report "$@" f.folded 2>&1
}
like "$(report)" '^ +60.00 +60 +60.00 +60 +read$' 'folded stacks are read'
like "$(report --tree)" '^ +100.00 +100 +main$' 'a tree begins with the outermost function'
like "$(report --tree)" '^ +85.00 +85 +25.00  (├─|\|-)parse$' 'a tree shows called functions below their caller'
like "$(report --tree --fold 2)" '^ +1.00 +1 .*\(1 more below 2 %\)$' '--fold shows the sum of folded subtrees'
unlike "$(report --tree --fold 2)" 'tiny' '--fold 2 hides a subtree below 2 %'
like "$(report --tree --fold 0.5)" 'tiny' '--fold 0.5 shows the same subtree'
is "$(report --callers read | tail -3 | awk '{ print $NF }' | tr '\n' ' ')" 'read parse main ' '--callers lists callers outwards'
like "$(report --callers 'rea|flu')" '^ +14.00 +14 +flush$' '--callers has all functions that match'
report --callers raed >out
is $? 1 '--callers of a missing function: status 1'
is "$(cat out)" "countersink: no function of the profile matches 'raed'; did you mean 'read'?" '--callers of a missing function suggests a name'
like "$(report --focus parse)" '^85 of samples' '--focus leaves out other samples'
like "$(report --focus parse)" 'filter +--focus parse: 85.00 % of all' '--focus is reported'
like "$(report --ignore parse)" '^15 of samples' '--ignore leaves out matching samples'
report --focus nothing >out
is "$? $(cat out)" '1 countersink: no sample passes --focus nothing' 'a filter that leaves no sample is reported'
report --focus '(' >out
is $? 2 'an invalid regular expression: status 2'
like "$(cat out)" "option --focus: '\(' is no regular expression" 'an invalid regular expression is reported with its option'
report --fold x >out
is "$? $(cat out)" "2 countersink: option --fold: 'x' is no share from 0 to 100" 'an invalid share is reported with its option'
report --tree --by module >out
is $? 2 '--tree with --by: status 2'
report --json --csv >out
is $? 2 'two formats: status 2'
report -e nothing >out
is $? 2 'an unknown event: status 2'
gzip -k f.folded
is "$("$COUNTERSINK" report -x f.folded.gz)" "$(report -x)" 'folded stacks may be gzipped'

# ---- files of one base name
if have python3; then
	mkdir -p pk/a pk/b
	echo 'def burn(n):
    for i in range(n): pass' | tee pk/a/util.py >pk/b/util.py
	echo 'import sys; sys.path.insert(0, sys.argv[1])
import a.util, b.util
for i in range(100): a.util.burn(100000); b.util.burn(100000)' >pk/two.py
	"$COUNTERSINK" -q -F 2000 -o two.pb.gz -- "$(python3 -c 'import sys; print(sys.executable)')" -B pk/two.py "$PWD/pk" 2>err
	two() { "$COUNTERSINK" report --all "$@" two.pb.gz; }
	for one in a b; do
		like "$(two)" " $one/util\.py +burn\$" "files of one base name: the directory distinguishes the functions of $one/"
		like "$(two --by line)" " $one/util\.py:2 burn\$" "files of one base name: --by line, $one/"
		like "$(two --tree)" "burn  $one/util\.py\$" "files of one base name: --tree, $one/"
		like "$(two --csv)" "^burn,$one/util\.py,.*,/.*/pk/$one/util\.py,1\$" "files of one base name: --csv has path and line, $one/"
		like "$(two --json | tr -d '\n')" "\"file\": *\"/[^\"]*/pk/$one/util\.py\", *\"line\": *1," "files of one base name: --json has path and line, $one/"
		like "$("$COUNTERSINK" export -f folded two.pb.gz)" ";burn \\($one/util\.py\\)" "files of one base name: folded stacks, $one/"
		like "$("$COUNTERSINK" diff --all two.pb.gz two.pb.gz)" " $one/util\.py +burn\$" "files of one base name: diff, $one/"
	done
	unlike "$(two --annotate burn)" 'was changed' "--annotate: a source file from before the run is shown without a note"
	touch -d 2099-01-01 pk/a/util.py
	like "$(two --annotate burn)" 'note: the file was changed after the profile' "--annotate: a source file from after the run gets a note"
	like "$(two)" ' two\.py +<module>$' "files of one base name: other files stay short"
else
	skip "files of one base name" "no python3 here"
fi

# ---- machine-readable formats
is "$(report --csv | head -2 | tr '\n' ' ')" 'function,module,self,total,samples,file,line read,,60,60,60,, ' '--csv prints rows'
is "$(report --tree --csv | sed -n '1,2p' | tr '\n' ' ')" 'id,parent,function,module,self,total,file,line 1,0,main,,0,100,, ' '--tree --csv prints nodes'
if have python3; then
	report --json >j.json
	is "$(python3 -c 'import json; j = json.load(open("j.json")); print(len(j["rows"]), j["rows"][0]["name"], j["rows"][0]["self"], j["types"][0]["sum"])')" \
		'7 read 60 100' '--json prints rows'
	report --json --callers read >j.json
	is "$(python3 -c 'import json; j = json.load(open("j.json")); print([n["name"] for n in j["nodes"]])')" \
		"['read', 'parse', 'main']" '--json prints the nodes of a tree'
	"$COUNTERSINK" report --json --by thread t.pb.gz >j.json
	ok '--json of a real profile is valid JSON' python3 -m json.tool j.json
else
	skip '--json prints rows' 'no python3 here'
fi

# ---- other rows, of real programs
threads=$("$COUNTERSINK" report --by thread --all t.pb.gz)
like "$threads" 'process +thread$' '--by thread: the table has its title'
is "$(echo "$threads" | grep -cE 'threads8 [0-9]+ +worker-[0-7] [0-9]+$')" 8 '--by thread: all eight threads have a row'
like "$("$COUNTERSINK" report --by process t.pb.gz)" 'threads8 [0-9]+$' '--by process: a row has the name and the PID'
like "$("$COUNTERSINK" report --by module i.pb.gz)" '/inlines$' '--by module: a row has the whole path'
like "$("$COUNTERSINK" report --by line i.pb.gz)" 'inlines +inlines.cc:[0-9]+ [a-z]' '--by line: a row has the file, the line and the function'
tid=$(echo "$threads" | sed -nE 's/.*threads8 [0-9]+ +worker-3 ([0-9]+)$/\1/p' | head -1)
like "$("$COUNTERSINK" report --thread " $tid\$" --by thread t.pb.gz)" "^ +100.00.* $tid\$" '--thread selects a thread by its id'
like "$("$COUNTERSINK" report --tree i.pb.gz)" 'churn.*  inlines$' 'a tree of a real program'
is "$("$COUNTERSINK" report --tree i.pb.gz | grep -c "$(printf '\033')")" 0 'a tree in a file has no colour'

# ---- lines and instructions
annotated=$("$COUNTERSINK" report --annotate churn i.pb.gz)
like "$annotated" '^[0-9.]+ % of task-clock in it, [0-9.]+ % with what it called$' '--annotate begins with the shares of the function'
# A quarter of all samples is in this line, nearly all of it in what is inlined there; the loop's own lines may have none.
like "$annotated" '^ +([0-9.]+ +)?[0-9.]+ +[0-9]+  .*scramble\(hash \^ bytes\[i\]\);$' 'annotated: a source line with its cost'
like "$annotated" '^ +[0-9]+  +return hash;$' 'annotated: the surrounding source lines'
if have objdump; then
	like "$annotated" '^ +[0-9.]+ +[0-9.]+ +[0-9a-f]+:	? +(rol|xor|add|eor|ror|mov)' 'annotated: an instruction with its cost'
	like "$annotated" '^  self %  total %  /.*/inlines: [A-Za-z_].*$' 'annotated: the function of the code'
	"$COUNTERSINK" report --annotate '^main$' i.pb.gz >costly
	"$COUNTERSINK" report --annotate '^main$' --all i.pb.gz >whole
	like "$(cat costly)" '^ +\.\.\.$' 'annotated: code far from costly lines is left out'
	is "$(awk '/ [0-9a-f]+:[ \t]+[a-z]/ { far = /^ +[0-9]+[.][0-9]/ ? 0 : far + 1 } END { print (NR > 9), (far <= 6) }' costly)" \
		'1 1' 'annotated: code behind the last costly line is left out'
	is "$(grep -c '^ *\.\.\.$' whole) $(($(wc -l <whole) > $(wc -l <costly)))" '0 1' 'annotated: --all leaves nothing out'
else
	skip 'annotated: an instruction with its cost' 'no objdump here'
fi
mkdir -p bin
for tool in sh sed grep; do
	ln -sf "$(command -v $tool)" bin/$tool
done
like "$(PATH=$PWD/bin "$COUNTERSINK" report --annotate churn i.pb.gz)" 'objdump cannot be started .*no disassembly; it is in the package binutils' \
	'without objdump the report says that there is no disassembly, and why'
cp "$TARGETS/inlines" moved
ok 'the moved program is profiled' "$COUNTERSINK" -q -F 2000 -o moved.pb.gz -- ./moved 1500
cp "$TARGETS/burn" moved
like "$("$COUNTERSINK" report --annotate churn moved.pb.gz)" 'moved is another build than the one that ran: no disassembly' 'annotated: a replaced program has no disassembly'
if have python3; then
	"$COUNTERSINK" report --json --annotate churn i.pb.gz >j.json
	is "$(python3 -c 'import json; j = json.load(open("j.json")); print(sum(l["total"] for l in j["lines"]) == j["total"], j["self"] > 0, len(j["code"]) > 3)')" \
		'True True True' 'annotated: --json prints lines and code'
else
	skip 'annotated: --json prints lines and code' 'no python3 here'
fi

# ---- a terminal: width, pager
if have python3; then
	cat >terminal.py <<'END'
import fcntl, os, pty, struct, sys, termios
columns = int(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
out = b''
while True:
    try:
        more = os.read(fd, 65536)
    except OSError:
        break
    if not more:
        break
    out += more
sys.stdout.buffer.write(out.replace(b'\r\n', b'\n'))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
	terminal() {
		python3 terminal.py "$@"
	}
	export TERM=xterm NO_COLOR=1
	longest=$(COLUMNS=80 terminal 80 "$COUNTERSINK" report --no-pager --tree i.pb.gz | sed -n '/total %/,$p' | awk '{ if (length > n) n = length } END { print n + 0 }')
	ok "a tree fits 80 columns ($longest)" test "$longest" -le 80 -a "$longest" -gt 40
	longest=$(COLUMNS=72 terminal 72 "$COUNTERSINK" report --no-pager i.pb.gz | sed -n '/self %/,/more functions/p' | awk '{ if (length > n) n = length } END { print n + 0 }')
	ok "a table fits 72 columns ($longest)" test "$longest" -le 72 -a "$longest" -gt 40
	export COUNTERSINK_PAGER='sed s/^/PAGED:/'
	like "$(terminal 100 "$COUNTERSINK" report f.folded)" '^PAGED:.*100 of samples' 'a report on a terminal goes to the pager'
	unlike "$(terminal 100 "$COUNTERSINK" report --no-pager f.folded)" 'PAGED' '--no-pager prints without the pager'
	unlike "$("$COUNTERSINK" report f.folded)" 'PAGED' 'a report to a pipe goes without the pager'
	unlike "$(COUNTERSINK_NO_PAGER=1 terminal 100 "$COUNTERSINK" report f.folded)" 'PAGED' 'COUNTERSINK_NO_PAGER prints without the pager'
	unlike "$(terminal 100 "$COUNTERSINK" report --csv f.folded)" 'PAGED' '--csv prints without the pager'
	like "$(COUNTERSINK_PAGER='' PAGER='sed s/^/OTHER:/' terminal 100 "$COUNTERSINK" report f.folded)" '^100 of' 'an empty pager means no pager'
	like "$(env -u COUNTERSINK_PAGER PAGER='sed s/^/OTHER:/' "$(command -v python3)" terminal.py 100 "$COUNTERSINK" report f.folded)" '^OTHER:' \
		'PAGER is the second choice'
	like "$(COUNTERSINK_PAGER=no-such-pager terminal 100 "$COUNTERSINK" report f.folded)" '100 of samples' 'a missing pager: the report is printed'
	COUNTERSINK_PAGER='head -n 1' terminal 100 "$COUNTERSINK" report --all i.pb.gz >out
	is "$? $(wc -l <out)" '0 1' 'a pager that ends early is no error'
else
	skip 'the report on a terminal' 'python3 is not installed'
fi
done_testing

#!/bin/bash
# The forms of `countersink report`: trees, callers, other rows, filters, formats for machines, the pager.
. "$(dirname "$0")/lib.sh"

ok 'a program with threads is profiled' "$COUNTERSINK" -q -F 2000 -o t.pb.gz -- "$TARGETS/threads8" 300
ok 'a program of C++ is profiled' "$COUNTERSINK" -q -F 2000 -o i.pb.gz -- "$TARGETS/inlines" 3000
printf 'main;parse;read 60\nmain;parse 25\nmain;write;flush 14\nmain;tiny;dot 1\n' >f.folded

# ---- folded stacks, by which the rest is known exactly
report() {
	"$COUNTERSINK" report "$@" f.folded 2>&1
}
like "$(report)" '^ +60.00 +60 +60.00 +60 +read$' 'folded stacks are read'
like "$(report --tree)" '^ +100.00 +100 +main$' 'a tree begins with the outermost function'
like "$(report --tree)" '^ +85.00 +85 +25.00  (├─|\|-)parse$' 'which called others'
like "$(report --tree --fold 2)" '^ +1.00 +1 .*\(1 more below 2 %\)$' 'what is small is folded, and its sum said'
unlike "$(report --tree --fold 2)" 'tiny' 'not shown'
like "$(report --tree --fold 0.5)" 'tiny' 'unless asked for'
is "$(report --callers read | tail -3 | awk '{ print $NF }' | tr '\n' ' ')" 'read parse main ' 'callers go outwards'
like "$(report --callers 'rea|flu')" '^ +14.00 +14 +flush$' 'of all that match'
report --callers raed >out
is $? 1 'a function that is not there is an error'
is "$(cat out)" "countersink: no function of the profile matches 'raed'; did you mean 'read'?" 'that helps'
like "$(report --focus parse)" '^85 of samples' 'a focus leaves the rest out'
like "$(report --focus parse)" 'filter +--focus parse: 85.00 % of all' 'and says so'
like "$(report --ignore parse)" '^15 of samples' 'ignoring is the opposite'
report --focus nothing >out
is "$? $(cat out)" '1 countersink: no sample passes --focus nothing' 'a filter that leaves nothing says so'
report --focus '(' >out
is $? 2 'an expression that is none is wrong usage'
like "$(cat out)" "option --focus: '\(' is no regular expression" 'by its option'
report --fold x >out
is "$? $(cat out)" "2 countersink: option --fold: 'x' is no share from 0 to 100" 'so is a share that is none'
report --tree --by module >out
is $? 2 'a tree has no other rows'
report --json --csv >out
is $? 2 'one format at a time'
report -e nothing >out
is $? 2 'an event that is not there is wrong usage'
gzip -k f.folded
is "$("$COUNTERSINK" report -x f.folded.gz)" "$(report -x)" 'folded stacks may be gzipped'

# ---- for machines
is "$(report --csv | head -2 | tr '\n' ' ')" 'function,module,self,total,samples read,,60,60,60 ' 'CSV'
is "$(report --tree --csv | sed -n '1,2p' | tr '\n' ' ')" 'id,parent,function,module,self,total 1,0,main,,0,100 ' 'CSV of a tree'
if have python3; then
	report --json >j.json
	is "$(python3 -c 'import json; j = json.load(open("j.json")); print(len(j["rows"]), j["rows"][0]["name"], j["rows"][0]["self"], j["types"][0]["sum"])')" \
		'7 read 60 100' 'JSON'
	report --json --callers read >j.json
	is "$(python3 -c 'import json; j = json.load(open("j.json")); print([n["name"] for n in j["nodes"]])')" \
		"['read', 'parse', 'main']" 'JSON of a tree'
	"$COUNTERSINK" report --json --by thread t.pb.gz >j.json
	ok 'JSON of a real profile' python3 -m json.tool j.json
else
	skip 'JSON' 'no python3 here'
fi

# ---- other rows, of real programs
threads=$("$COUNTERSINK" report --by thread --all t.pb.gz)
like "$threads" 'process +thread$' 'by thread: the title'
is "$(echo "$threads" | grep -cE 'threads8 [0-9]+ +worker-[0-7] [0-9]+$')" 8 'by thread: all eight'
like "$("$COUNTERSINK" report --by process t.pb.gz)" 'threads8 [0-9]+$' 'by process'
like "$("$COUNTERSINK" report --by module i.pb.gz)" '/inlines$' 'by module: whole paths'
like "$("$COUNTERSINK" report --by line i.pb.gz)" 'inlines +inlines.cc:[0-9]+ [a-z]' 'by line'
tid=$(echo "$threads" | sed -nE 's/.*threads8 [0-9]+ +worker-3 ([0-9]+)$/\1/p' | head -1)
like "$("$COUNTERSINK" report --thread " $tid\$" --by thread t.pb.gz)" "^ +100.00.* $tid\$" 'a thread by its id'
like "$("$COUNTERSINK" report --tree i.pb.gz)" 'churn.*  inlines$' 'a tree of a real program'
is "$("$COUNTERSINK" report --tree i.pb.gz | grep -c "$(printf '\033')")" 0 'without colour in a file'

# ---- lines and instructions
annotated=$("$COUNTERSINK" report --annotate churn i.pb.gz)
like "$annotated" '^[0-9.]+ % of task-clock in it, [0-9.]+ % with what it called$' 'annotated: the verdict'
like "$annotated" '^ +[0-9.]+ +[0-9.]+ +[0-9]+  .*scramble\(hash \^ bytes\[i\]\);$' 'annotated: a source line with its cost'
like "$annotated" '^ +[0-9]+  \{$' 'annotated: and those around it'
if have objdump; then
	like "$annotated" '^ +[0-9.]+ +[0-9.]+ +[0-9a-f]+:	? +(rol|xor|add|eor|ror|mov)' 'annotated: an instruction with its cost'
	like "$annotated" '^  self %  total %  /.*/inlines: [A-Za-z_].*$' 'annotated: what function the code is of'
	"$COUNTERSINK" report --annotate '^main$' i.pb.gz >costly
	"$COUNTERSINK" report --annotate '^main$' --all i.pb.gz >whole
	like "$(cat costly)" '^ +\.\.\.$' 'annotated: code far from what costs is left out'
	is "$(awk '/ [0-9a-f]+:[ \t]+[a-z]/ { far = /^ +[0-9]+[.][0-9]/ ? 0 : far + 1 } END { print (NR > 9), (far <= 6) }' costly)" \
		'1 1' 'annotated: as is what follows the last that costs'
	is "$(grep -c '^ *\.\.\.$' whole) $(($(wc -l <whole) > $(wc -l <costly)))" '0 1' 'annotated: but with --all'
else
	skip 'annotated: an instruction with its cost' 'no objdump here'
fi
mkdir -p bin
for tool in sh sed grep; do
	ln -sf "$(command -v $tool)" bin/$tool
done
like "$(PATH=$PWD/bin "$COUNTERSINK" report --annotate churn i.pb.gz)" 'objdump cannot be started .*no disassembly; it is in the package binutils' \
	'without objdump that is said'
cp "$TARGETS/inlines" moved
ok 'another place' "$COUNTERSINK" -q -o moved.pb.gz -- ./moved 300
cp "$TARGETS/burn" moved
like "$("$COUNTERSINK" report --annotate churn moved.pb.gz)" 'moved is another build than the one that ran: no disassembly' 'another build is refused'
if have python3; then
	"$COUNTERSINK" report --json --annotate churn i.pb.gz >j.json
	is "$(python3 -c 'import json; j = json.load(open("j.json")); print(sum(l["total"] for l in j["lines"]) == j["total"], j["self"] > 0, len(j["code"]) > 3)')" \
		'True True True' 'annotated: JSON'
else
	skip 'annotated: JSON' 'no python3 here'
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
	like "$(terminal 100 "$COUNTERSINK" report f.folded)" '^PAGED:.*100 of samples' 'a terminal gets the pager'
	unlike "$(terminal 100 "$COUNTERSINK" report --no-pager f.folded)" 'PAGED' '--no-pager does not'
	unlike "$("$COUNTERSINK" report f.folded)" 'PAGED' 'a pipe does not'
	unlike "$(COUNTERSINK_NO_PAGER=1 terminal 100 "$COUNTERSINK" report f.folded)" 'PAGED' 'the environment can say so'
	unlike "$(terminal 100 "$COUNTERSINK" report --csv f.folded)" 'PAGED' 'nor do machines'
	like "$(COUNTERSINK_PAGER='' PAGER='sed s/^/OTHER:/' terminal 100 "$COUNTERSINK" report f.folded)" '^100 of' 'an empty pager is none'
	like "$(env -u COUNTERSINK_PAGER PAGER='sed s/^/OTHER:/' "$(command -v python3)" terminal.py 100 "$COUNTERSINK" report f.folded)" '^OTHER:' \
		'PAGER is the second choice'
	like "$(COUNTERSINK_PAGER=no-such-pager terminal 100 "$COUNTERSINK" report f.folded)" '100 of samples' 'a pager that is not there is no loss'
	COUNTERSINK_PAGER='head -n 1' terminal 100 "$COUNTERSINK" report --all i.pb.gz >out
	is "$? $(wc -l <out)" '0 1' 'who leaves the pager early is not told off'
else
	skip 'a terminal' 'no python3 here'
fi
done_testing

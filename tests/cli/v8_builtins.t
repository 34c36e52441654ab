#!/bin/sh
# Names of V8's builtin functions where the symbol table is gone: of a program that has them as V8 does, of nodes that are
# installed, stripped, and of damaged files. NODES can name more programs than the one in PATH.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || skip_all "V8's builtins are found on x86-64"
MADE=$TARGETS/made_builtins
RESOLVE=$BUILT/tests/symbols/resolve

countersink -q -F 2000 -o p.pb.gz -- "$MADE" 299 300 >out 2>&1
is "$?:$(cat out)" "3:" "a stripped program with builtins runs as without countersink"
countersink export -f folded -e samples p.pb.gz >folded
is "$(awk '{ all += $NF } /;Builtins_Made299 / { named += $NF } END { print (all >= 300 && named > .9 * all) }' folded)" 1 \
	"its last builtin has the name of V8's table" || diag "$(cat folded)"

cat >compare.py <<'END'
# compare.py RESOLVE FILE: of "ADDRESS BYTES NAME" lines on stdin, the first, a middle and the last address
import subprocess, sys
names, wanted = {}, []
for line in sys.stdin:
    address, size, name = line.split()
    address, size = int(address, 16), int(size, 16)
    names.setdefault(address, set()).add(name)
    wanted += [(at, address) for at in sorted({address, address + size // 2, address + size - 1})]
wanted.sort()
answers = subprocess.run(sys.argv[1:3], input="\n".join("%x" % at for at, _ in wanted), capture_output=True, text=True).stdout
found = [answer.split("\n") for answer in answers.strip().split("\n\n")]
assert len(found) == len(wanted), (len(found), len(wanted))
bad = [(hex(at), names[start], answer[1:]) for (at, start), answer in zip(wanted, found)
       if len(answer) < 2 or answer[1].split("\t")[0] not in names[start]]
print(len(names), "builtins,", len(bad), "wrong", *bad[:3])
END
nr=0
for node in $(command -v node) $NODES; do
	nm -S "$node" 2>/dev/null | awk '$4 ~ /^Builtins_/ && $3 ~ /[tT]/ && $2 !~ /^0+$/ { print $1, $2, $4 }' >truth
	nm -D "$node" 2>/dev/null | grep -q DefaultEmbeddedBlobCode && [ -s truth ] || continue
	nr=$((nr + 1))
	strip -o stripped "$node"
	like "$(python3 compare.py "$RESOLVE" stripped <truth)" '^[0-9]{4} builtins, 0 wrong$' "each builtin of a stripped copy of $node has its name"
done
[ $nr -gt 0 ] || skip "each builtin of a stripped node has its name" "no node here exports where they are, and has symbols to compare with"

# Bytes of the program are changed, one place after the other: the answer is a name, a place, or none.
cat >damage.py <<'END'
import random, subprocess, sys
resolve, made = sys.argv[1:3]
whole = open(made, "rb").read()
random.seed(7)
def names(path):
    run = subprocess.run([resolve, path], input="".join("%x\n" % at for at in range(0x1000, 0xc000, 64)), capture_output=True, text=True, errors="replace")
    return run, run.stdout.count("\nBuiltins_Made")
assert names(made)[1] > 100, names(made)[1]
headers = list(range(0, 64)) + list(range(64, 64 + 56 * 13))
tables = whole.index(b"\x5a" * 24)
texts = whole.index(b"Made0\0")
spots = random.sample(headers, 60) + random.sample(range(64 + 56 * 13, 0x3000), 100) + random.sample(range(len(whole) - 64 * 30, len(whole)), 100) + [tables + 24 + random.randrange(28 * 300) for _ in range(40)] + list(range(texts - 8, texts + 8))
bad = 0
for spot in spots:
    for value in (0, 0x7f, 0xff):
        data = bytearray(whole)
        data[spot] = value
        open("damaged", "wb").write(data)
        run, _ = names("damaged")
        if run.returncode not in (0, 1):
            bad += 1
            print("byte %d = %d: status %d" % (spot, value, run.returncode), run.stderr[:200])
print(len(spots), "bytes changed,", bad, "failures")
END
like "$(python3 damage.py "$RESOLVE" "$MADE" 2>&1)" '^[0-9]+ bytes changed, 0 failures$' "damaged files end in no crash"
done_testing

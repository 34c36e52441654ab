#!/bin/sh
# `countersink export`: outputs and formats, checked with the readers installed for the tests.
. "$(dirname "$0")/lib.sh"

# What the functions of burn cost is in what was inlined into them: perf, which does not look for that, calls it theirs.
COUNTERSINK_TIMELINE=1 "$COUNTERSINK" -q -o x.pb.gz -- "$TARGETS/burn" >/dev/null 2>&1
ok 'a profile is recorded' test -s x.pb.gz

# ---- the choice of a format ----
tried=
for name in x.pb.gz=pprof x.pprof=pprof x.wire.pb.gz=wire x.otlp=otlp x.folded=folded x.collapsed=folded x.html=html perf.data=perf.data x.data=perf.data \
	callgrind.out.1=callgrind x.callgrind=callgrind x.speedscope.json=speedscope x.json=firefox; do
	file=out/${name%=*} format=${name#*=} tried="$tried $format"
	rm -rf out && mkdir out
	"$COUNTERSINK" export -o "$file" x.pb.gz >stdout 2>err
	is "$? $(cat stdout err)" '0 ' "$file is written without a message"
	"$COUNTERSINK" export --format "$format" x.pb.gz >by_name
	if [ "$format" = pprof ] || [ "$format" = wire ]; then
		is "$(gzip -dc <"$file" | cksum)" "$(gzip -dc <by_name | cksum)" "the name $file selects the format $format"
	else
		ok "the name $file selects the format $format" cmp "$file" by_name
	fi
done
# shellcheck disable=SC2086 # a word each
is "$(printf '%s\n' $tried | sort -u)" "$(formats | sort)" 'every format has a name that selects it'
"$COUNTERSINK" export -f folded -o - x.pb.gz >by_dash
"$COUNTERSINK" export -f folded - <x.pb.gz >by_stdin
"$COUNTERSINK" export -f folded -o other.html x.pb.gz
"$COUNTERSINK" export -f folded x.pb.gz >folded
ok '-o - is standard output' cmp by_dash folded
ok '- is standard input' cmp by_stdin folded
ok '--format comes before the ending' cmp other.html folded

refused() { # status name pattern argument...
	status=$1 name=$2 pattern=$3
	shift 3
	"$COUNTERSINK" export "$@" >out1 2>err
	is "$? $(wc -l <err) $(cat out1)" "$status 1 " "$name is refused in one line"
	like "$(cat err)" "^countersink: .*$pattern" "$name: the reason is reported"
}
refused 2 'no format' 'no format given' x.pb.gz
refused 2 'an unknown ending' 'x.svg: no format has this ending' -o x.svg x.pb.gz
refused 2 'an unknown format' "'svg' is unknown" -f svg x.pb.gz
refused 2 'two profiles' 'takes one profile' -f folded a b
refused 2 'a comparison that is no page' 'compares in a page only' -f folded --base x.pb.gz x.pb.gz
refused 1 'an unknown event' "no event 'task-clok'.*did you mean 'task-clock'" -f folded -e task-clok x.pb.gz
refused 1 'a missing profile' 'No such file' -f folded nowhere.pb.gz
refused 1 'a place that cannot be written' 'No such file' -o /nowhere/x.html x.pb.gz
refused 1 'a full device' 'No space left' -f html -o /dev/full x.pb.gz
ok 'a failed export leaves no temporary file' sh -c '! ls | grep -q "\.......$"'
echo old >kept.html
head -c 50 x.pb.gz >cut.pb.gz
"$COUNTERSINK" export -o kept.html cut.pb.gz 2>/dev/null
is "$(cat kept.html)" old 'a failed export keeps the old file'
chmod 644 x.pb.gz
like "$(unprivileged "$COUNTERSINK" export -f folded x.pb.gz)" '^_start;.*;main;burn_60' 'an unprivileged user exports'

# ---- at the end of a run ----
"$COUNTERSINK" -q -o run.html -- sh -c 'exit 7' >out1 2>err
is "$? $(cat out1 err)" '7 ' 'run -o x.html: the command and its status are as without us'
like "$(cat run.html)" '<title>(/.*/)?sh</title>' 'run -o x.html writes the page'
ok 'run -o x.html writes the profile beside the page' "$COUNTERSINK" report run.html.pb.gz
"$COUNTERSINK" --no-report -o x.folded -- true 2>err
is "$(cat err)" 'countersink: x.folded is made from the profile, which is in x.folded.pb.gz' "run -o x.folded reports the profile's path"
"$COUNTERSINK" -q -o plain.pb.gz -- true
COUNTERSINK_OUTPUT=$PWD/alone.html LD_PRELOAD=$LIB env true
like "$(cat alone.html)" '<title>env true</title>' 'the library alone writes a page'
ok 'the library alone writes the profile beside the page' "$COUNTERSINK" report alone.html.pb.gz
ok 'a profile as output has no second file beside it' sh -c 'test -e plain.pb.gz && ! test -e plain.pb.gz.pb.gz'

# ---- folded: as the report counts ----
total=$(go tool pprof -raw x.pb.gz 2>/dev/null | awk '/^Locations/ { exit } $2 ~ /^[0-9]+:$/ { s += $2 } END { print s }')
is "$(awk '{ s += $NF } END { printf "%d", s }' folded)" "$total" 'folded: the weights are those of the profile'
"$COUNTERSINK" export -f folded -e samples x.pb.gz >by_count
ok 'folded: -e chooses another event' test "$(awk '{ s += $NF } END { print s }' by_count)" -lt 100000

"$COUNTERSINK" -q -o two.pb.gz -- sh -c '"$1" 100; "$2" 100 >/dev/null' sh "$TARGETS/burn" "$TARGETS/inlines"
"$COUNTERSINK" export -f folded two.pb.gz >two
like "$(cat two)" '^burn;_start;.*;burn_60' 'folded: a profile of several processes has the process as outermost name'
like "$(cat two)" '^inlines;_start;.*;main;' 'folded: each process has its name outermost'

# ---- perf ----
if have perf; then
	"$COUNTERSINK" export -o perf.data x.pb.gz
	perf report --stdio --no-children -g none -i perf.data >perf.txt 2>perf.err
	is $? 0 'perf report reads our perf.data'
	perf script -i perf.data >script.txt 2>/dev/null
	is $? 0 'perf script reads our perf.data'
	like "$(cat script.txt)" '^burn +[0-9]+ +[0-9.]+: +[0-9]+ task-clock' 'perf script has the time and the weight of each sample'
	# Functions and shares, as the report has them: to a tenth of a percent.
	"$COUNTERSINK" report --all x.pb.gz | awk '$NF ~ /^burn_/ { print $NF, $4 }' | sort >ours
	awk '$NF ~ /^burn_/ { print $NF, $1 + 0 }' perf.txt | sort >theirs
	is "$(wc -l <ours)" 3 "perf's table has our functions"
	is "$(join ours theirs | awk '{ d = $2 - $3; if (d < 0.1 && d > -0.1) n++ } END { print n + 0 }')" 3 \
		"perf's shares agree with the report" || diag "$(join ours theirs)"
	perf annotate --stdio -i perf.data burn_60 >annotate.txt 2>/dev/null
	is $? 0 'perf annotate reads our perf.data'
	like "$(cat annotate.txt)" '^ +[0-9]+\.[0-9]+ .*:' 'perf annotate has weights beside instructions'
	like "$(perf buildid-list -i perf.data)" "^[0-9a-f]{40} .*/burn$" 'perf finds the build-id'
	like "$(perf report --stdio --no-children -g none -i perf.data -s sym 2>/dev/null)" '\[start-up: exec and loader\]' \
		'perf names the time without samples'
	like "$(perf script -F ip,sym -i perf.data 2>/dev/null)" 'ffff8000000[0-9a-f]+ \[start-up' \
		'perf has that time at an address without a kernel symbol'
	perf report --header-only -i perf.data >header.txt 2>/dev/null
	like "$(cat header.txt)" "nrcpus online : $(getconf _NPROCESSORS_ONLN)\$" 'the header has the number of CPUs online'
	like "$(cat header.txt)" "nrcpus avail : $(getconf _NPROCESSORS_CONF)\$" 'the header has the number of CPUs configured'
	PYTHONPATH=$SRC/tests/browser python3 -c '
from make_profile import Profile
p = Profile([("task-clock", "nanoseconds")])
nameless, jitted, main = p.function(None, "[anon]"), p.function("jitted", "[anon]"), p.function("main", "[anon]")
p.sample((nameless, jitted, main), [300], pid=1, tid=1, process="made")
p.sample((jitted, main), [100], pid=1, tid=1, process="made")
p.write("nameless.pb.gz")'
	"$COUNTERSINK" export -o perf.data nameless.pb.gz
	is "$(perf report --stdio --no-children -g none -i perf.data -s sym 2>/dev/null | awk '/%/ && !/#/ { print $1, $NF }' | xargs)" \
		'75.00% [unknown] 25.00% jitted' 'code without a name keeps its time'
	like "$(perf report --header-only -i perf.data 2>/dev/null)" 'nrcpus online : 1' \
		'a profile without a number of CPUs has one CPU in the header, as hotspot requires'
else
	skip 'perf report reads our perf.data' 'perf is not installed'
fi

# Real programs: each object's share in perf equals the report's; so do those of the programs' own functions, as the symbol
# tables name them. PREFIX begins the names of those without aliases.
# perf has a row for each object that has a stub of one name, and no name for stubs in .plt.got; pprof leaves the compiler's
# suffixes of a function's parts out. So stubs are left out and a function's parts are added up.
by_name() { # PREFIX <"NAME NANOSECONDS"...
	awk -v prefix="$1" '$1 ~ "^" prefix && $1 !~ /@plt$/ { sub(/[.](part|cold|isra|constprop).*/, "", $1); sum[$1] += $2 }
		END { for (name in sum) printf "%s %d\n", name, sum[name] }' | sort
}

same_shares() { # NAME PREFIX COMMAND...
	name=$1 prefix=$2
	shift 2
	"$COUNTERSINK" -q --frames=native -o real.pb.gz -- "$@" >/dev/null 2>&1
	"$COUNTERSINK" export -o perf.data real.pb.gz
	"$COUNTERSINK" report --by module --csv real.pb.gz | awk -F, '/^\// && $3 > 0 { n = split($1, part, "/"); sum[part[n]] += $3 }
		END { for (name in sum) print name, sum[name] }' | sort >ours
	perf report --stdio --no-children -g none --no-inline -s dso -F period,dso -t '|' -i perf.data 2>/dev/null |
		awk -F'[ |]+' '/^ *[0-9]/ && !/\[/ { last = NF - ($NF == ""); sum[$last] += $(last - 1) }
		END { for (name in sum) print name, sum[name] }' | sort >theirs
	is "$(cat theirs)" "$(cat ours)" "$name: perf report has each object's time to the nanosecond"
	go tool pprof -noinlines -top -nodecount=0 -nodefraction=0 -unit=ns -sample_index=task-clock real.pb.gz 2>/dev/null |
		awk 'NF >= 6 && $1 > 0 { print $6, $1 + 0 }' | by_name "$prefix" >ours
	perf report --stdio --no-children -g none --no-inline -s sym -F period,sym -t '|' -i perf.data 2>/dev/null |
		awk -F'[ |]+' '/^ *[0-9]/ && /\[\.\]/ { print $NF ? $NF : $(NF - 1), ($1 ? $1 : $2) + 0 }' | by_name "$prefix" >theirs
	join ours theirs | awk '{ n += 1; off += $2 != $3 } END { print (n > 1) + 0, off + 0 }' >verdict
	is "$(cat verdict)" '1 0' "$name: perf and pprof agree on its functions" || diag "$(join -a1 -a2 ours theirs)"
}
if have perf && have go; then
	same_shares sqlite3 sqlite3 sqlite3 :memory: 'create table t(a,b); with recursive c(x) as (select 1 union all
		select x+1 from c where x<300000) insert into t select x, x*7%1000 from c; create index i on t(b); select sum(a) from t'
	same_shares python3 '(_?Py)' python3 -c 'import json; [json.loads(json.dumps(list(range(200000)))) for i in range(8)]'
	same_shares 'a C++ program that throws' '(main|_Unwind|__cxa|__gxx|_int|malloc)' "$TARGETS/throwcc" 5000
else
	skip 'perf and pprof agree on real programs' 'perf or go is not installed'
fi

# ---- pprof ----
if have go; then
	"$COUNTERSINK" export -f pprof x.pb.gz >copy.pb.gz
	for mode in -top -tree -tags; do
		is "$(go tool pprof $mode copy.pb.gz 2>&1 | grep -v '^File:')" "$(go tool pprof $mode x.pb.gz 2>&1 | grep -v '^File:')" \
			"go tool pprof $mode reads the copy as the profile itself"
	done
	like "$(go tool pprof -tags copy.pb.gz 2>&1)" 'process: ' 'go tool pprof -tags knows the processes'
	like "$(go tool pprof -top -diff_base x.pb.gz copy.pb.gz 2>&1)" '^Showing nodes accounting for 0' \
		'go tool pprof -diff_base finds no difference from the profile'
else
	skip 'go tool pprof reads the copy' 'go is not installed'
fi

# ---- times and threads ----
COUNTERSINK_TIMELINE=1 "$COUNTERSINK" -q -F 20000 -o threads.pb.gz -- "$TARGETS/manythreads" 400 1 >/dev/null 2>&1
"$COUNTERSINK" export -f speedscope threads.pb.gz >threads.json
python3 - <<'END' >threads.txt
import json
names = [p['name'] for p in json.load(open('threads.json'))['profiles'] if p['name'].endswith(', samples')]
print(len(names) > 20, [name for name in names if ' of manythreads ' not in name])
END
is "$(cat threads.txt)" 'True []' 'each sample of many threads has its thread'

# ---- html: data stays data ----
python3 - <<'END' || exit 1
import gzip
def varint(n):
    out = b''
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])
def field(nr, value):
    if isinstance(value, int):
        return varint(nr << 3) + varint(value)
    return varint(nr << 3 | 2) + varint(len(value)) + value
texts = ['', 'samples', 'count', '</script><script>alert(1)</script>', '<img src=x onerror=alert(2)>', 'plain;name\n"quoted"\\']
p = field(1, field(1, 1) + field(2, 2))
p += field(2, field(1, bytes([1, 2])) + field(2, bytes([7]))) + field(2, field(1, bytes([3])) + field(2, bytes([3])))
for i in (1, 2, 3):
    p += field(4, field(1, i) + field(4, field(1, i))) + field(5, field(1, i) + field(2, i + 2))
for text in texts:
    p += field(6, text.encode())
open('hostile.pb.gz', 'wb').write(gzip.compress(p))
END
"$COUNTERSINK" export -o hostile.html hostile.pb.gz
is "$(grep -c '<script' hostile.html) $(grep -c '<img' hostile.html)" '2 0' 'html: a hostile name is no markup'
like "$(cat hostile.html)" 'u003cimg src=x onerror=alert\(2\)u003e|u003cimg src=x onerror' 'html: a hostile name is in the data'
like "$(cat hostile.html)" "Content-Security-Policy.*default-src 'none'; script-src 'sha256-[A-Za-z0-9+/]{43}='" 'html: the policy is strict'
is "$(grep -cE '(src|href)="?(https?:)?//' hostile.html)" 0 'html: nothing is loaded from another server'
is "$("$COUNTERSINK" export -f folded hostile.pb.gz | tail -n 1)" 'plain:name\x0a"quoted"\ 3' 'folded: a hostile name is one frame'
for format in speedscope firefox; do
	ok "$format: hostile names give valid JSON" sh -c '"$1" export -f "$2" hostile.pb.gz | python3 -m json.tool >/dev/null' \
		sh "$COUNTERSINK" $format
done
done_testing

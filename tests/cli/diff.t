#!/bin/sh
# `countersink diff`: two profiles side by side.
. "$(dirname "$0")/lib.sh"

printf 'main;parse;read 60\nmain;parse 20\nmain;write 20\n' >a.folded
printf 'main;parse;read 60\nmain;parse 60\nmain;flush 80\n' >b.folded
diff() {
	"$COUNTERSINK" diff "$@" 2>&1
}
like "$(diff a.folded b.folded)" '^100 of samples, then 200: \+100.00 % \(a run\)$' 'the verdict is the first line'
like "$(diff a.folded b.folded)" '^  A +a.folded$' 'the second line names A'
is "$(diff a.folded b.folded | grep -E '(flush|parse|write|read|main)$' | tr -s ' ' | sed 's/^ //')" \
	"+80 0 80 0.00 40.00 +40.00 flush
+40 20 60 20.00 30.00 +10.00 parse
-20 20 0 20.00 0.00 -20.00 write
+0 60 60 60.00 30.00 -30.00 read" 'rows are ordered by their change, in either direction'
like "$(diff --per total a.folded b.folded)" '^ +-30 +60 +30 +60.00 +30.00 +-30.00 +read$' '--per total scales B'
like "$(diff --stacks a.folded b.folded)" '^ +\+40 +20 +60 .*main;parse$' '--stacks compares whole stacks'
like "$(diff b.folded a.folded)" '^ +-80 +80 +0 .*flush$' 'the other order gives the opposite signs'
like "$(diff -n 1 a.folded b.folded)" 'in 3 more: --all$' 'left-out rows are reported'
is "$(diff a.folded a.folded | grep -cE ' \+0 ')" 3 'equal profiles have no changes'

# ---- run length
"$COUNTERSINK" merge -q -o twice.pb.gz a.folded a.folded
like "$(diff a.folded twice.pb.gz)" '^100 of samples, then 100: \+0.00 %' 'two merged runs count as one'
diff --per second a.folded b.folded >out
is "$? $(wc -l <out)" '1 1' '--per second without a duration: status 1'
like "$(cat out)" 'profile A has no duration: use --per total' '--per second without a duration is explained'
ok 'a short run is profiled' "$COUNTERSINK" -q -F 1000 -o short.pb.gz -- "$TARGETS/inlines" 500
ok 'a long run is profiled' "$COUNTERSINK" -q -F 1000 -o long.pb.gz -- "$TARGETS/inlines" 2500
like "$(diff --per second short.pb.gz long.pb.gz)" 'inlines +(churn|scramble|rotate)' '--per second compares real profiles'
like "$(diff --by module short.pb.gz long.pb.gz)" ' inlines$' '--by module compares modules'
like "$(diff --by line short.pb.gz long.pb.gz)" 'inlines.cc:[0-9]+ ' '--by line compares lines'

# ---- machine-readable formats
if have python3; then
	diff --json a.folded b.folded >j.json
	is "$(python3 - <<'END'
import json
j = json.load(open("j.json"))
f = {r["name"]: r for r in j["function"]}
print(j["per"], j["a"]["sum"], j["b"]["sum"], f["flush"]["self"]["b"], f["parse"]["total"]["a"], f["parse"]["self"]["points"],
      f["flush"]["self"]["change_percent"], [s["name"] for s in j["stack"]][0])
END
	)" 'run 100 200 80 80 10 None main;flush' '--json prints rows, stacks and functions'
else
	skip '--json prints rows, stacks and functions' 'no python3 here'
fi

# ---- a page
mkdir one two
cp a.folded one/x.folded && cp b.folded two/x.folded
diff --html page.html a.folded b.folded >out
is "$?" 0 '--html writes a page'
is "$(cat out)" "$(diff a.folded b.folded)" '--html prints the table, too'
like "$(cat page.html)" '"sides":\[\{"name":"a.folded".*,\{"name":"b.folded"' 'the page has both names'
diff --html page.html one/x.folded two/x.folded >out
like "$(cat page.html)" '"sides":\[\{"name":"one/x.folded".*,\{"name":"two/x.folded"' 'the page has names that distinguish two files of one name'
diff --html page.html twice.pb.gz a.folded >out
like "$(cat page.html)" '"name":"twice.pb.gz","runs":2,' 'the page has the number of runs'
diff --html /nowhere/x.html a.folded b.folded >out
is "$? $(grep countersink: out)" '1 countersink: /nowhere/x.html: No such file or directory; choose another output file' \
	'a page that cannot be written is reported'

# ---- errors
diff a.folded >out
is $? 2 'one profile: status 2'
diff a.folded nowhere >out
is "$? $(wc -l <out)" '1 1' 'a missing profile is refused in one line'
diff -e cycles a.folded b.folded >out
is "$? $(cat out)" "2 countersink: a.folded has no event 'cycles': choose one that both have with --event" 'an event that one profile lacks is refused'
diff a.folded short.pb.gz >out
is $? 0 'profiles that share an event are compared'
"$COUNTERSINK" diff a.folded b.folded >/dev/full 2>err
is $? 1 'a full device: status 1'
done_testing

#!/bin/bash
# gate --suite --printed: the rates that a harness prints of a case are judged as its figures.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status. What the programs here take is little and differs: only what they
# print is to be judged.
gate() {
	"$COUNTERSINK" gate --seed 1 --threshold 90% --min-share 90% --screen 0 --confirm 16 --max-time 60 "$@" >out.tap 2>err
}

# rows: the reported figures of out.json, with their verdict and the means of both sides.
rows() {
	python3 -c 'import json
for row in json.load(open("out.json"))["cases"][0]["rows"]:
	if row.get("metric") not in (None, "wall", "cpu", "max-rss", "page-faults"):
		print(row["metric"], row["verdict"], *("%.6g" % mean for mean in row["means"]))'
}

# bench FILE: answers as google-benchmark 1.8 does. FILE has the members of its row in JSON, in which @ is a number from 0 to 9 that differs
# between runs, FILE.printed what it prints.
cat >bench <<'END'
#!/bin/sh
for word; do
	case $word in
	--benchmark_list_tests=true) echo BM_A && exit ;;
	--benchmark_out=*) out=${word#*=} ;;
	esac
done
cat "$1.printed"
echo "{\"benchmarks\":[{\"name\":\"BM_A\",\"run_type\":\"iteration\",\"iterations\":5,$(sed "s/@/$(($$ % 10))/g" "$1")}]}" >"$out"
END
# go.test FILE: as the test program of a Go package; FILE has its output.
cat >go.test <<'END'
#!/bin/sh
case $* in
*-test.bench=.*) printf 'BenchmarkA \t5\t 5 ns/op\n' ;;
*) sed "s/@/$(($$ % 10))/g" "$1" ;;
esac
END
chmod +x bench go.test

# ---- google-benchmark
echo '"items_per_second":3.0@e+03,"frames":300@,"per":1.0@e-3,"deep":7,"hit ratio":0.5' >high
echo '"items_per_second":1.0@e+03,"frames":100@,"per":3.0@e-3,"deep":7,"hit ratio":0.5' >low
printf 'BM_A   5 ns   5 ns  5 deep=7 frames=3k/s hit ratio=0.5 items_per_second=3k/s per=1ms\n' | tee high.printed >low.printed
gate --suite=gbench --printed --json out.json --vs './bench high' -- ./bench low
is $? 3 "rates that are lower: status 3" || diag "$(cat out.tap err)"
like "$(cat out.tap)" '"items_per_second regressed: -6[4-7]\.[0-9] % \(95 % CI -6.* 10[0-9.]+ items/s instead of 30[0-9.]+ items/s"' "items_per_second: less is a regression" ||
	diag "$(cat out.tap err)"
like "$(cat out.tap)" '"frames regressed: -6[67]\.[0-9] % ' "so it is of a counter that is printed with /s"
like "$(cat out.tap)" '"per regressed: \+[12][0-9][0-9]\.[0-9] % ' "of one that is printed as a time, more is"
like "$(cat out.tap)" '^# note: reported figures that are not judged, since it is not known whether more or less is better \(.*\): deep, hit ratio$' \
	"counters that are no rates are in one note"
is "$(python3 -c 'import json
rows = json.load(open("out.json"))["cases"][0]["rows"]
print(*sorted((r["metric"], r["more_is_better"]) for r in rows if r.get("metric") in ("items_per_second", "frames", "per", "deep")))')" \
	"('frames', True) ('items_per_second', True) ('per', False)" "JSON has whether more is better"

gate --suite=gbench --vs './bench high' -- ./bench low
unlike "$(cat out.tap)" 'items_per_second|frames|deep' "without --printed there are neither such figures nor a note" || diag "$(cat out.tap)"

gate --suite=gbench --printed --vs './bench low' -- ./bench high
unlike "$(cat out.tap)" '(items_per_second|frames|per) regressed' "higher rates are no regression" || diag "$(cat out.tap)"

# ---- in a history
gate --suite=gbench --printed --history rates.jsonl --anchor v1 --commit c --vs './bench low' -- ./bench high
like "$(cat rates.jsonl)" '"frames":\[[0-9.,]+,"1/s","more"\].*"suite":"gbench","printed":true' "a history has the rates, and that they were asked for" || diag "$(cat err)"
python3 - <<'PY' >made.jsonl
import json
line = json.loads(open("rates.jsonl").readline())
for i in range(40):
    ratio = (1 if i < 20 else 0.5) * (1 + 0.001 * (i * 7 % 5))
    case = dict(line["cases"]["BM_A"], functions={}, figures={"frames": [ratio, ratio * 0.995, ratio * 1.005, 100, "1/s", "more"]})
    print(json.dumps({"v": 1, "commit": "c%d" % i, "committed": "2026-01-%02dT%02d:00:00Z" % (i // 2 + 1, i % 2), "anchor": "v1", "cases": {"BM_A": case}}))
PY
"$COUNTERSINK" history --all made.jsonl >out 2>err
like "$(cat out)" "confirm it: .*PERF_GATE_OPTIONS='--suite=gbench --screen=0 --printed --cases=" "a change of one is confirmed with --printed" || diag "$(cat out err)"

sed 's/"frames":100@,//' low >without
cp low.printed without.printed
gate --suite=gbench --printed --vs './bench low' -- ./bench without
like "$(cat out.tap)" '^# note: a reported figure that is not judged, since the old side alone has it: frames of BM_A$' "a rate of one side alone is in a note" ||
	diag "$(cat out.tap)"
unlike "$(cat out.tap)" 'frames (regressed|unchanged|improved|inconclusive)' "it is not judged, and no zero"

# ---- what cannot be judged
python3 - <<'PY'
rates = {"nan": "NaN", "inf": "Infinity", "huge": "1e999", "below": "-5", "zero": "0", "cpu": "5", "samples": "5", "a#b": "5", "n" * 60: "5", "a b": "5",
         "a_b": "6"}
for name, many in (("odd", 0), ("many", 40)):
    pairs = [] if many else list(rates.items()) + [("nan", "5")]
    pairs += [("r%d" % i, "5") for i in range(many)]
    pairs += [("items_per_second", "1000"), ("items_per_second", "5")]
    open(name, "w").write(",".join('"%s":%s' % pair for pair in pairs))
    open(name + ".printed", "w").write("BM_A " + " ".join("%s=5/s" % pair[0] for pair in pairs) + " " + "x=" * 500000 + "\n")
PY
gate --suite=gbench --printed --json out.json --self-check -- ./bench odd
is $? 0 "odd values: status 0" || diag "$(cat out.tap err)"
is "$(rows)" "$(printf '%s\n' 'a_b unchanged 5 5' 'items_per_second unchanged 1000 1000')" "of equal names the first one counts, and what is odd does not concern it" ||
	diag "$(cat out.tap)"
for note in 'it was not a number from 0 up in every run: nan, inf, huge, below' '0 of what is better when it is more has no ratio: zero' \
	'a figure that is measured has this name: cpu' 'something else of each run has this name in JSON: samples' \
	'its name is not of 1 to 39 letters, digits and -_.%/ or blanks: a#b, n+' 'another reported figure has its name: a_b'; do
	like "$(cat out.tap)" "^# note: .*not judged, since $note\$" "a note: ${note:0:60}" || diag "$(cat out.tap)"
done
gate --suite=gbench --printed --json out.json --self-check -- ./bench many
is "$?:$(rows | wc -l)" 0:16 "forty rates: status 0, and sixteen have rows"
like "$(cat out.tap)" '^# note: a reported figure that is not judged, since there are too many figures: r16$' "the first one without room is in a note" || diag "$(cat out.tap)"

echo '"":5,"items_per_second":1000' >nameless
echo 'BM_A =5/s' >nameless.printed
gate --suite=gbench --printed --json out.json --self-check -- ./bench nameless
is "$?:$(rows)" "0:items_per_second unchanged 1000 1000" "a counter without a name is passed over" || diag "$(cat out.tap err)"

# ---- go test
line='BenchmarkA-2 \t5\t 5 ns/op\t %s MB/s\t %s p99-ns\t %s req/s\t 3 deep\t 1,5 euro/s\t NaN bad/s\t +Inf worse/s\t 5 a-very-long-unit/s\t 0 B/op\n'
{
	printf 'Unit p99-ns better=lower\nUnit deep\nUnit \n'
	head -c 1000000 /dev/zero | tr '\0' 'x'
	echo
} | tee fast >slow
printf "$line" 30.0@ 100@ 3e+03 >>fast
printf "$line" 10.0@ 300@ 1e+03 >>slow
gate --suite=gotest --printed --json out.json --vs './go.test fast' -- ./go.test slow
is $? 3 "go test: rates that are lower: status 3" || diag "$(cut -c1-300 out.tap err)"
like "$(cat out.tap)" '"throughput regressed: -6[4-7]\.[0-9] % .* 10\.[0-9]* MB/s instead of 30\.[0-9]* MB/s"' "MB/s: less is a regression" || diag "$(cat out.tap)"
like "$(cat out.tap)" '"req/s regressed: -66\.7 % .* 1000 req/s instead of 3000 req/s"' "so it is of a unit that ends with /s"
like "$(cat out.tap)" '"p99-ns regressed: \+[12][0-9][0-9]\.[0-9] % ' "of a unit that is declared as better when lower, more is"
like "$(cat out.tap)" '^# note: .* whether more or less is better \(.*\): deep$' "an undeclared unit is in a note"
like "$(cat out.tap)" '^# note: .*, since it was not a number from 0 up in every run: euro/s, bad/s, worse/s$' "numbers with a comma, NaN and Inf are in a note"
like "$(cat out.tap)" '^# note: .*, since its unit is longer than 15 bytes: a-very-long-unit/s$' "a unit that is too long is in a note"
like "$(rows)" '^allocated unchanged 0 0$' "0 B/op is a figure, with or without --printed"

# ---- Go itself
if command -v go >/dev/null; then
	mkdir go
	cat >go/made_test.go <<-'GO'
		package made

		import (
			"os"
			"strconv"
			"testing"
		)

		var sink int

		func BenchmarkA(b *testing.B) {
			steps, _ := strconv.Atoi(os.Getenv("STEPS"))
			for i := 0; i < b.N; i++ {
				for k := 0; k < 100; k++ {
					sink += k
				}
			}
			b.SetBytes(4096)
			b.ReportMetric(float64(steps), "steps/s")
			b.ReportMetric(5, "deep")
		}
	GO
	(cd go && GO111MODULE=off GOCACHE=$(go_cache) go test -c -o ../real.test . >../go.out 2>&1) || diag "$(cat go.out)"
	gate --suite=gotest --printed --json out.json --vs 'env STEPS=300 ./real.test' -- env STEPS=100 ./real.test
	like "$(cat out.tap)" '"steps/s regressed: -66\.7 % .* 100 steps/s instead of 300 steps/s"' "Go's own ReportMetric() is judged" || diag "$(cat out.tap err)"
	like "$(rows)" '^throughput [a-z]+ [0-9.e+]+ [0-9.e+]+$' "Go's own SetBytes() is, too"
	like "$(cat out.tap)" '^# note: .* whether more or less is better \(.*\): deep$' "what has no known direction is in a note"
else
	skip "Go's own figures" "Go is not installed here"
fi

# ---- google-benchmark itself
cat >real.cc <<'END'
#include <benchmark/benchmark.h>
#include <cstdlib>
static void BM_A(benchmark::State &state)
{
	for (auto _ : state)
		benchmark::DoNotOptimize(state.iterations());
	double steps = atof(getenv("STEPS"));
	state.SetItemsProcessed(state.iterations() * steps);
	state.counters["frames"] = benchmark::Counter(state.iterations() * steps, benchmark::Counter::kIsRate);
	state.counters["deep"] = 5;
}
BENCHMARK(BM_A);
BENCHMARK_MAIN();
END
if echo '#include <benchmark/benchmark.h>' | g++ -E -x c++ - >/dev/null 2>&1; then
	ok "a program with google-benchmark is built" g++ -O1 -o real real.cc -lbenchmark -lpthread
	gate --suite=gbench --printed --vs 'env STEPS=1000000 ./real' -- env STEPS=1000 ./real
	like "$(cat out.tap)" '"items_per_second regressed: -9[0-9]\.[0-9] % .* items/s"' "its items_per_second are judged" || diag "$(cat out.tap err)"
	like "$(cat out.tap)" '"frames regressed: -9[0-9]\.[0-9] % ' "its own counter of a rate is, too"
	like "$(cat out.tap)" '^# note: .* whether more or less is better \(.*\): deep$' "its counter that is none is in a note"
else
	skip "google-benchmark's own figures" "google-benchmark is not installed here"
fi

"$COUNTERSINK" gate --printed --vs true -- true >out.tap 2>err
is $? 2 "--printed without --suite: status 2"
like "$(cat err)" '^countersink: option --printed: it is for suites of benchmarks' "the reason is reported"
done_testing

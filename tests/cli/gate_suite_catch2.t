#!/bin/bash
# gate --suite of Catch2's benchmarks, with Catch2 itself.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
mkdir own old new
export TMPDIR=$TMP/own

# gate ARGUMENT...: TAP in out.tap, messages in err; returns its status.
gate() {
	"$COUNTERSINK" gate "$@" >"$TMP/out.tap" 2>"$TMP/err"
}

cat >bench.cc <<'CC'
#define CATCH_CONFIG_MAIN
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#if __has_include(<catch2/catch.hpp>)
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>
#endif
#include <fstream>
#include <unistd.h>

/* More work in the directory that has such a file. */
static unsigned more()
{
	unsigned percent = 0;

	std::ifstream("percent") >> percent;
	return percent;
}

__attribute__((noinline)) unsigned hash_of(unsigned n)
{
	unsigned h = 1;

	for (unsigned i = 0; i < n; i++) {
		h = h * 31 + i;
		asm volatile("" : "+r"(h));
	}
	return h;
}

__attribute__((noinline)) unsigned sum_of(unsigned n)
{
	unsigned h = 1;

	for (unsigned i = 0; i < n; i++) {
		h += i;
		asm volatile("" : "+r"(h));
	}
	return h;
}

TEST_CASE("no benchmark")
{
	REQUIRE(sum_of(1) == 1);
}

TEST_CASE("two")
{
	unsigned n = 200 * (100 + more());

	BENCHMARK("sum, same") { return sum_of(20000); };
	BENCHMARK("hash <n>") { return hash_of(n); };
}

TEST_CASE("hidden, \"[x]\" ~\\ &", "[!benchmark]")
{
	BENCHMARK("of it") { return sum_of(300); };
}

TEST_CASE("looped")
{
	for (unsigned i = 1; i < 3; i++)
		BENCHMARK("size " + std::to_string(i)) { return sum_of(100 * i); };
}

TEST_CASE("star")
{
	BENCHMARK("b") { return sum_of(100); };
}

TEST_CASE("sta*")
{
	BENCHMARK("b") { return sum_of(100); };
}

TEST_CASE("fails")
{
	BENCHMARK("b") { return sum_of(100); };
	REQUIRE(sum_of(1) == 2);
}

TEST_CASE("throws")
{
	BENCHMARK("b") { return sum_of(1) == 1 ? throw std::runtime_error("it <broke>") : 1; };
}

TEST_CASE("zz hangs")
{
	unsigned calls = 0;

	/* One sample, by which the cases are listed, makes fewer. */
	BENCHMARK("b") { return ++calls > 2000000 ? pause() : 1; };
}

TEST_CASE("zz crashes")
{
	BENCHMARK("b") { return more() ? *(volatile int *)16 : 1; };
}
CC
c++ -std=c++17 -g -O1 -o old/bench bench.cc -lCatch2 2>link.err || c++ -std=c++17 -g -O1 -o old/bench bench.cc 2>err || {
	grep -q '#include <catch2' err && skip_all "Catch2 is not installed here (make check-suites installs it)"
	diag "$(cat err)"
}
cp old/bench new/bench
echo 60 >new/percent
cd new || exit 1

# ---- what would be run
gate --suite --list-cases --vs-dir ../old -- ./bench
is $? 0 "--list-cases: status 0" || diag "$(cat ../err)"
is "$(grep -v "^$(printf '\t')" ../out.tap | grep -v '^zz' | tr '\n' ';')" \
	'two/sum, same;two/hash <n>;looped/size 1;looped/size 2;star/b;sta*/b;fails/b;throws/b;hidden, "[x]" ~\ &/of it;' \
	"Catch2 is found by asking; its benchmarks are listed, hidden ones, too" || diag "$(cat ../out.tap)"
like "$(cat ../out.tap)" "new: ./bench 'hidden\\\\, \\\\\"\\\\\[x\\\\\]\\\\\" \\\\~\\\\\\\\ &' --reporter=xml" "a name is one word, in which a backslash is before what Catch2 reads otherwise" ||
	diag "$(grep -A2 hidden ../out.tap)"
gate --suite --list-cases --self-check -- ./bench two
is "$(grep -v "^$(printf '\t')" ../out.tap | tr '\n' ';')" 'two/sum, same;two/hash <n>;' "the command's own choice of tests is kept"

# ---- a slower one beside one that is not, in one test case
gate --suite --seed 5 --threshold 25% --screen 0 --confirm 8 --run-time 100ms --max-time 200 --cases '^two/hash' --vs-dir ../old -- ./bench
is $? 3 "a slower function: status 3" || diag "$(cat ../out.tap ../err)"
like "$(sed -n 2p ../out.tap)" '^# 1 of 1 case slower: two/hash <n> \(hash_of \+[0-9.]+ %\)$' "the case is named, with its function" || diag "$(cat ../out.tap)"
unlike "$(cat ../out.tap)" 'sum_of' "what another benchmark of the same test case does is not in it"
unlike "$(cat ../out.tap)" 'steady_clock' "what Catch2 spends on its clock is not in it"
change=$(sed -n 's/^not ok 1.*hash_of in bench regressed: +\([0-9]*\).*/\1/p' ../out.tap)
ok "an iteration costs 60 % more, whatever number of them was made (+$change %)" test "${change:-0}" -ge 50 -a "${change:-0}" -le 70

# ---- cases that err
gate --suite --seed 5 --screen 0 --confirm 2 --threshold 90% --run-time 100ms --max-time 100 --cases '^(sta|hidden|fails|throws|zz)' --vs-dir ../old -- ./bench
is $? 1 "cases in error, and none slower: status 1" || diag "$(cat ../err)"
like "$(cat ../out.tap)" '^# note: the new side ended its list early: signal 11' "a list that a crash ends is noted"
like "$(cat ../out.tap)" "^not ok [0-9]+ - sta\*/b: error: the old side: its name chooses another test case, too: 'star'$" "a name that Catch2 takes for more than one is an error"
like "$(cat ../out.tap)" '^not ok [0-9]+ - fails/b: error: the old side: status 1' "a test case that fails is an error of its case"
like "$(cat ../out.tap)" '^not ok [0-9]+ - throws/b: error: the old side: .*it <broke>' "what a benchmark throws is an error of its case"
like "$(cat ../out.tap)" '^not ok [0-9]+ - zz crashes/b: error: the new side: signal 11' "a crash on one side is an error of its case"
unlike "$(grep star/b ../out.tap)" 'error' "the others are judged"
like "$(cat ../out.tap)" '^not ok [0-9]+ - zz hangs/b: error: the old side: it did not end within [0-9]+ s, and was killed$' "a benchmark that does not end is an error of its case"
like "$(cat ../out.tap)" '^ok [0-9]+ - hidden, "\[x\]" ~\\\\ &/of it: ' "a name with commas, brackets, quotes and a backslash is run"

gate --suite --screen 0 --confirm 6 --run-time 200ms --self-check --cases 'looped/size 1' -- ./bench looped
like "$(cat ../out.tap)" '^not ok 1 - looped/size 1: error: .*cannot be distinguished: give each a test case of its own$' "benchmarks of one function are an error"

# ---- nothing to compare
gate --suite --self-check -- ./bench 'no benchmark'
is $? 4 "no benchmark: status 4" || diag "$(cat ../out.tap ../err)"
strip -o stripped bench
gate --suite --screen 0 --confirm 2 --self-check -- ./stripped star
like "$(cat ../out.tap)" '^not ok 1 - star/b: error: no sample of a run is below the benchmark.s function: is the program stripped\?$' \
	"a program without symbols is an error" || diag "$(cat ../err)"
is "$(ls ../own)" "" "no directory is left"

done_testing

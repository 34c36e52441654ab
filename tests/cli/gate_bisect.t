#!/bin/bash
# scripts/perf-bisect.sh with a suite: the commit that made one case slower, by the example of the manual page, in a repository
# of eight commits of a C suite that speaks the protocol of google-benchmark.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
have git || skip_all "no git here"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org \
	GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org

mkdir repository
cat >repository/bench.c <<'END'
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "steps.h"

volatile uint64_t sink;
#define WORKER(name, factor) \
	__attribute__((noipa)) static void name(uint64_t n) \
	{ \
		uint64_t x = sink; \
		while (n--) \
			x = x * factor + n; \
		sink = x; \
	}
WORKER(compare, 3)
WORKER(exchange, 5)
WORKER(mix, 7)

static void sort(void)
{
	compare(COMPARE_STEPS);
	exchange(40000);
	SORT_ENDS;
}

static void hash(void)
{
	mix(MIX_STEPS);
	exchange(40000);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {{SORT_NAME, sort}, {"Hash", hash}};

int main(int argc, char **argv)
{
	const char *filter = ".", *path = NULL;
	unsigned long n = 1;
	int list = 0;
	regex_t regex;

	for (int i = 1; i < argc; i++) {
		list |= !strncmp(argv[i], "--benchmark_list_tests", 22);
		filter = strncmp(argv[i], "--benchmark_filter=", 19) ? filter : argv[i] + 19;
		path = strncmp(argv[i], "--benchmark_out=", 16) ? path : argv[i] + 16;
		n = strncmp(argv[i], "--benchmark_min_time=", 21) ? n : strtoul(argv[i] + 21, NULL, 10);
	}
	if (regcomp(&regex, filter, REG_EXTENDED | REG_NOSUB))
		return 1;
	for (int nr = 0; nr < 2; nr++) {
		if (regexec(&regex, cases[nr].name, 0, NULL, 0))
			continue;
		if (list) {
			puts(cases[nr].name);
			continue;
		}
		for (unsigned long i = 0; i < n; i++)
			cases[nr].run();
		if (path) {
			FILE *out = fopen(path, "w");

			fprintf(out, "{\"benchmarks\":[{\"name\":\"%s\",\"run_type\":\"iteration\",\"iterations\":%lu}]}",
				cases[nr].name, n);
			fclose(out);
		}
	}
	return 0;
}
END
printf 'bench: bench.c steps.h\n\tgcc -O2 -g -o bench bench.c\n' >repository/Makefile
echo bench >repository/.gitignore

# commit NR NAME COMPARE_STEPS MIX_STEPS SORT_ENDS: a commit, by a name in the messages and as a tag.
commit() {
	printf '/* %s */\n#define SORT_NAME "%s"\n#define COMPARE_STEPS %s\n#define MIX_STEPS %s\n#define SORT_ENDS %s\n' "$@" >repository/steps.h
	git -C repository add -A
	git -C repository commit -q -m "Commit $1"
	git -C repository tag "c$1"
}
git -C repository init -q -b main .
commit 1 Sort/1000 100000 100000 '(void)0'
git -C repository tag v1.0
commit 2 Sort/1000 100000 100000 '(void)0'
commit 3 Sort/1000 100000 150000 '(void)0' # another case
commit 4 Sort/1000 100000 150000 'does not build'
commit 5 Sort/1000 100000 150000 '(void)0'
commit 6 Sort/1000 130000 150000 '(void)0' # the one
commit 7 Sort/1000 130000 150000 'abort()'
commit 8 Sort/1000 130000 150000 '(void)0'

# ---- the manual's example
sed -n '/^\.SS The commit that made/,/^\.fi/{/^\.nf/,/^\.fi/{/^\./d;s/\\-/-/g;p;};}' "$SRC/launcher/man/countersink-gate.1" >example
is "$(wc -l <example)" 3 "the manual page has an example" || diag "$(cat example)"
(cd repository && PATH=$SRC/scripts:$PATH && . ../example) >bisect.out 2>&1
is $? 0 "git bisect runs to its end" || diag "$(tail -40 bisect.out)"
like "$(cat bisect.out)" "^$(git -C repository rev-parse c6) is the first bad commit" "git bisect finds the commit that made the case slower" ||
	diag "$(grep -v '^ ' bisect.out)"
like "$(cat bisect.out)" '^not ok 1 - Sort/1000: compare in bench regressed: \+' "its output names the case and the function"
is "$(cat repository/.git/perf-bisect/questions)" "$(printf ' - Sort/1000: \t    - "compare in bench ')" "it looks for the function of that case alone"

# ---- each answer, while git bisects
# answer COMMIT: what perf-bisect.sh exits with there.
answer() {
	(cd repository && git checkout -q -f "$1" && PERF_GATE_OPTIONS='--suite --cases=^Sort --threshold=10%' "$SRC/scripts/perf-bisect.sh" v1.0 ./bench) \
		>answer.out 2>answer.err
}
answer c3
is $? 0 "a commit with another case slower: status 0" || diag "$(cat answer.out answer.err)"
answer c4
is $? 125 "a commit that does not build: status 125"
answer c7
is $? 125 "a commit whose case fails: status 125"
like "$(cat answer.out)" '^not ok 1 - Sort/1000: error: the new side: signal 6' "the case's error is reported"
like "$(cat answer.err)" 'perf-bisect: [0-9a-f]+ cannot be compared with v1.0: skipped' "the commit is skipped with a reason"
answer c8
is $? 1 "a commit with the slower case: status 1" || diag "$(cat answer.out answer.err)"
git -C repository checkout -q c8
commit 9 Order/1000 100000 150000 '(void)0'
answer c9
is $? 125 "a commit without the case: status 125"

# ---- counted instructions
if have valgrind; then
	counted() {
		(cd repository && git checkout -q -f "$1" && PERF_GATE_OPTIONS='--suite --cases=^Sort --deterministic=callgrind --run-time=1ms --threshold=3%' \
			"$SRC/scripts/perf-bisect.sh" v1.0 ./bench) >answer.out 2>answer.err
	}
	(cd repository && git bisect reset && git bisect start c8 v1.0) >/dev/null 2>&1
	counted c6
	is $? 1 "counted instructions: the commit with the slower case has status 1" || diag "$(cat answer.out answer.err)"
	like "$(cat answer.out)" '^not ok 1 - Sort/1000: compare in bench regressed: \+30\.0 %' "its output names the function"
	counted c5
	is $? 0 "the one before it has status 0" || diag "$(cat answer.out answer.err)"
	counted c7
	is $? 125 "a commit whose case fails: status 125"
else
	skip "counted instructions" "no valgrind here"
fi

# ---- what cannot be asked
answered() {
	(cd repository && git bisect reset && git bisect start "$1" v1.0 && git checkout -q -f c2 &&
		PERF_GATE_OPTIONS="--suite $3" PERF_GATE_FUNCTION=$2 "$SRC/scripts/perf-bisect.sh" v1.0 ./bench) >answer.out 2>answer.err
}
answered c8 '' '--cases=^None'
is $? 128 "no case is chosen: status 128"
answered c7 '' '--cases=^Sort'
is $? 128 "the case fails in the bad commit: status 128"
like "$(cat answer.err)" 'perf-bisect: the bad commit cannot be compared with v1.0' "it is reported"
answered c8 compare '--threshold=10%'
is $? 0 "one function, in whichever case it is slower: status 0 before it is" || diag "$(cat answer.out answer.err)"
is "$(cat repository/.git/perf-bisect/questions)" "$(printf ' - Sort/1000: \t    - "compare in bench ')" "it is looked for in that case"

# ---- answers of made points
cat >made.tap <<'END'
not ok 1 - a: b: beta in x regressed: +9.0 % (95 % CI +8.0 to +10.0, q = 1e-09), 2 ms instead of 1 ms
  ---
  rows:
    - "wall time inconclusive: +9.0 % (95 % CI +8.0 to +10.0, q = 0.2), 2 ms instead of 1 ms"
    - "CPU time regressed: +9.0 % (95 % CI +8.0 to +10.0, q = 1e-09), 2 ms instead of 1 ms"
    - "beta in x regressed: +9.0 % (95 % CI +8.0 to +10.0, q = 1e-09), 2 ms instead of 1 ms (/a.c:3)"
    - "gamma at y.py:3 regressed: +9.0 % (95 % CI +8.0 to +10.0, q = 1e-09), 2 ms instead of 1 ms"
  ...
not ok 2 - c: CPU time regressed: +9.0 % (95 % CI +8.0 to +10.0, q = 1e-09), 2 ms instead of 1 ms
  ---
  rows:
    - "CPU time regressed: +9.0 % (95 % CI +8.0 to +10.0, q = 1e-09), 2 ms instead of 1 ms"
    - "beta in x inconclusive: +9.0 % (95 % CI +8.0 to +10.0, q = 0.2), 2 ms instead of 1 ms"
  ...
not ok 3 - d: error: signal 11
not ok 4 - e: inconclusive: no time was left to confirm it (3 pairs, p = 0.1)
ok 5 - f: CPU time unchanged: +0.1 % (95 % CI -0.2 to +0.2, q = 0.9), 1 ms instead of 1 ms
1..5
END
. "$SRC/scripts/lib/suite_questions.sh"
is "$(slower_rows '' <made.tap)" "$(printf ' - a: b: \t    - "beta in x \n - a: b: \t    - "gamma at y.py:\n - c: \t    - "CPU time \n')" \
	"questions: the slower functions of each slower case, else its figures; of a function of a script no line"
is "$(slower_rows '    - "beta in ' <made.tap)" "$(printf ' - a: b: \t    - "beta in x ')" "questions about one function"
is "$(slower_rows "$(function_question gamma | cut -f2)" <made.tap)" "$(printf ' - a: b: \t    - "gamma at y.py:')" "questions about one function of a script"
# asked STATUS NAME QUESTION...
asked() {
	local status=$1 name=$2
	shift 2
	printf '%b\n' "$@" >questions
	answer_suite questions <made.tap >/dev/null
	is $? "$status" "$name"
}
asked 1 "a slower function of a case: yes" ' - a: b: \t    - "beta in x '
asked 1 "a slower function of a script, which was at another line: yes" ' - a: b: \t    - "gamma at y.py:'
asked 1 "a function of a script, in whichever case: yes" "$(function_question gamma)"
asked 1 "of two questions one is yes" ' - f: \t    - "beta in x ' ' - a: b: \t    - "gamma at y.py:3 '
asked 0 "another function of it: no" ' - a: b: \t    - "alpha in x '
asked 2 "an open function of another case: open" ' - c: \t    - "beta in x '
asked 1 "a function in whichever case and module: yes" "$(function_question beta)"
asked 3 "no function with such a beginning, but a case in error: an error" "$(function_question bet)"
asked 3 "a case in error: an error" ' - d: \t    - "beta in x '
asked 2 "a case that was not confirmed: open" ' - e: \t    - "beta in x '
asked 0 "a case that passes: no" ' - f: \t    - "CPU time '
asked 3 "a case that is not there: an error" ' - g: \t    - "CPU time '
done_testing

#!/bin/bash
# The gate in CI: scripts/perf-gate.sh, what the example workflows run, and git bisect, in repositories made for it.
. "$(dirname "$0")/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
have git || skip_all "no git here"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org \
	GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org

# write_program SCAN_STEPS COMMENT: a program with three functions that work.
write_program() {
	cat >bench.c <<END
/* $2 */
#include <stdint.h>
volatile uint64_t sink;
#define WORKER(name, factor) \\
	__attribute__((noipa)) static void name(uint64_t n) \\
	{ \\
		uint64_t x = sink; \\
		while (n--) \\
			x = x * factor + n; \\
		sink = x; \\
	}
WORKER(read_input, 3)
WORKER(scan, 5)
WORKER(print, 7)
int main(void)
{
	read_input(30000000);
	scan($1);
	print(20000000);
	return 0;
}
END
}
printf 'bench: bench.c\n\tgcc -O2 -g -o bench bench.c\n' >Makefile.bench

# ---- 32 commits, of which one slows a function
planted=$((RANDOM % 30 + 2))
mkdir bisected
(
	cd bisected && git init -q -b main . && cp ../Makefile.bench Makefile && echo bench >.gitignore
	for n in $(seq 1 32); do
		write_program "$([ "$n" -lt "$planted" ] && echo 20000000 || echo 32000000)" "commit $n"
		git add -A
		git commit -q -m "Commit $n"
		git tag "c$n"
	done
) || exit 1
(
	cd bisected && git bisect start c32 c1 >/dev/null &&
		PERF_GATE_FUNCTION=scan PERF_GATE_OPTIONS='--runs 10 --threshold 10%' \
			git bisect run "$SRC/scripts/perf-bisect.sh" c1 ./bench
) >bisect.out 2>&1
is $? 0 "git bisect runs to its end" || diag "$(tail -20 bisect.out)"
like "$(cat bisect.out)" "^$(git -C bisected rev-parse "c$planted") is the first bad commit" \
	"it finds the planted commit among 32 (the ${planted}th)"
like "$(cat bisect.out)" '^not ok [0-9]+ - scan in bench regressed: \+' "and the function is named on the way"
echo broken >bisected/bench.c
(cd bisected && "$SRC/scripts/perf-bisect.sh" c1 ./bench) >/dev/null 2>&1
is $? 125 "what does not build is skipped"
(cd bisected && "$SRC/scripts/perf-bisect.sh" no_such_commit ./bench) >/dev/null 2>&1
is $? 128 "no such commit stops it"

# ---- two branches, as CI sees them
mkdir origin
(
	cd origin && git init -q -b main . && cp ../Makefile.bench Makefile && printf 'bench\nperf-gate/\n' >.gitignore
	write_program 20000000 "as it was"
	git add -A && git commit -q -m "As it was" && git checkout -q -b slower
	write_program 40000000 "slower"
	git commit -q -a -m "Slower" && git checkout -q -b same main
	write_program 20000000 "with another comment"
	git commit -q -a -m "Another comment"
) || exit 1
git clone -q origin work

# steps FILE KEY: the lines of the block "KEY: |" that has perf-gate.sh in it.
step_of_github() {
	awk '/run: \|/ { block = ""; inside = 1; next }
		inside && /^          / { block = block substr($0, 11) "\n"; next }
		inside { if (block ~ /perf-gate\.sh/) printf "%s", block; inside = 0 }' "$1"
}
step_of_gitlab() {
	awk '/^  script:/ { inside = 1; next } inside && !/^    - / { inside = 0 } inside { sub(/^    - /, ""); print }' "$1" |
		sed "s/^'\(.*\)'\$/\1/"
}
step_of_github "$SRC/scripts/ci/github-perf-gate.yml" >github.sh
step_of_gitlab "$SRC/scripts/ci/gitlab-perf-gate.yml" >gitlab.sh
is "$(grep -c perf-gate.sh github.sh) $(grep -c perf-gate.sh gitlab.sh)" "1 1" "the examples call perf-gate.sh"
# Where the examples have countersink from; and not for longer than it takes.
mkdir -p runner
ln -s "$SRC" runner/countersink
sed -i 's/--max-time=300/--runs=10/' github.sh gitlab.sh

for branch in slower same; do
	want=$([ $branch = slower ] && echo 3 || echo 0)
	git -C work checkout -q $branch
	rm -f summary.md
	(cd work && RUNNER_TEMP=$TMP/runner GITHUB_BASE_REF=main GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=$TMP/summary.md \
		bash -e "$TMP/github.sh") >github.out 2>github.err
	is $? "$want" "GitHub's step with the branch $branch: status $want" || diag "$(cat github.out github.err)"
	like "$(cat summary.md)" '^### countersink gate: ' "$branch: the summary is written"
	ok "$branch: the results are there" test -s work/perf-gate/gate.xml -a -s work/perf-gate/gate.json \
		-a -s work/perf-gate/gate.md -a -s work/perf-gate/gate.html
	[ $branch = same ] || like "$(cat github.err)" '^::error file=bench.c,line=1[0-9],title=countersink gate::scan in bench' \
		"the annotation names file and line of the checkout"
done
git -C work checkout -q slower
(cd work && CI_BUILDS_DIR=$TMP/runner CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main sh -e "$TMP/gitlab.sh") >gitlab.out 2>&1
is $? 3 "GitLab's script finds the regression" || diag "$(cat gitlab.out)"
if have xmllint; then
	ok "GitLab's report follows the schema" xmllint --noout --schema "$SRC/tests/gate/junit.xsd" work/perf-gate/gate.xml
else
	skip "GitLab's report follows the schema" "no xmllint here"
fi
is "$(git -C work worktree list | wc -l)" 1 "no worktree is left"
echo broken >work/bench.c
(cd work && "$SRC/scripts/perf-gate.sh" origin/main ./bench) >broken.out 2>&1
is $? 1 "a tree that does not build is an error"
like "$(cat broken.out)" 'the working tree does not build' "which is said"
"$SRC/scripts/perf-gate.sh" >/dev/null 2>&1
is $? 2 "no arguments: usage"
if have python3 && python3 -c 'import yaml' 2>/dev/null; then
	ok "the examples are YAML" python3 -c 'import sys, yaml; [yaml.safe_load(open(f)) for f in sys.argv[1:]]' \
		"$SRC"/scripts/ci/*.yml
else
	skip "the examples are YAML" "no reader of YAML here"
fi

done_testing

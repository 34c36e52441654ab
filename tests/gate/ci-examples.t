#!/bin/bash
# The examples for CI, as they are: each step of both jobs, in a clone of a small project; this repository, as it is
# committed, is what they clone, install the dependencies of, build and use. Their schemas and the formats that come out are
# held against readers from npm. NPM: a directory with these (tests/gate/package.json).
. "$(dirname "$0")/../cli/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
git -C "$SRC" rev-parse -q --verify HEAD >/dev/null 2>&1 || skip_all "this is no git repository"
export GIT_CONFIG_GLOBAL=$TMP/gitconfig GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org \
	GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
bin=$NPM/node_modules/.bin

# ---- the files themselves
ok "GitHub's workflow follows its schema" "$bin/action-validator" "$SRC/scripts/ci/github-perf-gate.yml"
ok "GitHub's workflow for a history follows its schema" "$bin/action-validator" "$SRC/scripts/ci/github-perf-history.yml"
sed 's/runs-on:/runs_on:/' "$SRC/scripts/ci/github-perf-gate.yml" >wrong.yml
"$bin/action-validator" wrong.yml >/dev/null 2>&1
isnt $? 0 "which one with a wrong word does not"

# ---- a project, and where it and countersink are fetched from
git config --global --add safe.directory '*'
git config --global url."file://$TMP/countersink.git".insteadOf https://example.org/countersink
git config --global url."file://$TMP/project".insteadOf https://example.org/project
git init -q --bare -b main countersink.git
git -C "$SRC" push -q "$TMP/countersink.git" HEAD:refs/heads/main || exit 1
mkdir project
(
	cd project && git init -q -b main . && printf 'bench\nperf-gate/\n' >.gitignore
	printf 'bench: bench.c\n\tgcc -O2 -g -o bench bench.c\n' >Makefile
	cat >bench.c <<'END'
#include <stdint.h>
volatile uint64_t sink;
__attribute__((noipa)) static void parse(uint64_t n)
{
	uint64_t x = sink;
	while (n--)
		x = x * 3 + n;
	sink = x;
}
__attribute__((noipa)) static void solve(uint64_t n)
{
	uint64_t x = sink;
	while (n--)
		x = x * 5 + n;
	sink = x;
}
int main(void)
{
	parse(60000000);
	solve(40000000);
	return 0;
}
END
	git add -A && git commit -q -m "As it was"
	git checkout -q -b slower && sed -i 's/solve(40000000)/solve(60000000)/' bench.c && git commit -q -a -m "Slower"
	git checkout -q -b same main && echo "/* a comment */" >>bench.c && git commit -q -a -m "A comment"
	git checkout -q main
) || exit 1

# job CI BRANCH: as the CI runs it on a merge request of the branch.
job() {
	rm -rf builds/project summary.md artifacts
	mkdir -p builds artifacts
	git clone -q https://example.org/project builds/project
	git -C builds/project checkout -q --detach "origin/$2"
	(
		cd builds/project && ARTIFACTS=$TMP/artifacts GITHUB_BASE_REF=main GITHUB_STEP_SUMMARY=$TMP/summary.md \
			CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main COUNTERSINK_REPOSITORY=https://example.org/countersink \
			PATH=${PATH#"$BUILD/bin:"} "$SRC/tests/gate/ci-job" "$1" "$SRC/scripts/ci/$1-perf-gate.yml"
	) >job.out 2>job.err
}

# GitHub's command: there is no comment to replace at first, and a fork's token may write none.
mkdir commands
cat >commands/gh <<'END'
#!/bin/sh
[ "$1 $2 $3 $GH_TOKEN" = "pr comment 7 a-token" ] || exit 9
[ "$4" != --edit-last ] || [ -e "$COMMENT" ] || exit 1
while [ "$1" != --body-file ]; do
	shift
done
cp "$2" "$COMMENT"
END
chmod +x commands/gh
export COMMENT=$TMP/comment.md PATH=$TMP/commands:$PATH

for ci in github gitlab; do
	rm -f "$COMMENT"
	job $ci slower
	is $? 3 "$ci: a branch that is slower fails" || diag "$(tail -50 job.out job.err)"
	like "$(cat job.out)" '^not ok [0-9]+ - solve in bench regressed: \+' "$ci: and names the function"
	unlike "$(cat job.out)" '^not ok [0-9]+ - parse in' "$ci: that one alone"
	ok "$ci: JUnit follows the schema" xmllint --noout --schema "$SRC/tests/gate/junit.xsd" artifacts/perf-gate/gate.xml
	"$bin/tap-parser" -t -f <artifacts/perf-gate/gate.tap >parsed 2>&1
	unlike "$(cat parsed)" 'tapError|Unexpected|invalid' "$ci: npm's tap-parser takes the TAP"
	like "$(cat parsed)" 'solve in bench regressed' "$ci: and sees the failure"
	if [ $ci = github ]; then
		like "$(cat job.err)" '^::error file=bench.c,line=1[0-9],title=countersink gate::solve in bench' \
			"github: the annotation is at the function"
		like "$(cat summary.md)" 'regressed \| solve in bench' "github: the summary has it"
		ok "github: the comment is the same" cmp -s "$COMMENT" artifacts/perf-gate/gate.md
		like "$(cat "$COMMENT")" '\(https://example.org/a/project/actions/runs/12#artifacts\)' "github: the comment has a link to the artifacts"
	fi
	[ $ci != gitlab ] || like "$(cat artifacts/perf-gate/gate.md)" '/jobs/12/artifacts/file/perf-gate/gate.html\)' "gitlab: Markdown has a link to the page"
	like "$(cat artifacts/perf-gate/gate.badge.json)" '"message":"[0-9]+ regressed","color":"red"' "$ci: there is a badge"
	job $ci same
	is $? 0 "$ci: a branch that changes nothing passes" || diag "$(tail -50 job.out job.err)"
	ok "$ci: its results are kept" test -s artifacts/perf-gate/gate.html
done

done_testing

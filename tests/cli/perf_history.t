#!/bin/bash
# scripts/perf-history: a branch for the history, jobs that push at once, what is refused.
. "$(dirname "$0")/lib.sh"
have git || skip_all "no git here"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_CEILING_DIRECTORIES=$TMP
perf_history=$SRC/scripts/perf-history

# line COMMIT: a line of a history.
line() {
	printf '{"v":1,"commit":"%s","anchor":"a","cases":{"x":{"figures":{"cpu":[1,1,1,1,"count"]}}}}\n' "$1"
}

# clone NAME: a job's checkout, with something in its index and its working tree.
clone() {
	git clone -q server.git "$1" 2>/dev/null && (cd "$1" && echo changed >file && echo new >staged && git add staged)
}

# commits FILE: of its lines, sorted.
commits() {
	sed -n 's/.*"commit":"\([^"]*\)".*/\1/p' "$1" | sort | tr '\n' ' '
}

git init -q --bare -b main server.git
git init -q -b main project
(
	cd project && echo text >file && git add file && git -c user.name=a -c user.email=a@example.org commit -q -m one &&
		git push -q ../server.git main
) || exit 1

# ---- the first push makes the branch
clone first
line c1 >first/new.jsonl
(cd first && "$perf_history" push new.jsonl) >out 2>&1
is "$? $(cat out)" "0 " "the first push: status 0, no output"
is "$(git -C server.git ls-tree --name-only perf-history | tr '\n' ' ')" ".gitattributes history.jsonl " "the branch has the history and its attributes"
is "$(git -C server.git cat-file blob perf-history:.gitattributes)" "*.jsonl merge=union" "the attributes make git merge the lines of both sides"
is "$(git -C server.git cat-file blob perf-history:history.jsonl)" "$(line c1)" "the history has the line"
is "$(git -C server.git rev-list --count perf-history)" 1 "the branch has no commit of the project's"
is "$(git -C first status --short | tr '\n' ' ')" " M file A  staged ?? new.jsonl " "index and working tree are as they were"
is "$(git -C first for-each-ref --format='%(refname)' refs/heads refs/perf-history)" refs/heads/main "the clone has no new branch, and no temporary reference"

# ---- more lines
line c2 >>first/new.jsonl
printf '%s' "$(line c3)" >>first/new.jsonl
(cd first && "$perf_history" push new.jsonl) >out 2>&1
is "$?" 0 "the second push: status 0" || diag "$(cat out)"
git -C server.git cat-file blob perf-history:history.jsonl >now
is "$(commits now)$(wc -l <now)" "c1 c2 c3 3" "new lines are added once, also one without an end"
(cd first && "$perf_history" push new.jsonl) >out 2>&1
is "$? $(cat out)" "0 perf-history: perf-history of origin has all lines of new.jsonl" "nothing new: status 0, reported"
is "$(git -C server.git rev-list --count perf-history)" 2 "nothing new: no commit"
clone second
(cd second && "$perf_history" fetch all.jsonl) >out 2>&1
is "$? $(commits second/all.jsonl)" "0 c1 c2 c3 " "fetch writes the history"
"$COUNTERSINK" history second/all.jsonl >out 2>err
is "$? $(cat err)" "0 " "countersink history reads it"
git clone -q --depth 1 "file://$TMP/server.git" shallow 2>/dev/null
line c4 >shallow/new.jsonl
(cd shallow && "$perf_history" push new.jsonl) >out 2>&1
is $? 0 "a shallow clone pushes, too" || diag "$(cat out)"

line c5 >shallow/a=b.jsonl
(cd shallow && "$perf_history" push a=b.jsonl) >out 2>&1
git -C server.git cat-file blob perf-history:history.jsonl >now
is "$? $(commits now)" "0 c1 c2 c3 c4 c5 " "a file's name may have an equals sign" || diag "$(cat out)"

# ---- a history that is there and cannot be read is not replaced
mkdir broken
printf '#!/bin/sh\n[ "$1 $2" != "cat-file blob" ] || { echo "fatal: not fetched" >&2; exit 128; }\nexec %s "$@"\n' "$(command -v git)" >broken/git
chmod +x broken/git
line c6 >shallow/new.jsonl
(cd shallow && PATH=$TMP/broken:$PATH "$perf_history" push new.jsonl) >out 2>&1
is "$? $(cat out)" "1 perf-history: history.jsonl of perf-history cannot be read: fatal: not fetched" "a history that cannot be read: status 1, one line"
git -C server.git cat-file blob perf-history:history.jsonl >now
is "$(commits now)" "c1 c2 c3 c4 c5 " "and the branch is as it was"

# ---- two jobs at once. The hook of the server holds each push until both have read the same tip: one must be refused.
git -C server.git cat-file blob perf-history:history.jsonl >before
mkdir meet
cat >server.git/hooks/pre-receive <<END
#!/bin/sh
# The first two pushes wait for each other; the second one's commit is then not on top of the branch.
mkdir "$TMP/meet/1" 2>/dev/null || mkdir "$TMP/meet/2" 2>/dev/null || exit 0
for try in \$(seq 1 6000); do [ -d "$TMP/meet/2" ] && exit 0; sleep 0.01; done
exit 1
END
chmod +x server.git/hooks/pre-receive
for job in 1 2; do
	clone "job$job"
	line "at_once$job" >"job$job/new.jsonl"
	(cd "job$job" && "$perf_history" push new.jsonl >out 2>&1; echo $? >status) &
done
wait
is "$(cat job1/status job2/status | tr '\n' ' ')" "0 0 " "two jobs that push at once: both succeed" || diag "$(cat job1/out job2/out)"
git -C server.git cat-file blob perf-history:history.jsonl >now
is "$(commits now)" "at_once1 at_once2 $(commits before)" "two jobs at once: no line is lost"
is "$(git -C server.git rev-list --count --min-parents=2 perf-history) $(git -C server.git rev-list --count perf-history)" "0 6" \
	"two jobs at once: one commit each, one after the other"
rm server.git/hooks/pre-receive
for job in 1 2 3 4 5 6; do
	clone "many$job"
	line "many$job" >"many$job/new.jsonl"
	(cd "many$job" && PERF_HISTORY_TRIES=30 "$perf_history" push new.jsonl >out 2>&1; echo $? >status) &
done
wait
is "$(cat many*/status | tr -d '\n')" 000000 "six jobs at once: all succeed" || diag "$(cat many*/out)"
git -C server.git cat-file blob perf-history:history.jsonl >now
is "$(commits now | tr ' ' '\n' | grep -c many)" 6 "six jobs at once: no line is lost"

# ---- two first pushes at once: neither knows of a branch
for job in 1 2 3; do
	(cd "many$job" && PERF_HISTORY_BRANCH=other PERF_HISTORY_FILE=a/b.jsonl "$perf_history" push new.jsonl >out 2>&1; echo $? >status) &
done
wait
is "$(cat many[123]/status | tr -d '\n') $(git -C server.git cat-file blob other:a/b.jsonl | wc -l)" "000 3" "three first pushes at once: all lines are there" ||
	diag "$(cat many[123]/out)"

# ---- branches that people merge
git clone -q -b perf-history server.git left 2>/dev/null
git clone -q -b perf-history server.git right 2>/dev/null
for side in left right; do
	(cd $side && line $side >>history.jsonl && git -c user.name=a -c user.email=a@example.org commit -q -a -m $side)
done
(cd left && git -c user.name=a -c user.email=a@example.org pull -q --no-rebase ../right perf-history) >out 2>&1
is "$? $(commits left/history.jsonl | grep -ow 'left\|right' | tr '\n' ' ')" "0 left right " "git merges two histories to the lines of both"

# ---- what is refused
(cd first && PERF_HISTORY_REMOTE=../nowhere.git "$perf_history" push new.jsonl) >out 2>&1
is "$? $(wc -l <out)" "1 1" "no such remote: status 1, one line" || diag "$(cat out)"
printf '#!/bin/sh\necho "not this one" >&2\nexit 1\n' >server.git/hooks/pre-receive
chmod +x server.git/hooks/pre-receive
line c9 >first/new.jsonl
(cd first && PERF_HISTORY_TRIES=1 "$perf_history" push new.jsonl) >out 2>&1
is $? 1 "a server that refuses: status 1"
like "$(cat out)" 'not this one' "a server that refuses: its reason is shown"
like "$(tail -n 1 out)" '^perf-history: perf-history of origin was not pushed, in 1 tries$' "a server that refuses is reported"
(cd first && PERF_HISTORY_BRANCH=none "$perf_history" fetch x.jsonl) >out 2>&1
is "$? $(cat out)" "1 perf-history: origin has no branch none: perf-history push makes it" "fetch without a branch: status 1, one line"
(cd first && PERF_HISTORY_FILE=none "$perf_history" fetch x.jsonl) >out 2>&1
is "$? $(cat out)" "1 perf-history: perf-history of origin has no file none" "fetch without the file: status 1, one line"
ok "what is not fetched leaves no file" test ! -e first/x.jsonl
(cd first && "$perf_history" push no.jsonl) >out 2>&1
is "$? $(cat out)" "1 perf-history: no.jsonl cannot be read" "no such file: status 1, one line"
mkdir bare
(cd bare && "$perf_history" push ../now) >out 2>&1
is "$? $(cat out)" "1 perf-history: no git repository is here" "no repository: status 1, one line"
"$perf_history" pull x >out 2>&1
is $? 2 "an unknown word: status 2"
like "$(cat out)" '^usage: perf-history push FILE' "the usage is printed"
done_testing

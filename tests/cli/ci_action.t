#!/bin/bash
# The GitHub action and the component for GitLab (scripts/ci/action.yml, templates/perf-gate.yml): every step, with a tarball of this
# build, a project with a slower branch, and an API on loopback that also refuses and fails.
. "$(dirname "$0")/lib.sh"
CI=$SRC/scripts/ci
/usr/bin/python3 -c 'import yaml' 2>/dev/null || skip_all "python3-yaml is not installed"
have curl || skip_all "curl is not installed"
have xz || skip_all "xz is not installed"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY http_proxy https_proxy HTTP_PROXY HTTPS_PROXY
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org \
	GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org

# ---- the files
cat >shape.py <<'E2'
import re, sys, yaml
action = yaml.safe_load(open(sys.argv[1]))
component = list(yaml.safe_load_all(open(sys.argv[2])))
assert action["runs"]["using"] == "composite" and action["name"] and action["description"]
for step in action["runs"]["steps"]:
    assert ("run" in step) != ("uses" in step), step
    if "run" in step:
        assert step["shell"] == "bash", step
        assert "${{" not in step["run"], "an input in the text of a script: " + step["run"]
given = set(re.findall(r"inputs\.(\w+)", open(sys.argv[1]).read()))
assert given == set(action["inputs"]), given ^ set(action["inputs"])
assert len(component) == 2
(job,) = component[1].values()
for line in [*job["before_script"], *job["script"]]:
    assert "$[[" not in line, "an input in the text of a script: " + line
given = set(re.findall(r"\$\[\[ inputs\.(\w+) \]\]", open(sys.argv[2]).read()))
assert given == set(component[0]["spec"]["inputs"]), given
print("as they should be")
E2
is "$(/usr/bin/python3 -B shape.py "$CI/action.yml" "$SRC/templates/perf-gate.yml" 2>&1)" "as they should be" \
	"steps have a shell, and no input is in the text of a script"
sed 's/run: .*run-gate.*/run: sh -c "${{ inputs.command }}"/' "$CI/action.yml" >wrong.yml
like "$(/usr/bin/python3 -B shape.py wrong.yml "$SRC/templates/perf-gate.yml" 2>&1)" 'AssertionError: an input in the text' "one that is there is found"
if have shellcheck; then
	ok "shellcheck has nothing to say" shellcheck -S warning "$CI/get-tarball" "$CI/run-gate"
else
	skip "shellcheck has nothing to say" "it is not installed"
fi

# ---- the tarball
version=$(countersink --version | grep -o '[0-9][0-9.]*' | head -n 1)
tree=countersink-$version-linux-$(uname -m)
make -s -C "$SRC" install PREFIX="/$tree" DESTDIR="$TMP/stage" >install.out 2>&1
is "$?" 0 "a tree is installed" || diag "$(cat install.out)"
XZ_OPT=-1 tar -cJf "$tree.tar.xz" -C stage "$tree"
sum=$(sha256sum <"$tree.tar.xz") sum=${sum%% *}
get() { # SHA256 URL [VERSION]
	rm -rf temp path
	mkdir temp
	: >path
	RUNNER_TEMP=$TMP/temp GITHUB_PATH=$TMP/path GITHUB_ACTIONS=true COUNTERSINK_VERSION=${3-$version} COUNTERSINK_SHA256=$1 COUNTERSINK_URL=$2 \
		"$CI/get-tarball" >out 2>err
}
get "$sum" "file://$TMP/$tree.tar.xz"
is "$? $(cat err)" "0 " "a tarball of the right SHA-256 is unpacked"
is "$("$(cat path)/countersink" --version)" "$(countersink --version)" "and its countersink is in the path"
refused() { # PATTERN NAME SHA256 URL [VERSION]
	pattern=$1 name=$2
	shift 2
	get "$@"
	is "$? $(cat path)" "1 " "$name: nothing is in the path"
	like "$(cat err)" "$pattern" "$name: the reason is reported"
	like "$(cat out)" '^::error title=countersink gate::' "$name: as an annotation"
}
refused "has SHA-256 $sum, and not 0000" "another SHA-256" "$(printf '%064d' 0)" "file://$TMP/$tree.tar.xz"
is "$(find temp -type f | wc -l)" 0 "nothing of it is kept"
refused '64 hexadecimal digits' "a SHA-256 that is too short" abc "file://$TMP/$tree.tar.xz"
refused 'cannot be fetched' "a tarball that is not there" "$sum" "file://$TMP/none.tar.xz"
refused 'which version of countersink' "a version that is none" "$sum" "file://$TMP/$tree.tar.xz" '../x'
refused 'it is of another version or machine' "another version" "$sum" "file://$TMP/$tree.tar.xz" 9.9.9

# ---- the comment
cat >api.py <<'E2'
# An API of GitHub's issues: comments are in comments.json; MODE says what fails. Requests go to requests.
import http.server, json, os, re
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with open("requests", "a") as f:
            print(self.command, self.path.split("?")[0], self.headers.get("Authorization"), file=f)
        mode = open("mode").read().strip()
        comments = json.load(open("comments.json"))
        if mode == "fork" and self.command != "GET":
            return self.answer(403, {"message": "Resource not accessible by integration"})
        if mode == "broken":
            return self.answer(200, "no list")
        if self.command == "GET":
            page = int(re.search(r"[?&]page=(\d+)", self.path)[1])
            return self.answer(200, comments[(page - 1) * 100:page * 100])
        text = json.loads(body)["body"]
        if self.command == "POST":
            comments.append({"id": len(comments) + 1, "body": text, "user": {"login": "github-actions[bot]"}})
        else:
            if mode == "gone":
                return self.answer(404, {"message": "Not Found"})
            comments[int(self.path.rsplit("/", 1)[1]) - 1]["body"] = text
        json.dump(comments, open("comments.json", "w"))
        self.answer(200, {})
    do_GET = do_POST = do_PATCH = handle_any
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open("port.new", "w").write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
E2
python3 api.py >api.out 2>&1 &
api=$!
trap 'kill $api 2>/dev/null; remove_tmp' EXIT
wait_until 30 test -s port
GITHUB_API_URL=http://127.0.0.1:$(cat port)
export GITHUB_API_URL GITHUB_REPOSITORY=a/project PULL_REQUEST=7 GITHUB_TOKEN=a-token
put() { # MODE COMMENTS FILE
	echo "$1" >mode
	echo "$2" >comments.json
	: >requests
	GATE_NAME=perf-gate "$CI/put-comment" "$3" >out 2>err
}
bodies() {
	python3 -c 'import json; print([c["body"][:40] for c in json.load(open("comments.json"))])'
}
printf 'the table\n' >table.md
put well '[]' table.md
is "$? $(cat out err)" "0 " "a comment is put"
is "$(bodies)" "['<!-- countersink-gate:perf-gate -->\\nthe ']" "with a mark of its own"
is "$(cut -d' ' -f1,3- requests | sort -u)" "GET Bearer a-token
POST Bearer a-token" "the token is used"
put well '[{"id": 1, "body": "hello", "user": {"login": "a"}}, {"id": 2, "body": "<!-- countersink-gate:perf-gate -->\nold", "user": {"login": "github-actions[bot]"}}]' table.md
is "$? $(bodies)" "0 ['hello', '<!-- countersink-gate:perf-gate -->\\nthe ']" "a later run replaces it, and no other one"
python3 -c 'import json; json.dump([{"id": n + 1, "body": None if n < 150 else "<!-- countersink-gate:perf-gate -->\nold" if n == 150 else "x", "user": {"login": "github-actions[bot]"}} for n in range(160)], open("many", "w"))'
put well "$(cat many)" table.md
is "$? $(cut -d' ' -f1 requests | tr '\n' ' ')" "0 GET GET PATCH " "it is found among many"
put well '[{"id": 1, "body": "<!-- countersink-gate:perf-gate -->\nanother user", "user": {"login": "a"}}]' table.md
is "$? $(grep -c 'another user' comments.json)" "0 1" "a comment of another user with the mark is left alone"
is "$(cut -d' ' -f1 requests | tr '\n' ' ')" "GET POST " "there is a new one"
put gone '[{"id": 1, "body": "<!-- countersink-gate:perf-gate -->\nold", "user": {"login": "github-actions[bot]"}}]' table.md
is "$? $(cut -d' ' -f1 requests | tr '\n' ' ')" "0 GET PATCH POST " "in place of one that was removed meanwhile there is a new one"
put fork '[]' table.md
is "$? $(cat err)" "0 " "the token of a fork: status 0"
like "$(cat out)" '^::notice::no comment could be written \(.*403.*\); the summary has the same table$' "it is reported"
put broken '[]' table.md
like "$? $(cat out)" '^0 ::notice::no comment could be written' "an answer that is none: status 0, and it is reported"
python3 -c 'print("ü" * 70000)' >long.md
put well '[]' long.md
is "$? $(python3 -c 'import json; b = json.load(open("comments.json"))[0]["body"]; print(len(b) <= 65536, b.rstrip().endswith("summary."))')" "0 True True" "a table that is too long is cut, which it says"
put well '[]' none.md
is "$? $(cat out requests)" "0 " "without a table nothing is asked"
PULL_REQUEST='' put well '[]' table.md
is "$? $(cat requests)" "0 " "nor without a pull request"
GATE_NAME='x --> <b>' "$CI/put-comment" table.md >out 2>err
like "$? $(cat err)" '^1 a name has letters' "a name that would end the mark is refused"
GITHUB_API_URL=http://127.0.0.1:1 put well '[]' table.md
like "$? $(cat out)" '^0 ::notice::no comment could be written' "an API that is away: status 0, and it is reported"

# ---- the whole
mkdir project
(
	cd project && git init -q -b main . && printf 'bench\nperf-gate/\n' >.gitignore
	printf 'bench: bench.c\n\t$(CC) -O2 -g -o bench bench.c\n' >Makefile
	cat >bench.c <<'END'
#include <stdint.h>
volatile uint64_t sink;
__attribute__((noinline)) void parse(uint64_t n) { uint64_t x = sink; while (n--) x = x * 3 + n; sink = x; }
__attribute__((noinline)) void solve(uint64_t n) { uint64_t x = sink; while (n--) x = x * 5 + n; sink = x; }
int main(void) { parse(20000000); solve(20000000); return 0; }
END
	git add -A && git commit -q -m "As it was"
	git checkout -q -b slower && sed -i 's/solve(20000000)/solve(60000000)/' bench.c && git commit -q -a -m "Slower"
	git checkout -q -b same main && echo "/* a comment */" >>bench.c && git commit -q -a -m "A comment"
	git checkout -q main
) || exit 1
cat >job.py <<'E2'
# job.py github FILE | gitlab FILE: its steps in the current directory, as the CI runs them; inputs are in the environment's INPUTS.
import json, os, re, shutil, subprocess, sys, yaml
inputs = json.loads(os.environ.pop("INPUTS"))
def github(action):
    inputs_of = {k: inputs.get(k, str(v.get("default", ""))) for k, v in action["inputs"].items()}
    known = {"inputs." + k: v for k, v in inputs_of.items()}
    known.update({"github.token": "a-token", "github.event.pull_request.number": "7", "github.action_repository": "a/countersink"})
    def value(text):
        for _ in range(2):  # a default may be one, too
            text = re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda m: known[m[1]], str(text))
        return text
    env = dict(os.environ, GITHUB_ACTIONS="true", GITHUB_ACTION_PATH=os.path.dirname(os.path.abspath(sys.argv[2])), GITHUB_SERVER_URL="https://example.org",
               GITHUB_RUN_ID="12", GITHUB_BASE_REF="main")
    status, outputs = 0, {}
    for step in action["runs"]["steps"]:
        condition = step.get("if", "")
        if (status and "always()" not in condition) or ("inputs.comment" in condition and known["inputs.comment"] != "true"):
            continue
        if "uses" in step:
            if os.path.isdir(step["with"]["path"]):
                shutil.copytree(step["with"]["path"], os.environ["ARTIFACTS"], dirs_exist_ok=True)
            continue
        files = {n: os.path.join(os.environ["RUNNER_TEMP"], n) for n in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for n in ("GITHUB_PATH", "GITHUB_OUTPUT"):
            open(files[n], "w").close()
        own = {k: value(v) for k, v in step.get("env", {}).items()}
        status = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], env={**env, **own, **files}, stdin=subprocess.DEVNULL).returncode or status
        for line in open(files["GITHUB_PATH"]):
            env["PATH"] = line.strip() + ":" + env["PATH"]
        outputs.update(line.rstrip("\n").split("=", 1) for line in open(files["GITHUB_OUTPUT"]))
    print("outputs", sorted(outputs.items()))
    return status
def gitlab(text):
    spec, job = yaml.safe_load_all(text)
    of = {k: inputs.get(k, (v or {}).get("default")) for k, v in spec["spec"]["inputs"].items()}
    text = re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda m: of[m[1]], text.split("\n---\n")[1])
    (job,) = yaml.safe_load(text).values()
    env = dict(os.environ, CI="true", CI_JOB_URL="https://example.org/jobs/12", CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main", **job["variables"])
    status = subprocess.run(["bash", "-eo", "pipefail", "-c", "\n".join([*job["before_script"], *job["script"]])], env=env, stdin=subprocess.DEVNULL).returncode
    shutil.copytree(job["artifacts"]["paths"][0], os.environ["ARTIFACTS"], dirs_exist_ok=True)
    assert os.path.exists(job["artifacts"]["reports"]["junit"])
    return status
text = open(sys.argv[2]).read()
sys.exit(github(yaml.safe_load(text)) if sys.argv[1] == "github" else gitlab(text))
E2
job() { # CI BRANCH [MORE INPUTS]
	rm -rf clone artifacts summary.md temp
	mkdir artifacts temp
	git clone -q project clone
	git -C clone checkout -q --detach "origin/$2"
	echo well >mode
	echo '[]' >comments.json
	: >requests
	case $1 in
	github) file=$CI/action.yml ;;
	*) file=$SRC/templates/perf-gate.yml ;;
	esac
	(cd clone && INPUTS="{\"version\": \"$version\", \"sha256\": \"$sum\", \"url\": \"file://$TMP/$tree.tar.xz\", \"build\": \"make bench\",
		\"command\": \"./bench\", \"options\": \"--runs=12 --seed=1\"${3:-}}" ARTIFACTS=$TMP/artifacts RUNNER_TEMP=$TMP/temp \
		GITHUB_STEP_SUMMARY=$TMP/summary.md PATH=${PATH#"$BUILD/bin:"} /usr/bin/python3 -B ../job.py "$1" "$file") >job.out 2>job.err
}
# A branch that changes nothing: the gate may find it slower by chance, but not twice.
same() {
	local status
	job "$1" same "${@:2}"
	status=$?
	[ $status = 3 ] || return $status
	job "$1" same "${@:2}"
}
for ci in github gitlab; do
	job $ci slower
	is $? 3 "$ci: a branch that is slower fails" || diag "$(tail -n 20 job.out job.err)"
	like "$(cat job.out)" '^not ok [0-9]+ - solve in bench regressed: \+' "$ci: and names the function"
	ok "$ci: the results are an artifact" test -s artifacts/gate.html -a -s artifacts/gate.json
done
job github slower
like "$(cat job.out)" "^outputs \[\('status', '3'\), \('verdict', 'regressed'\)\]" "github: the outputs have status and verdict"
like "$(cat temp/GITHUB_STEP_SUMMARY)" 'regressed \| solve in bench' "github: the summary has the table"
like "$(cat job.err)" '^::error file=bench.c,line=[0-9]+,title=countersink gate::solve in bench' "github: the annotation is at the function"
like "$(python3 -c 'import json; print(json.load(open("comments.json"))[0]["body"])')" 'regressed \| solve in bench' "github: the comment has the table"
same github
is $? 0 "github: a branch that changes nothing passes" || diag "$(tail -n 20 job.out job.err)"
same github ', "comment": "false"'
is "$? $(cat requests)" "0 " "github: without a comment nothing is asked" || diag "$(tail -n 20 job.out job.err)"
job github same ', "options": "--max-time=5; touch injected"'
like "$? $(cat job.out)" '^1 ::error title=countersink gate::options are words' "github: options that a shell would run are refused"
ok "and not run" test ! -e clone/injected
job github same ', "sha256": "'"$(printf '%064d' 0)"'"'
is "$? $(ls artifacts) $(cat requests)" "1  " "github: another SHA-256: nothing is compared"
job github same ', "build": "false"'
is "$? $(grep -o "verdict.*error" job.out)" "1 verdict', 'error" "github: what does not build is an error"
done_testing

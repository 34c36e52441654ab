# shellcheck shell=bash
# What slices have together, for the tests of slices; after lib.sh, in a directory with copy, the recordings of the whole run.
cat >rows.py <<'E2'
# rows.py FILE: of each function what was counted of it, and of all the CPU time that samples have. Of a thread that has
# ended, CPU time is scaled to its clock, which is not known while it runs: of a function a slice may have a little more.
import json, subprocess, sys
d = json.loads(subprocess.check_output(["countersink", "report", "-j", "-a", sys.argv[1]]))
rows = [r for r in d["rows"] if not r["pseudo"] and any(r["values"].values())]
for r in sorted(rows, key=lambda r: (r["name"], r["module"] or "", r.get("file") or "")):
    print(r["name"], r["module"], r.get("file"), sorted((k, v) for k, v in r["values"].items() if k != "task-clock"))
print(sum(r["values"]["task-clock"] for r in rows), file=sys.stderr)
E2
facts() { # FILE KEY
	countersink report -j -n 1 "$1" | python3 -c '
import json, sys
print("; ".join(f[len(sys.argv[1]) + 2:] for f in json.load(sys.stdin)["facts"] if f.startswith(sys.argv[1] + ": ")))' "$2"
}
# Slices as a merge has them, and the recordings as one profile, function by function.
slices_and_whole() { # SLICE...
	countersink merge -q -o merged.pb.gz "$@" 2>merge.err
	rm -f copy/slices*
	countersink report -q -o whole.pb.gz copy 2>report.err
	python3 rows.py merged.pb.gz >merged.rows 2>merged.ns
	python3 rows.py whole.pb.gz >whole.rows 2>whole.ns
}
begin_whole() { # a run: samples have what the host takes from now on, which the clocks of threads that end take off
	stolen_before=$(steal_counter)
}
same_as_whole() { # NAME SLICE...
	local name=$1
	shift
	slices_and_whole "$@"
	ok "$name: there are functions" test -s whole.rows
	is "$(facts merged.pb.gz processes) $(facts merged.pb.gz threads)" "$(facts whole.pb.gz processes) $(facts whole.pb.gz threads)" \
		"$name: a process or thread of several slices is counted once"
	is "$(diff merged.rows whole.rows)" "" "$name: each function has the same counts in all slices as in one profile"
	is "$(paste merged.ns whole.ns | awk -v stolen="$(stolen_since "$stolen_before")" \
		'{ print ($1 > 0.99 * $2 && $1 < 1.01 * $2 + stolen) ? "same" : $0 " stolen " stolen }')" same \
		"$name: all have the same CPU time, but for less than 1 %"
}

"""The figures of tests/gate/suite-false, which runs zlib_bench.cc.

usage: suite-false.py gate STATUS LOAD GATE OLD NEW      a line about a gate (its JSON) and the peers' runs (google-benchmark's)
       suite-false.py all LINES                          the rates of such lines
"""
import collections
import json
import math
import sys


def u_test(a, b):
    """The two-sided p-value of Mann and Whitney's test, by the normal distribution with corrections, as scipy has it for 10 and 10."""
    values = sorted(a + b)
    ranks = {v: values.index(v) + (values.count(v) + 1) / 2 for v in values}
    u = sum(ranks[v] for v in a) - len(a) * (len(a) + 1) / 2
    n, ties = len(values), sum(k**3 - k for k in collections.Counter(values).values())
    spread = math.sqrt(len(a) * len(b) / 12 * ((n + 1) - ties / (n * (n - 1))))
    z = (abs(u - len(a) * len(b) / 2) - 0.5) / spread if spread else 0
    return min(1, math.erfc(z / math.sqrt(2)))


def repetitions(path):
    cases = collections.defaultdict(list)
    for row in json.load(open(path))["benchmarks"]:
        if row["run_type"] == "iteration":
            cases[row["run_name"]].append(row["cpu_time"])
    return cases


def gate(status, load, path, old, new):
    result = json.load(open(path))
    cases = result["cases"]
    old, new = repetitions(old), repetitions(new)
    differ = {name: sum(new[name]) / sum(old[name]) for name in old if u_test(old[name], new[name]) <= 0.05}
    print(json.dumps({
        "status": int(status), "load": float(load), "seconds": round(result["seconds"], 1), "cases": len(cases),
        "slower": [case["case"] for case in cases if case["verdict"] == "regressed"],
        "error": [case["case"] for case in cases if case["verdict"] == "error"],
        "pairs": sum(case["screened_pairs"] + case["confirmed_pairs"] for case in cases),
        "peers": len(old), "peers_differ": len(differ), "peers_slower": sum(ratio > 1 for ratio in differ.values()),
        "peers_5": sum(abs(ratio - 1) > 0.05 for ratio in differ.values())}), flush=True)


def at_most(k, n, p):
    return math.fsum(math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) +
                              (n - i) * math.log1p(-p)) for i in range(k + 1))


def bound(is_above):
    low, high = 0, 1
    for _ in range(60):
        low, high = ((low + high) / 2, high) if is_above((low + high) / 2) else (low, (low + high) / 2)
    return low


def rate(what, k, n):
    low = bound(lambda p: 1 - at_most(k - 1, n, p) < 0.025) if k else 0
    high = bound(lambda p: at_most(k, n, p) > 0.025) if k < n else 1
    print(f"{what}: {k} of {n}, {100 * k / n:.1f} % ({100 * low:.1f} to {100 * high:.1f} %)")


def summarize(path):
    lines = [json.loads(line) for line in open(path)]
    loads = sorted(line["load"] for line in lines)
    print(f"{len(lines)} gates of {lines[0]['cases']} cases, {sum(line['seconds'] for line in lines) / len(lines):.1f} s and "
          f"{sum(line['pairs'] for line in lines) / len(lines):.0f} pairs a gate on average; load {loads[0]} to {loads[-1]}, "
          f"median {loads[len(loads) // 2]}")
    rate("gates in which anything regressed", sum(bool(line["slower"]) for line in lines), len(lines))
    rate("gates with a case in error", sum(bool(line["error"]) for line in lines), len(lines))
    rate("peers: cases that differ", sum(line["peers_differ"] for line in lines), sum(line["peers"] for line in lines))
    rate("peers: cases that got slower", sum(line["peers_slower"] for line in lines), sum(line["peers"] for line in lines))
    rate("peers: cases that differ by more than 5 %", sum(line["peers_5"] for line in lines), sum(line["peers"] for line in lines))
    rate("peers: suites with a case that got slower", sum(line["peers_slower"] > 0 for line in lines), len(lines))


if sys.argv[1] == "gate":
    gate(*sys.argv[2:])
else:
    summarize(sys.argv[2])

"""
Loaded into pytest (gate --suite=pytest), to run some benchmarks for exact numbers of iterations. The file COUNTERSINK_CASES has
each one's node id, its number, its function, and how many iterations it makes. They run in this order, those of a file together,
each below its own function: where one process runs several, the samples below it are the benchmark's. A line
of JSON about each goes to the file COUNTERSINK_CASES_REPORT when it begins, has made its iterations, fails, and has ended. Without
the file, all run as they are. Works with Python 3.6 and pytest-benchmark 3.1 and later.
"""
import json
import os
import resource
from time import process_time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

chosen = {}
if 'COUNTERSINK_CASES' in os.environ:
    with open(os.environ['COUNTERSINK_CASES'], encoding='utf-8') as file:
        chosen = {case['name']: case for case in json.load(file)}


def write(name, **more):
    if name not in chosen:
        return
    with open(os.environ['COUNTERSINK_CASES_REPORT'], 'a', encoding='utf-8', errors='backslashreplace') as out:
        out.write(json.dumps({'case': chosen[name]['case'], **more}) + '\n')


def seconds():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def below_function(name, run):
    scope = {}
    exec(f'def {name}(run):\n\treturn run()', scope)
    return scope[name](run)


def replace(name):
    """Have a method of the fixture that makes all rounds of a benchmark make the iterations that are asked for."""
    original = getattr(BenchmarkFixture, name)

    def make(self, *args, **kwargs):
        case = chosen.get(self.fullname)
        if case is None:
            return original(self, *args, **kwargs)
        self._min_rounds, self._max_time, self._warmup = 1, 0.0, False
        start = seconds()
        result = below_function(case['function'], lambda: original(self, *args, **kwargs))
        end = seconds()
        # pedantic() has numbers of its own.
        write(self.fullname, iterations=self.stats.iterations * len(self.stats.stats.data), seconds=end - start)
        return result

    setattr(BenchmarkFixture, name, make)


replace('_raw')
replace('_raw_pedantic')
calibrate = BenchmarkFixture._calibrate_timer


def calibrate_timer(self, runner):
    case = chosen.get(self.fullname)
    return calibrate(self, runner) if case is None else (1.0, case['number'], range(case['number']))


BenchmarkFixture._calibrate_timer = calibrate_timer


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if not chosen:
        return
    places, files = {}, {}
    for number, name in enumerate(chosen):
        places[name] = (files.setdefault(name.split('::')[0], number), number)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = sorted((item for item in items if item.nodeid in chosen), key=lambda item: places[item.nodeid])


def pytest_runtest_logstart(nodeid):
    write(nodeid, begins=True)


def pytest_runtest_logfinish(nodeid):
    write(nodeid, ends=True)


def pytest_runtest_logreport(report):
    if report.failed:
        text = str(report.longrepr)
        crash = getattr(report.longrepr, 'reprcrash', None)
        write(report.nodeid, error=crash.message if crash else text.strip().split('\n')[-1])
    elif report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        write(report.nodeid, skipped=reason[len('Skipped: '):] if reason.startswith('Skipped: ') else reason)

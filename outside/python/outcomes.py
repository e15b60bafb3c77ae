"""A plugin of pytest: writes the outcome of each test and its CPU time when it is there, so that a test which never ends, or which ends the
process, takes no other's with it. A process that goes on with the same file runs what has not begun."""

import os

path = os.environ["OUTSIDE_OUTCOMES"]
part, parts = (int(number) for number in os.environ["OUTSIDE_PART"].split("/"))
outcomes = {}
begins = {}


def cpu_seconds():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def write(nodeid, outcome):
    with open(path, "a") as file:
        file.write(f"test {nodeid} ... {outcome}\n")


def begun():
    if not os.path.exists(path):
        return set()
    with open(path) as file:
        return {line.split(" ... ")[0].removeprefix("test ") for line in file}


def pytest_collection_modifyitems(items):
    before, files = begun(), sorted({item.path for item in items})
    items[:] = [item for item in items if files.index(item.path) % parts == part and item.nodeid not in before]


def pytest_runtest_logstart(nodeid):
    begins[nodeid] = cpu_seconds()
    write(nodeid, "begun")


def pytest_runtest_logreport(report):
    # A test fails if any part of it does: what comes before it and after it, and its subtests.
    if report.failed:
        outcomes[report.nodeid] = "FAILED"
    elif report.skipped:
        outcomes.setdefault(report.nodeid, "ignored")
    elif report.when == "call":
        outcomes.setdefault(report.nodeid, "ok")


def pytest_runtest_logfinish(nodeid):
    seconds = cpu_seconds() - begins[nodeid]
    write(nodeid, f"{outcomes.get(nodeid, 'FAILED')}, {seconds:.1f} s")

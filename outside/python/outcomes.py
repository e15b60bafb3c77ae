"""A plugin of pytest: writes the outcome of each test when it is there, so that a test which never ends, or which ends the process, takes no
other's with it. A process that goes on with the same file runs what has not begun. It also stands in for what numba-cuda's package leaves
out of its tests."""

import os
import warnings

import pytest
from numba import cuda

path = os.environ["OUTSIDE_OUTCOMES"]
part, parts = (int(number) for number in os.environ["OUTSIDE_PART"].split("/"))
outcomes = {}


def write(nodeid, outcome):
    with open(path, "a") as file:
        file.write(f"test {nodeid} ... {outcome}\n")


def begun():
    if not os.path.exists(path):
        return set()
    with open(path) as file:
        return {line.split(" ... ")[0].removeprefix("test ") for line in file}


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False


def pytest_sessionstart():
    # The first link of a process warns that there is no nvJitLink: it is not to be that of a test which counts warnings.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cuda.jit("void()")(lambda: None)


def pytest_collection_modifyitems(items):
    before, files = begun(), sorted({item.path for item in items})
    for item in items:
        # Tests of several processes give one some seconds to start, which a busy machine exceeds.
        if hasattr(item.module, "FUTURE_TIMEOUT"):
            item.module.FUTURE_TIMEOUT = 120
    items[:] = [item for item in items if files.index(item.path) % parts == part and item.nodeid not in before]


def pytest_runtest_logstart(nodeid):
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
    write(nodeid, outcomes.get(nodeid, "FAILED"))

"""A plugin of pytest: writes the outcome of each test, and stands in for what numba-cuda's package leaves out of its tests."""

import os

import pytest

outcomes = {}


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False


def pytest_runtest_logreport(report):
    # A test fails if any part of it does: what comes before it and after it, and its subtests.
    if report.failed:
        outcomes[report.nodeid] = "FAILED"
    elif report.skipped:
        outcomes.setdefault(report.nodeid, "ignored")
    elif report.when == "call":
        outcomes.setdefault(report.nodeid, "ok")


def pytest_sessionfinish():
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    with open(os.environ["OUTSIDE_OUTCOMES"], "w") as file:
        file.writelines(f"test {name} ... {outcome}\n" for name, outcome in sorted(outcomes.items()))

"""A plugin of pytest: stands in for what numba-cuda's package leaves out of its tests."""

import warnings

import pytest
from numba import cuda


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False


def pytest_sessionstart():
    # The first link of a process warns that there is no nvJitLink: it is not to be that of a test which counts warnings.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cuda.jit("void()")(lambda: None)


def pytest_collection_modifyitems(items):
    for item in items:
        # Tests of several processes give one some seconds to start, which a busy machine exceeds.
        if hasattr(item.module, "FUTURE_TIMEOUT"):
            item.module.FUTURE_TIMEOUT = 120

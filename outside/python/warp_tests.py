"""A plugin of pytest: Warp compiles to PTX, and of its tests those run that use a device."""

import pytest
import warp

warp.config.cuda_output = "ptx"
warp.config.quiet = True


def pytest_collection_modifyitems(config, items):
    others = [item for item in items if item.path.parent.name != "cuda" and not item.nodeid.endswith("_cuda_0")]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report):
    # Warp reads the standard output, in which no progress of pytest may appear.
    return report.outcome, "", ""

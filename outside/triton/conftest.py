"""What the tests share."""

import pytest


@pytest.fixture(params=[75, 80, 90])
def capability(request):
    """The compute capabilities that the kernels are compiled for; all of them run on the device."""
    return request.param

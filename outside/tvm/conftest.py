"""What the tests share."""

import pytest


@pytest.fixture(params=["sm_75", "sm_80", "sm_90"])
def arch(request):
    """The architectures that the kernels are compiled for; all of them run on the device."""
    return request.param

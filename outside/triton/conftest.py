"""What the tests share."""

import pytest

from triton_gpu import CAPABILITY

# Code for a capability from 90 on runs on devices of that capability only.
CAPABILITIES = [75, 80, 90] if CAPABILITY == 90 else [CAPABILITY]


@pytest.fixture(params=CAPABILITIES)
def capability(request):
    """The compute capabilities that the kernels are compiled for; all of them run on the device."""
    return request.param

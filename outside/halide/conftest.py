"""What the tests share."""

import halide as hl
import pytest

FEATURES = {
    "generic": None,
    "sm_75": hl.TargetFeature.CUDACapability75,
    "sm_86": hl.TargetFeature.CUDACapability86,
}


@pytest.fixture(params=FEATURES)
def target(request):
    """The targets of the kernels. The generic one has neither dot products nor shuffles of warps."""
    target = hl.get_host_target().with_feature(hl.TargetFeature.CUDA)
    feature = FEATURES[request.param]
    return target if feature is None else target.with_feature(feature)


@pytest.fixture
def warp_target():
    """A target with shuffles of warps."""
    return hl.get_host_target().with_feature(hl.TargetFeature.CUDA).with_feature(FEATURES["sm_86"])

"""Stands in for the module of tinygrad's tests that the archive of its sources lacks."""

import unittest

import numpy as np
from tinygrad import Device, dtypes
from tinygrad.codegen import full_rewrite_to_sink, line_rewrite, linearize, pm_linearize_cleanups

REAL_DEV = Device.DEFAULT


def slow(test):
    return test


def needs_second_gpu(test):
    return unittest.skip("needs two devices")(test)


def not_support_multi_device():
    return True


def rand_for_dtype(dtype, size):
    kind = dtypes._to_np_dtype(dtype)
    if dtype == dtypes.bool:
        return np.random.choice([True, False], size=size)
    if dtypes.is_float(dtype):
        return np.random.uniform(-10, 10, size=size).astype(kind)
    return np.random.randint(0 if dtypes.is_unsigned(dtype) else -100, 100, size=size, dtype=kind)


def get_uops(sink, renderer=None):
    renderer = renderer or Device[Device.DEFAULT].renderer
    sink = full_rewrite_to_sink(sink, renderer, optimize=sink.tag is None)
    return line_rewrite(linearize(sink), pm_linearize_cleanups)


def assert_jit_cache_len(function, expected):
    cache = function.jit_cache
    if len(cache) == 1 and hasattr(cache[0].prg, "jit_cache"):
        cache = cache[0].prg.jit_cache
    assert len(cache) == expected, f"{len(cache)} kernels, {expected} expected"

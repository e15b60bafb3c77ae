"""Inputs, and results of pipelines as arrays. NumPy's last axis is Halide's first dimension."""

import halide as hl
import numpy as np

RANDOM = np.random.default_rng(7)


def integers(low, high, shape, dtype):
    return RANDOM.integers(low, high, shape).astype(dtype)


def uniform(*shape, dtype=np.float32):
    return RANDOM.uniform(-2, 2, shape).astype(dtype)


def buffer(values):
    """Returns a buffer with a copy of an array. The caller keeps the buffer: expressions do not keep the memory of the array."""
    return hl.Buffer(np.array(values, order="C"))


def realize(function, shape, target):
    """Returns the result of a pipeline as an array of this shape."""
    result = function.realize(list(reversed(shape)), target)
    result.copy_to_host()
    return np.array(result)


def realize_all(function, shape, target):
    """Returns the results of a pipeline with several outputs."""
    results = function.realize(list(reversed(shape)), target)
    for result in results:
        result.copy_to_host()
    return [np.array(result) for result in results]

"""The kernels of Triton's tutorials on rows: vector addition, softmax, layer norm, compared with NumPy."""

import numpy as np
import triton
import triton.language as tl

from triton_gpu import Array, launch, uniform


@triton.jit
def add(x, y, z, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    tl.store(z + offsets, tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(x + row * columns + offsets, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + offsets, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def layer_norm(x, y, weight, bias, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(x + row * columns + offsets, mask=inside, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    centered = tl.where(inside, values - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / columns
    scaled = centered / tl.sqrt(variance + epsilon)
    result = scaled * tl.load(weight + offsets, mask=inside) + tl.load(bias + offsets, mask=inside)
    tl.store(y + row * columns + offsets, result, mask=inside)


def test_add(capability):
    x, y = uniform(1000), uniform(1000)
    z = Array(np.zeros_like(x))
    launch(add, capability, (4,), Array(x), Array(y), z, 1000, constants={"BLOCK": 256})
    np.testing.assert_array_equal(z.get(), x + y)


def test_softmax(capability):
    x = uniform(5, 300)
    y = Array(np.zeros_like(x))
    launch(softmax, capability, (5,), Array(x), y, 300, constants={"BLOCK": 512})
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y.get(), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_layer_norm(capability):
    x, weight, bias = uniform(4, 200), uniform(200), uniform(200)
    y = Array(np.zeros_like(x))
    launch(layer_norm, capability, (4,), Array(x), y, Array(weight), Array(bias), 200, 1e-5, constants={"BLOCK": 256})
    scaled = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y.get(), scaled * weight + bias, rtol=1e-4, atol=1e-5)

"""The kernels of Triton's tutorials (vector addition, softmax, matrix product, layer norm, attention), compared with NumPy."""

import numpy as np
import pytest
import triton
import triton.language as tl

from triton_gpu import Array, launch

random = np.random.default_rng(7)


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


@triton.jit
def matmul(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + inner
        left = tl.load(a + rows[:, None] * k + depth[None, :], mask=(rows[:, None] < m) & (depth[None, :] < k), other=0.0)
        right = tl.load(b + depth[:, None] * n + columns[None, :], mask=(depth[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


@triton.jit
def attention(q, k, v, o, count, scale, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Attention of one head without storing the scores: softmax(q kᵀ · scale) v."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    features = tl.arange(0, HEAD)
    query = tl.load(q + rows[:, None] * HEAD + features[None, :])
    maximum = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    result = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    for start in range(0, count, BLOCK_N):
        others = start + tl.arange(0, BLOCK_N)
        keys = tl.load(k + others[None, :] * HEAD + features[:, None])
        scores = tl.dot(query, keys) * scale
        larger = tl.maximum(maximum, tl.max(scores, axis=1))
        powers = tl.exp(scores - larger[:, None])
        correction = tl.exp(maximum - larger)
        total = total * correction + tl.sum(powers, axis=1)
        values = tl.load(v + others[:, None] * HEAD + features[None, :])
        result = tl.dot(powers.to(tl.float16), values, result * correction[:, None])
        maximum = larger
    tl.store(o + rows[:, None] * HEAD + features[None, :], (result / total[:, None]).to(tl.float16))


@pytest.fixture(params=[75, 80, 90])
def capability(request):
    """The compute capabilities that the kernels are compiled for; all of them run on the device."""
    return request.param


def uniform(*shape, dtype=np.float32):
    return random.uniform(-1, 1, shape).astype(dtype)


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


def check_matmul(capability, dtype, tolerance, **options):
    m, n, k = 100, 72, 80
    a, b = uniform(m, k, dtype=dtype), uniform(k, n, dtype=dtype)
    c = Array(np.zeros((m, n), dtype=dtype))
    blocks = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32}
    launch(matmul, capability, (2, 3), Array(a), Array(b), c, m, n, k, constants=blocks, **options)
    np.testing.assert_allclose(c.get(), a.astype(np.float32) @ b.astype(np.float32), rtol=tolerance, atol=tolerance)


def test_matmul_in_f16(capability):
    check_matmul(capability, np.float16, 2e-2, num_stages=3)


def test_matmul_in_tf32(capability):
    check_matmul(capability, np.float32, 1e-2)


def test_attention(capability):
    count, head = 128, 64
    q, k, v = (uniform(count, head, dtype=np.float16) for _ in range(3))
    o = Array(np.zeros_like(q))
    launch(attention, capability, (2,), Array(q), Array(k), Array(v), o, count, 0.125, constants={"HEAD": head, "BLOCK_M": 64, "BLOCK_N": 32})
    scores = 0.125 * q.astype(np.float32) @ k.astype(np.float32).T
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(o.get(), powers / powers.sum(axis=1, keepdims=True) @ v, rtol=2e-2, atol=2e-2)

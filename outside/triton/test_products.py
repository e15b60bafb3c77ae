"""The kernels of Triton's tutorials with matrix instructions: matrix product, attention, compared with NumPy."""

import numpy as np
import pytest
import triton
import triton.language as tl

from triton_gpu import RANDOM, Array, launch, uniform


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


SMALL = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32}
LARGE = {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 64}


def check_matmul(capability, dtype, tolerance, blocks=SMALL, **options):
    m, n, k = 100, 72, 80
    a, b = uniform(m, k, dtype=dtype), uniform(k, n, dtype=dtype)
    c = Array(np.zeros((m, n), dtype=dtype))
    grid = (-(-m // blocks["BLOCK_M"]), -(-n // blocks["BLOCK_N"]))
    launch(matmul, capability, grid, Array(a), Array(b), c, m, n, k, constants=blocks, **options)
    np.testing.assert_allclose(c.get(), a.astype(np.float32) @ b.astype(np.float32), rtol=tolerance, atol=tolerance)


def e4m3(bits):
    """Returns the values of numbers in e4m3 that are no NaN."""
    bits = bits.astype(np.int32)
    exponent, fraction = bits >> 3 & 15, bits & 7
    size = np.where(exponent == 0, fraction / 512, (1 + fraction / 8) * 2.0 ** (exponent - 7))
    return np.where(bits >> 7 == 1, -size, size).astype(np.float32)


def test_matmul_in_f16(capability):
    check_matmul(capability, np.float16, 2e-2, num_stages=3)


def test_matmul_in_tf32(capability):
    check_matmul(capability, np.float32, 1e-2)


def test_matmul_of_large_blocks(capability):
    check_matmul(capability, np.float16, 2e-2, LARGE, num_stages=3)


@pytest.mark.parametrize("blocks", [SMALL, LARGE])
def test_matmul_in_e4m3(capability, blocks):
    if capability < 89:
        pytest.skip("the type is newer")
    m, n, k = 128, 64, 96
    # Numbers up to 2.
    a, b = (RANDOM.integers(0, 64, shape) + 128 * RANDOM.integers(0, 2, shape) for shape in ((m, k), (k, n)))
    c = Array(np.zeros((m, n), dtype=np.float32))
    left, right = (Array(bits.astype(np.uint8), "*fp8e4nv") for bits in (a, b))
    grid = (m // blocks["BLOCK_M"], n // blocks["BLOCK_N"])
    launch(matmul, capability, grid, left, right, c, m, n, k, constants=blocks)
    np.testing.assert_allclose(c.get(), e4m3(a) @ e4m3(b), rtol=1e-2, atol=5e-2)


@pytest.mark.parametrize("blocks", [(64, 32), (128, 64)])
def test_attention(capability, blocks):
    count, head = 128, 64
    q, k, v = (uniform(count, head, dtype=np.float16) for _ in range(3))
    o = Array(np.zeros_like(q))
    constants = {"HEAD": head, "BLOCK_M": blocks[0], "BLOCK_N": blocks[1]}
    launch(attention, capability, (count // blocks[0],), Array(q), Array(k), Array(v), o, count, 0.125, constants=constants)
    scores = 0.125 * q.astype(np.float32) @ k.astype(np.float32).T
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(o.get(), powers / powers.sum(axis=1, keepdims=True) @ v, rtol=2e-2, atol=2e-2)

"""CuPy's generated kernels, compiled to PTX, beside NumPy."""

import cupy as cp
import numpy as np
import pytest

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}


def operand(dtype, shape=(7, 33), seed=1):
    random = np.random.default_rng(seed)
    if dtype in INTEGERS:
        return random.integers(1, 100, shape).astype(dtype)
    if dtype in COMPLEX:
        return (random.uniform(0.5, 4, shape) + 1j * random.uniform(0.5, 4, shape)).astype(dtype)
    return random.uniform(0.5, 4, shape).astype(dtype)


def check(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    tolerance = TOLERANCE.get(expected.dtype.name)
    if tolerance is None:
        np.testing.assert_array_equal(found.get(), expected)
    else:
        np.testing.assert_allclose(found.get(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum", "floor_divide", "remainder", "less", "equal"])
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_binary(name, dtype):
    a, b = operand(dtype), operand(dtype, seed=2)
    check(getattr(cp, name)(cp.asarray(a), cp.asarray(b)), getattr(np, name)(a, b))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(name, dtype):
    a, b = operand(dtype), operand(dtype, seed=2) % 7
    check(getattr(cp, name)(cp.asarray(a), cp.asarray(b)), getattr(np, name)(a, b))


@pytest.mark.parametrize("name", "sqrt exp log sin cos tan tanh arctan floor ceil rint absolute negative square expm1 log1p cbrt".split())
@pytest.mark.parametrize("dtype", FLOATS)
def test_unary(name, dtype):
    a = operand(dtype) - (1 if name in ("floor", "ceil", "rint", "absolute", "tanh") else 0)
    a = a.astype(dtype)
    check(getattr(cp, name)(cp.asarray(a)), getattr(np, name)(a))


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "exp", "sqrt", "conj", "absolute"])
@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex(name, dtype):
    operands = [operand(dtype)] + ([operand(dtype, seed=2)] if name in ("add", "multiply", "divide") else [])
    check(getattr(cp, name)(*map(cp.asarray, operands)), getattr(np, name)(*operands))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "argmax", "argmin", "any", "all"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "float32", "float64"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reduction(name, dtype, axis):
    a = operand(dtype, (5, 41)) if name != "prod" else operand(dtype, (3, 4)) % 5
    expected = np.asarray(getattr(np, name)(a, axis=axis))
    check(getattr(cp, name)(cp.asarray(a), axis=axis), expected)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments(name, dtype):
    a = operand(dtype, (5, 41))
    check(getattr(cp, name)(cp.asarray(a), axis=1), getattr(np, name)(a, axis=1))


@pytest.mark.parametrize("source", INTEGERS + FLOATS + ["bool"])
@pytest.mark.parametrize("target", INTEGERS + FLOATS + ["bool"])
def test_conversion(source, target):
    a = operand("float64").astype(source)
    check(cp.asarray(a).astype(target), a.astype(target))


def test_views():
    a = np.arange(2 * 3 * 4 * 5, dtype=np.int32).reshape(2, 3, 4, 5)
    d = cp.asarray(a)
    check(d[:, ::-1, 1:3, ::2].copy(), a[:, ::-1, 1:3, ::2].copy())
    check(d.transpose(3, 1, 0, 2).copy(), a.transpose(3, 1, 0, 2).copy())
    check(cp.broadcast_to(d[:, :1], (2, 3, 4, 5)).copy(), np.broadcast_to(a[:, :1], (2, 3, 4, 5)).copy())
    check(cp.concatenate([d, d], axis=2), np.concatenate([a, a], axis=2))
    check(cp.where(d % 2 == 0, d, -d), np.where(a % 2 == 0, a, -a))
    check(cp.tile(d[0, 0], (2, 3)), np.tile(a[0, 0], (2, 3)))
    check(cp.roll(d, 3, axis=3), np.roll(a, 3, axis=3))


def test_indices():
    a, index = np.arange(60, dtype=np.float32).reshape(12, 5), np.array([3, 1, 11, 0, 3])
    d, places = cp.asarray(a), cp.asarray(index)
    check(d[places], a[index])
    check(d.take(places, axis=0), a.take(index, axis=0))
    check(d[d > 20], a[a > 20])
    d[places, 2], a[index, 2] = -1, -1
    check(d, a)
    check(cp.nonzero(d > 30)[0], np.nonzero(a > 30)[0])


def test_scatter_adds_are_atomic():
    a, index = cp.zeros(8, dtype=cp.float32), cp.arange(4096) % 8
    cp.add.at(a, index, cp.float32(1))
    check(a, np.full(8, 512, dtype=np.float32))


def test_scans():
    a = operand("int64", (1000,))
    check(cp.cumsum(cp.asarray(a)), np.cumsum(a))
    check(cp.cumprod(cp.asarray(a[:8] % 5)), np.cumprod(a[:8] % 5))
    check(cp.diff(cp.asarray(a)), np.diff(a))


def test_counts():
    a = np.arange(1000, dtype=np.int32) % 13
    check(cp.bincount(cp.asarray(a)), np.bincount(a))
    check(cp.histogram(cp.asarray(a), bins=13)[0], np.histogram(a, bins=13)[0])


def test_ranges():
    check(cp.arange(0, 10, 0.25), np.arange(0, 10, 0.25))
    check(cp.linspace(0, 1, 33), np.linspace(0, 1, 33))
    check(cp.eye(7, k=1), np.eye(7, k=1))
    check(cp.tri(5, 6), np.tri(5, 6))


@cp.fuse()
def fused(a, b):
    return cp.sqrt(a * a + b * b) + cp.where(a > b, a, b)


def test_fusion():
    a, b = operand("float32"), operand("float32", seed=2)
    check(fused(cp.asarray(a), cp.asarray(b)), np.sqrt(a * a + b * b) + np.where(a > b, a, b))

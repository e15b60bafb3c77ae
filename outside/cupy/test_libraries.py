"""CuPy's functions on the simulator's cuBLAS, cuFFT and cuRAND, beside NumPy."""

import cupy as cp
import numpy as np
import pytest

TYPES = ["float16", "float32", "float64", "complex64", "complex128"]
TOLERANCE = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}


def operand(dtype, *shape, seed=1):
    random = np.random.default_rng(seed)
    numbers = random.uniform(-1, 1, shape)
    if dtype.startswith("complex"):
        numbers = numbers + 1j * random.uniform(-1, 1, shape)
    return numbers.astype(dtype)


def check(actual, expected, dtype):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    np.testing.assert_allclose(actual.get(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("shapes", [((7, 9), (9, 5)), ((3, 7, 9), (3, 9, 5)), ((9,), (9,))])
@pytest.mark.parametrize("dtype", TYPES)
def test_matmul(dtype, shapes):
    a, b = operand(dtype, *shapes[0]), operand(dtype, *shapes[1], seed=2)
    check(cp.matmul(cp.asarray(a), cp.asarray(b)), np.matmul(a, b), dtype)


@pytest.mark.parametrize("dtype", TYPES[1:])
def test_transposed_factors(dtype):
    a, b = operand(dtype, 9, 7), operand(dtype, 5, 9, seed=2)
    check(cp.asarray(a).T @ cp.asarray(b).T, a.T @ b.T, dtype)


@pytest.mark.parametrize("dtype", TYPES[1:])
def test_matrix_times_vector(dtype):
    a, x = operand(dtype, 7, 9), operand(dtype, 9, seed=2)
    check(cp.asarray(a).dot(cp.asarray(x)), a.dot(x), dtype)


@pytest.mark.parametrize("name", ["fft", "ifft", "fft2", "ifft2", "rfft", "rfft2"])
def test_transform(name):
    dtype = "float64" if name.startswith("r") else "complex128"
    numbers = operand(dtype, 12, 16)
    check(getattr(cp.fft, name)(cp.asarray(numbers)), getattr(np.fft, name)(numbers), "complex128")


def test_inverse_of_real_transform():
    numbers = operand("float64", 5, 16)
    check(cp.fft.irfft(cp.fft.rfft(cp.asarray(numbers))), numbers, "float64")


def test_generators():
    cp.random.seed(3)
    numbers = cp.random.rand(4000)
    assert 0 <= float(numbers.min()) and float(numbers.max()) <= 1 and abs(float(numbers.mean()) - 0.5) < 0.05
    normal = cp.random.randn(4000)
    assert abs(float(normal.mean())) < 0.1 and abs(float(normal.std()) - 1) < 0.1

"""Elementwise pipelines: arithmetic of every type, mathematical functions, conversions, bits, random numbers, boundaries."""

import halide as hl
import numpy as np
import pytest

from gpu import buffer, integers, realize, realize_all, uniform

x, y, xi, yi = hl.vars("x y xi yi")
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]
TYPES = {"float16": hl.Float(16), "float32": hl.Float(32), "float64": hl.Float(64), "int8": hl.Int(8), "uint16": hl.UInt(16),
         "int32": hl.Int(32), "int64": hl.Int(64)}


def bounds(dtype):
    limits = np.iinfo(dtype)
    return limits.min, limits.max


def pairs(dtype):
    size = np.iinfo(dtype).bits // 8
    return tuple(integers(0, 256, (37, 61 * size), "uint8").view(dtype) for _ in range(2))


def tiled(function):
    return function.gpu_tile(x, y, xi, yi, 16, 4)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic(target, dtype):
    a, b = pairs(dtype)
    left, right = buffer(a), buffer(b)
    f = hl.Func("integers")
    f[x, y] = hl.Tuple([left[x, y] + right[x, y], left[x, y] - right[x, y], left[x, y] * right[x, y],
                        hl.min(left[x, y], right[x, y]), left[x, y] & right[x, y], left[x, y] ^ right[x, y]])
    results = realize_all(tiled(f), a.shape, target)
    for result, expected in zip(results, [a + b, a - b, a * b, np.minimum(a, b), a & b, a ^ b]):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_rounds_down(target, dtype):
    a, b = pairs(dtype)
    # Halide's remainder is never negative, and the quotient belongs to it.
    b = np.where(b <= 0, 3, b).astype(dtype)
    left, right = buffer(a), buffer(b)
    f = hl.Func("divisions")
    f[x, y] = hl.Tuple([left[x, y] / right[x, y], left[x, y] % right[x, y], left[x, y] / 7, left[x, y] % 7])
    results = realize_all(tiled(f), a.shape, target)
    seven = np.array(7, dtype)
    for result, expected in zip(results, [a // b, a % b, a // seven, a % seven]):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(target, dtype):
    a = pairs(dtype)[0]
    size = a.itemsize * 8
    left = buffer(a)
    f = hl.Func("bits")
    f[x, y] = hl.Tuple([hl.popcount(left[x, y]), hl.count_leading_zeros(left[x, y]), hl.count_trailing_zeros(left[x, y]),
                        left[x, y] << 3, left[x, y] >> 2])
    results = realize_all(tiled(f), a.shape, target)
    bits = [format(int(value), f"0{size}b") for value in a.view(f"uint{size}").ravel()]
    counts = np.array([text.count("1") for text in bits]).reshape(a.shape)
    np.testing.assert_array_equal(results[0], counts)
    nonzero = a != 0
    leading = np.array([len(text) - len(text.lstrip("0")) for text in bits]).reshape(a.shape)
    trailing = np.array([len(text) - len(text.rstrip("0")) for text in bits]).reshape(a.shape)
    np.testing.assert_array_equal(results[1][nonzero], leading[nonzero])
    np.testing.assert_array_equal(results[2][nonzero], trailing[nonzero])
    np.testing.assert_array_equal(results[3], a << 3)
    np.testing.assert_array_equal(results[4], a >> 2)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_saturation_and_averages(target, dtype):
    a, b = pairs(dtype)
    left, right = buffer(a), buffer(b)
    f = hl.Func("saturation")
    f[x, y] = hl.Tuple([hl.saturating_add(left[x, y], right[x, y]), hl.saturating_sub(left[x, y], right[x, y]),
                        hl.halving_add(left[x, y], right[x, y]), hl.rounding_halving_add(left[x, y], right[x, y]),
                        hl.absd(left[x, y], right[x, y])])
    results = realize_all(tiled(f), a.shape, target)
    low, high = bounds(dtype)
    a, b = a.astype(np.int64), b.astype(np.int64)
    expected = [np.clip(a + b, low, high), np.clip(a - b, low, high), (a + b) >> 1, (a + b + 1) >> 1, abs(a - b)]
    for result, right in zip(results, expected):
        np.testing.assert_array_equal(result, right)


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_vectors(target, dtype, lanes):
    a, b = integers(0, 100, (24, 64), dtype), integers(0, 100, (24, 64), dtype)
    left, right = buffer(a), buffer(b)
    f = hl.Func("vectors")
    f[x, y] = left[x, y] * 2 + right[x, y]
    xo = hl.Var("xo")
    f.split(x, xo, xi, lanes).vectorize(xi).gpu_tile(xo, y, hl.Var("a"), hl.Var("b"), 4, 8)
    np.testing.assert_array_equal(realize(f, a.shape, target), a * 2 + b)


@pytest.mark.parametrize("name, function, low, high", [
    ("exp", np.exp, -5, 5), ("log", np.log, 0.1, 9), ("sin", np.sin, -9, 9), ("cos", np.cos, -9, 9), ("tan", np.tan, -1.4, 1.4),
    ("asin", np.arcsin, -1, 1), ("acos", np.arccos, -1, 1), ("atan", np.arctan, -9, 9), ("sinh", np.sinh, -3, 3),
    ("cosh", np.cosh, -3, 3), ("tanh", np.tanh, -3, 3), ("asinh", np.arcsinh, -9, 9), ("acosh", np.arccosh, 1.1, 9),
    ("atanh", np.arctanh, -0.9, 0.9), ("sqrt", np.sqrt, 0, 9), ("floor", np.floor, -9, 9), ("ceil", np.ceil, -9, 9),
    ("round", np.rint, -9, 9), ("trunc", np.trunc, -9, 9), ("abs", np.abs, -9, 9)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions(warp_target, dtype, name, function, low, high):
    a = np.linspace(low, high, 500, dtype=dtype).reshape(20, 25)
    argument = buffer(a)
    f = hl.Func("function")
    f[x, y] = getattr(hl, name)(argument[x, y])
    results = realize(tiled(f), a.shape, warp_target)
    # Kernels divide and take roots approximately.
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(results, function(a), rtol=tolerance, atol=tolerance)


def test_power_and_angle(target):
    a, b = np.abs(uniform(20, 33)) + 0.1, uniform(20, 33)
    left, right = buffer(a), buffer(b)
    f = hl.Func("powers")
    f[x, y] = hl.Tuple([hl.pow(left[x, y], right[x, y]), hl.atan2(right[x, y], left[x, y])])
    powers, angles = realize_all(tiled(f), a.shape, target)
    np.testing.assert_allclose(powers, a**b, rtol=2e-5)
    np.testing.assert_allclose(angles, np.arctan2(b, a), rtol=2e-5)


@pytest.mark.parametrize("source", TYPES)
def test_conversions(target, source):
    a = integers(0, 100, (9, 40), source)
    argument = buffer(a)
    f = hl.Func("conversions")
    f[x, y] = hl.Tuple([hl.cast(destination, argument[x, y]) for destination in TYPES.values()])
    results = realize_all(tiled(f), a.shape, target)
    for result, destination in zip(results, TYPES, strict=True):
        np.testing.assert_array_equal(result, a.astype(destination))


def test_half_arithmetic(target):
    a, b = uniform(20, 64, dtype=np.float16), uniform(20, 64, dtype=np.float16)
    left, right = buffer(a), buffer(b)
    f = hl.Func("halves")
    f[x, y] = hl.Tuple([left[x, y] + right[x, y], left[x, y] * right[x, y], hl.max(left[x, y], right[x, y])])
    sums, products, maxima = realize_all(tiled(f), a.shape, target)
    np.testing.assert_allclose(sums, a + b, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(products, a * b, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(maxima, np.maximum(a, b))


def test_random_numbers_are_those_of_the_processor(target):
    f = hl.Func("random")
    f[x, y] = hl.Tuple([hl.random_float(3), hl.random_uint(4)])
    on_device, on_processor = hl.Func("on_device"), hl.Func("on_processor")
    for g in [on_device, on_processor]:
        g[x, y] = hl.Tuple([f[x, y][0], f[x, y][1]])
    numbers, words = realize_all(tiled(on_device), (64, 64), target)
    expected = realize_all(on_processor, (64, 64), hl.get_host_target())
    np.testing.assert_array_equal(numbers, expected[0])
    np.testing.assert_array_equal(words, expected[1])
    assert 0.4 < numbers.mean() < 0.6 and len(np.unique(words)) > 4000


@pytest.mark.parametrize("name, mode", [("repeat_edge", "edge"), ("mirror_image", "symmetric"), ("mirror_interior", "reflect"),
                                        ("repeat_image", "wrap")])
def test_boundaries(target, name, mode):
    a = integers(0, 1000, (17, 23), np.int32)
    argument = buffer(a)
    extended = getattr(hl.BoundaryConditions, name)(argument)
    f = hl.Func("boundaries")
    f[x, y] = extended[x - 5, y - 3]
    results = realize(tiled(f), (23, 33), target)
    np.testing.assert_array_equal(results, np.pad(a, ((3, 3), (5, 5)), mode=mode))


def test_mandelbrot(target):
    """A loop with a condition, in which the threads of a warp leave at different times."""
    size, steps = 48, 60
    cx = hl.cast(hl.Float(32), x) * hl.f32(3.0 / size) - 2.0
    cy = hl.cast(hl.Float(32), y) * hl.f32(2.0 / size) - 1.0
    t = hl.Var("t")
    z = hl.Func("z")
    z[x, y, t] = hl.Tuple([hl.f32(0), hl.f32(0)])
    r = hl.RDom([(1, steps)])
    before = z[x, y, r.x - 1]
    real, imaginary = before[0], before[1]
    z[x, y, r.x] = hl.Tuple([hl.strict_float(real * real - imaginary * imaginary + cx), hl.strict_float(2 * real * imaginary + cy)])
    count = hl.Func("count")
    s = hl.RDom([(0, steps)])
    value = z[x, y, s.x]
    count[x, y] = hl.i32(0)
    count[x, y] += hl.select(value[0] * value[0] + value[1] * value[1] < 4.0, 1, 0)
    z.compute_at(count, xi)
    output = hl.Func("output")
    output[x, y] = count[x, y]
    count.compute_at(output, xi)
    z.compute_at(output, xi)
    results = realize(output.gpu_tile(x, y, xi, yi, 8, 8), (size, size), target)
    c = (np.arange(size, dtype=np.float32) * np.float32(3.0 / size) - 2) + 1j * (
        np.arange(size, dtype=np.float32) * np.float32(2.0 / size) - 1)[:, None]
    value, expected = np.zeros_like(c), np.zeros(c.shape, int)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            expected += (value.real**2 + value.imag**2 < 4)
            value = value * value + c
    assert (np.abs(results - expected) <= 1).mean() > 0.98 and results.max() == steps and results.min() < 4

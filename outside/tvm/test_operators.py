"""Operators of TVM's library, compared with NumPy."""

import numpy as np
import pytest
from tvm import te, topi

from gpu import RANDOM, evaluate, integers, target, uniform


def close(results, expected, tolerance=1e-4):
    np.testing.assert_allclose(results, expected, rtol=tolerance, atol=tolerance)


def softmax(values):
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_functions(arch):
    a = uniform(40, 50)
    names = {"exp": np.exp, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "atan": np.arctan, "floor": np.floor, "ceil": np.ceil,
             "trunc": np.trunc, "abs": np.abs, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "negative": np.negative}
    results = evaluate(lambda x: [getattr(topi, name)(x) for name in names], [a], target(arch))
    for result, function in zip(results, names.values(), strict=True):
        close(result, function(a))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int32", "int64"])
def test_arithmetic(dtype):
    a, b = integers(1, 11, (30, 20), dtype), integers(1, 11, (20,), dtype)
    results = evaluate(lambda x, y: [x + y, x - y, x * y, topi.maximum(x, y), topi.minimum(x, y), topi.cast(x, "float32")], [a, b])
    for result, expected in zip(results, [a + b, a - b, a * b, np.maximum(a, b), np.minimum(a, b), a.astype("float32")], strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_product(dtype):
    a, b = uniform(100, 130, dtype=dtype), uniform(130, 70, dtype=dtype)
    close(evaluate(topi.matmul, [a, b])[0], a @ b)


def test_product_of_a_batch():
    a, b = uniform(4, 30, 20), uniform(4, 40, 20)
    close(evaluate(lambda x, y: topi.nn.batch_matmul(x, y), [a, b])[0], a @ b.transpose(0, 2, 1))


@pytest.mark.parametrize("rows", [60, 64])
def test_product_with_a_vector(rows):
    a, b = uniform(rows, 300), uniform(1, 300)
    close(evaluate(lambda x, y: topi.nn.dense(y, x), [a, b])[0], b @ a.T)


def test_product_of_bytes():
    a, b = integers(-128, 128, (40, 64), "int8"), integers(-128, 128, (48, 64), "int8")
    k = te.reduce_axis((0, 64), name="k")
    results = evaluate(lambda x, y: te.compute((40, 48), lambda i, j: te.sum(
        x[i, k].astype("int32") * y[j, k].astype("int32"), axis=k), name="product"), [a, b])[0]
    np.testing.assert_array_equal(results, a.astype("int32") @ b.astype("int32").T)


def test_convolution():
    images, filters = uniform(2, 4, 12, 12), uniform(8, 4, 3, 3)
    results = evaluate(lambda x, w: topi.nn.conv2d(x, w, 1, 1, 1, "NCHW"), [images, filters])[0]
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = sum(np.einsum("nchw,oc->nohw", padded[:, :, j:j + 12, i:i + 12], filters[:, :, j, i]) for j in range(3) for i in range(3))
    close(results, expected)


@pytest.mark.parametrize("kind, combine", [("max", np.max), ("avg", np.mean)])
def test_pooling(kind, combine):
    images = uniform(2, 4, 12, 12)
    results = evaluate(lambda x: topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), kind), [images])[0]
    close(results, combine(images.reshape(2, 4, 6, 2, 6, 2), axis=(3, 5)))


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_reduction(name, axis):
    a = uniform(30, 40)
    close(evaluate(lambda x: getattr(topi, name)(x, axis), [a])[0], getattr(np, name)(a, axis=axis), 1e-3)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_index_of_the_extremum(name):
    a = uniform(30, 40)
    np.testing.assert_array_equal(evaluate(lambda x: getattr(topi, name)(x, 1), [a])[0], getattr(np, name)(a, axis=1))


def test_softmax(arch):
    a = uniform(33, 257)
    close(evaluate(topi.nn.softmax, [a], target(arch))[0], softmax(a), 1e-5)


def test_normalization():
    a, weight, bias = uniform(20, 96), uniform(96), uniform(96)
    results = evaluate(lambda x, w, b: topi.nn.layer_norm(x, w, b, [1], 1e-5), [a, weight, bias])[0]
    scaled = (a - a.mean(axis=1, keepdims=True)) / np.sqrt(a.var(axis=1, keepdims=True) + 1e-5)
    close(results, scaled * weight + bias, 1e-3)


@pytest.mark.parametrize("shape", [(1, 1000), (20, 70)])
def test_sorting(shape):
    a = RANDOM.permutation(int(np.prod(shape))).reshape(shape).astype("float32")
    np.testing.assert_array_equal(evaluate(topi.gpu.sort, [a])[0], np.sort(a))
    np.testing.assert_array_equal(evaluate(lambda x: topi.gpu.argsort(x, dtype="int32"), [a])[0], np.argsort(a))


def test_largest_elements():
    a = uniform(20, 70)
    results = evaluate(lambda x: topi.gpu.topk(x, 5, ret_type="values"), [a])[0]
    np.testing.assert_array_equal(results, np.sort(a)[:, :-6:-1])


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("shape", [(1, 2000), (7, 90)], ids=["1x2000", "7x90"])
def test_scan(name, shape):
    a = integers(1, 3, shape, "int64") if name == "cumsum" else RANDOM.uniform(0.9, 1.1, shape)
    close(evaluate(lambda x: getattr(topi.gpu, name)(x, axis=1), [a])[0], getattr(np, name)(a, axis=1), 1e-6)


@pytest.mark.parametrize("reduction", ["update", "add", "mul", "min", "max"])
def test_scatter(reduction):
    a, updates = integers(1, 9, (6, 40), "float32"), integers(1, 9, (6, 40), "float32")
    indices = np.stack([RANDOM.permutation(40) for _ in range(6)]).astype("int64")
    results = evaluate(lambda x, i, u: topi.gpu.scatter_elements(x, i, u, 1, reduction), [a, indices, updates], rules=())[0]
    expected, rows = a.copy(), np.arange(6)[:, None]
    combine = {"update": lambda old, new: new, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[reduction]
    expected[rows, indices] = combine(a[rows, indices], updates)
    np.testing.assert_array_equal(results, expected)


def test_atomic_additions():
    a, indices, updates = np.zeros((5, 8), "float32"), integers(0, 5, (1, 300), "int64"), integers(0, 9, (300, 8), "float32")
    results = evaluate(lambda x, i, u: topi.gpu.scatter_nd(x, i, u, "add"), [a, indices, updates], rules=())[0]
    np.add.at(a, indices[0], updates)
    np.testing.assert_array_equal(results, a)


def test_shapes():
    a = uniform(6, 10, 4)
    results = evaluate(lambda x: [topi.transpose(x, (2, 0, 1)), topi.flip(x, 1), topi.reshape(x, (24, 10)), topi.tile(x, (2, 1, 1)),
                                topi.repeat(x, 2, 1)], [a])
    expected = [a.transpose(2, 0, 1), a[:, ::-1], a.reshape(24, 10), np.tile(a, (2, 1, 1)), a.repeat(2, 1)]
    for result, right in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, right)

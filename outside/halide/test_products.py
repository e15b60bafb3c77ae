"""Matrix products and convolutions, with tiles in shared memory, registers and warps."""

import halide as hl
import numpy as np
import pytest

from gpu import buffer, integers, realize, uniform

x, y, xi, yi, xo, yo, c = hl.vars("x y xi yi xo yo c")


def product(a, b, kind):
    """Returns the product of two matrices as a pipeline, with the buffers of the matrices."""
    left, right = buffer(a), buffer(b)
    r = hl.RDom([(0, a.shape[1])])
    total = hl.Func("total")
    total[x, y] += hl.cast(kind, left[r.x, y]) * hl.cast(kind, right[x, r.x])
    output = hl.Func("output")
    output[x, y] = total[x, y]
    return output, (left, right)


@pytest.mark.parametrize("shape", [(64, 64, 64), (50, 37, 70)])
def test_product(target, shape):
    rows, inner, columns = shape
    a, b = uniform(rows, inner), uniform(inner, columns)
    output, buffers = product(a, b, hl.Float(32))
    output.gpu_tile(x, y, xi, yi, 16, 16, hl.TailStrategy.GuardWithIf)
    np.testing.assert_allclose(realize(output, (rows, columns), target), a @ b, rtol=1e-4, atol=1e-4)


def test_product_with_tiles_in_shared_memory(target):
    a, b = uniform(64, 96), uniform(96, 128)
    buffers = buffer(a), buffer(b)
    left, right, total, output = (hl.Func(name) for name in ["left", "right", "total", "output"])
    left[x, y], right[x, y] = buffers[0][x, y], buffers[1][x, y]
    r = hl.RDom([(0, 96)])
    total[x, y] += left[r.x, y] * right[x, r.x]
    output[x, y] = total[x, y]
    ro, ri = hl.RVar("ro"), hl.RVar("ri")
    output.gpu_tile(x, y, xo, yo, xi, yi, 16, 16)
    total.compute_at(output, xo).gpu_threads(x, y)
    total.update().split(r.x, ro, ri, 16).reorder(ri, x, y, ro).gpu_threads(x, y)
    for operand in [left, right]:
        operand.compute_at(total, ro).store_in(hl.MemoryType.GPUShared).gpu_threads(operand.args()[0], operand.args()[1])
    np.testing.assert_allclose(realize(output, (64, 128), target), a @ b, rtol=1e-4, atol=1e-4)


def test_product_in_warps(warp_target):
    """The schedule of Halide's own example: a tile for each warp, whose lanes exchange one operand by shuffles."""
    a, b = uniform(64, 128), uniform(128, 128)
    buffers = buffer(a), buffer(b)
    left, right, total, output = (hl.Func(name) for name in ["left", "right", "total", "output"])
    left[x, y], right[x, y] = buffers[0][x, y], buffers[1][x, y]
    r = hl.RDom([(0, 128)])
    total[x, y] += left[r.x, y] * right[x, r.x]
    output[x, y] = total[x, y]
    warp, vector = 32, 2
    ty, xio, xii, ro, ri = hl.Var("ty"), hl.Var("xio"), hl.Var("xii"), hl.RVar("ro"), hl.RVar("ri")
    output.bound(x, 0, 128).bound(y, 0, 64)
    output.tile(x, y, xi, yi, warp * vector, 8).split(yi, ty, yi, 4).vectorize(xi, vector).split(xi, xio, xii, warp)
    output.reorder(xio, yi, xii, ty, x, y).unroll(xio).unroll(yi).gpu_blocks(x, y).gpu_threads(ty).gpu_lanes(xii)
    total.store_in(hl.MemoryType.Register).compute_at(output, x)
    for stage in [total, total.update()]:
        stage.split(x, xo, xi, warp * vector, hl.TailStrategy.RoundUp).split(y, ty, y, 4)
        stage.gpu_threads(ty).unroll(xi, vector).gpu_lanes(xi).unroll(xo).unroll(y)
    total.update().split(r.x, ro, ri, warp * vector).unroll(ri, 2).reorder(xi, xo, y, ri, ty, ro)
    right.compute_at(total, ty).split(x, xo, xi, warp).gpu_lanes(xi).unroll(xo).unroll(y)
    shuffled = left.in_()
    left.compute_at(total, ro).vectorize(x, vector).split(x, xo, xi, warp).gpu_lanes(xi).unroll(xo)
    left.split(y, yo, yi, 2).gpu_threads(yi).unroll(yo)
    shuffled.compute_at(total, ri).vectorize(x, vector).split(x, xo, xi, warp).gpu_lanes(xi).unroll(xo).unroll(y)
    np.testing.assert_allclose(realize(output, (64, 128), warp_target), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype, kind", [("float16", hl.Float(32)), ("float64", hl.Float(64)), ("int8", hl.Int(32)),
                                         ("uint8", hl.UInt(32)), ("int16", hl.Int(32)), ("int64", hl.Int(64))])
def test_product_of_types(target, dtype, kind):
    a, b = integers(0, 16, (32, 48), dtype), integers(0, 16, (48, 32), dtype)
    output, buffers = product(a, b, kind)
    output.gpu_tile(x, y, xi, yi, 8, 8)
    results = realize(output, (32, 32), target)
    np.testing.assert_array_equal(results, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("signed", [True, False])
def test_dot_products_of_bytes(target, signed):
    """Sums of four products of bytes, one instruction where the target has it."""
    low, high, dtype, kind = (-128, 128, "int8", hl.Int(32)) if signed else (0, 256, "uint8", hl.UInt(32))
    a, b = integers(low, high, (40, 64), dtype), integers(low, high, (40, 64), dtype)
    left, right = buffer(a), buffer(b)
    r = hl.RDom([(0, 64)])
    total = hl.Func("total")
    total[y] += hl.cast(kind, left[r.x, y]) * hl.cast(kind, right[r.x, y])
    output = hl.Func("output")
    output[y] = total[y]
    ro, ri = hl.RVar("ro"), hl.RVar("ri")
    output.gpu_tile(y, yi, 8)
    total.compute_at(output, yi)
    total.update().split(r.x, ro, ri, 4).atomic().vectorize(ri)
    np.testing.assert_array_equal(realize(output, (40,), target), (a.astype(np.int64) * b).sum(axis=1))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_convolution(target, dtype):
    image, kernel = integers(0, 10, (40, 56), dtype), integers(0, 5, (5, 3), dtype)
    pixels, weights = buffer(image), buffer(kernel)
    extended = hl.BoundaryConditions.constant_exterior(pixels, hl.cast(pixels.type(), 0))
    r = hl.RDom([(0, 3), (0, 5)])
    output = hl.Func("output")
    output[x, y] = hl.sum(hl.i32(extended[x + r.x - 1, y + r.y - 2]) * hl.i32(weights[r.x, r.y]))
    output.gpu_tile(x, y, xi, yi, 8, 8)
    padded = np.pad(image.astype(int), ((2, 2), (1, 1)))
    expected = sum(padded[j:j + 40, i:i + 56] * int(kernel[j, i]) for j in range(5) for i in range(3))
    np.testing.assert_array_equal(realize(output, image.shape, target), expected)


@pytest.mark.parametrize("memory", [hl.MemoryType.GPUShared, hl.MemoryType.Heap, None])
def test_separable_blur(target, memory):
    """The row sums in shared memory, in the memory of the device, or computed again for each thread."""
    image = integers(0, 255, (66, 66), "uint16")
    pixels = buffer(image)
    rows, output = hl.Func("rows"), hl.Func("output")
    rows[x, y] = pixels[x, y] + pixels[x + 1, y] + pixels[x + 2, y]
    output[x, y] = (rows[x, y] + rows[x, y + 1] + rows[x, y + 2]) / 9
    output.gpu_tile(x, y, xo, yo, xi, yi, 16, 8)
    if memory is not None:
        rows.compute_at(output, xo).store_in(memory).gpu_threads(x, y)
    sums = image[:, :-2] + image[:, 1:-1] + image[:, 2:]
    np.testing.assert_array_equal(realize(output, (64, 64), target), (sums[:-2] + sums[1:-1] + sums[2:]) // 9)


def test_convolution_layer(target):
    images, filters, bias = uniform(2, 18, 18, 8), uniform(3, 3, 8, 16), uniform(16)
    inputs, weights, offsets = buffer(images), buffer(filters), buffer(bias)
    n, r = hl.Var("n"), hl.RDom([(0, 8), (0, 3), (0, 3)])
    layer, output = hl.Func("layer"), hl.Func("output")
    layer[c, x, y, n] = offsets[c]
    layer[c, x, y, n] += weights[c, r.x, r.y, r.z] * inputs[r.x, x + r.y, y + r.z, n]
    output[c, x, y, n] = hl.max(0, layer[c, x, y, n])
    output.fuse(y, n, yo).gpu_tile(c, x, c, x, hl.Var("ci"), xi, 16, 8).gpu_blocks(yo)
    expected = np.zeros((2, 16, 16, 16), np.float32) + bias
    for j in range(3):
        for i in range(3):
            expected += images[:, j:j + 16, i:i + 16] @ filters[j, i]
    np.testing.assert_allclose(realize(output, (2, 16, 16, 16), target), np.maximum(expected, 0), rtol=1e-4, atol=1e-4)

"""Pipelines that Halide schedules itself, and device memory that pipelines share."""

from pathlib import Path

import halide as hl
import numpy as np
import pytest

from gpu import buffer, integers, realize, uniform

x, y, xi, yi = hl.vars("x y xi yi")
SCHEDULERS = ["Li2018", "Mullapudi2016", "Anderson2021"]

for name in SCHEDULERS:
    hl.load_plugin(str(Path(hl.__file__).with_name("lib64") / f"libautoschedule_{name.lower()}.so"))


def scheduled(output, shape, scheduler, target):
    """Returns the result of a pipeline with the schedule that Halide chooses."""
    output.set_estimates([(0, size) for size in reversed(shape)])
    pipeline = hl.Pipeline(output)
    parameters = {"Mullapudi2016": {"experimental_gpu_schedule": "1"}}.get(scheduler, {})
    pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(scheduler, parameters))
    result = pipeline.realize(list(reversed(shape)), target)
    result.copy_to_host()
    return np.array(result)


@pytest.fixture(params=SCHEDULERS)
def scheduler(request):
    return request.param


def test_scheduled_product(scheduler, warp_target):
    a, b = uniform(128, 96), uniform(96, 64)
    left, right = buffer(a), buffer(b)
    r = hl.RDom([(0, 96)])
    f = hl.Func("product")
    f[x, y] = 0.0
    f[x, y] += left[r.x, y] * right[x, r.x]
    np.testing.assert_allclose(scheduled(f, (128, 64), scheduler, warp_target), a @ b, rtol=1e-4, atol=1e-4)


def test_scheduled_blur(scheduler, warp_target):
    image = uniform(130, 130)
    pixels = buffer(image)
    rows, f = hl.Func("rows"), hl.Func("blur")
    rows[x, y] = (pixels[x, y] + pixels[x + 1, y] + pixels[x + 2, y]) / 3
    f[x, y] = (rows[x, y] + rows[x, y + 1] + rows[x, y + 2]) / 3
    sums = (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) / 3
    expected = (sums[:-2] + sums[1:-1] + sums[2:]) / 3
    np.testing.assert_allclose(scheduled(f, (128, 128), scheduler, warp_target), expected, rtol=1e-4, atol=1e-5)


def test_scheduled_corners(scheduler, warp_target):
    """Harris corners: ten stages of stencils."""
    image = uniform(70, 70)
    pixels = buffer(image)

    def at(i, j):
        return pixels[x + i, y + j]

    dx, dy, xx, yy, xy, f = (hl.Func(name) for name in ["dx", "dy", "xx", "yy", "xy", "corners"])
    dx[x, y] = (at(2, 0) - at(0, 0) + 2 * at(2, 1) - 2 * at(0, 1) + at(2, 2) - at(0, 2)) / 12
    dy[x, y] = (at(0, 2) - at(0, 0) + 2 * at(1, 2) - 2 * at(1, 0) + at(2, 2) - at(2, 0)) / 12
    xx[x, y], yy[x, y], xy[x, y] = dx[x, y] * dx[x, y], dy[x, y] * dy[x, y], dx[x, y] * dy[x, y]
    sums = [sum(g[x + i, y + j] for i in range(3) for j in range(3)) for g in (xx, yy, xy)]
    f[x, y] = sums[0] * sums[1] - sums[2] * sums[2] - hl.f32(0.04) * (sums[0] + sums[1]) * (sums[0] + sums[1])
    part = {(i, j): image[j:j + 68, i:i + 68] for i in range(3) for j in range(3)}
    horizontal = (part[2, 0] - part[0, 0] + 2 * part[2, 1] - 2 * part[0, 1] + part[2, 2] - part[0, 2]) / 12
    vertical = (part[0, 2] - part[0, 0] + 2 * part[1, 2] - 2 * part[1, 0] + part[2, 2] - part[2, 0]) / 12
    squares = [horizontal**2, vertical**2, horizontal * vertical]
    a, b, c = (sum(s[j:j + 66, i:i + 66] for i in range(3) for j in range(3)) for s in squares)
    expected = a * b - c * c - 0.04 * (a + b) ** 2
    np.testing.assert_allclose(scheduled(f, (64, 64), scheduler, warp_target), expected[:64, :64], rtol=1e-3, atol=1e-3)


def test_scheduled_histogram(scheduler, warp_target):
    a = integers(0, 64, (64, 64), "uint8")
    values = buffer(a)
    r = hl.RDom([(0, 64), (0, 64)])
    counts, f = hl.Func("counts"), hl.Func("cumulated")
    counts[x] = 0
    counts[hl.clamp(hl.i32(values[r.x, r.y]), 0, 63)] += 1
    f[x, y] = counts[hl.clamp(hl.i32(values[x, y]), 0, 63)]
    expected = np.bincount(a.ravel(), minlength=64)[a]
    np.testing.assert_array_equal(scheduled(f, a.shape, scheduler, warp_target), expected)


def test_scheduled_softmax(scheduler, warp_target):
    a = uniform(64, 96)
    values = buffer(a)
    r = hl.RDom([(0, 96)])
    largest, powers, total, f = (hl.Func(name) for name in ["largest", "powers", "total", "softmax"])
    largest[y] = hl.maximum(values[r.x, y])
    powers[x, y] = hl.exp(values[x, y] - largest[y])
    total[y] = 0.0
    total[y] += powers[r.x, y]
    f[x, y] = powers[x, y] / total[y]
    expected = np.exp(a - a.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(scheduled(f, a.shape, scheduler, warp_target), expected, rtol=1e-4, atol=1e-6)


def test_pipelines_share_device_memory(target):
    a = integers(0, 99, (32, 48), "int32")
    values = buffer(a)
    f, g = hl.Func("first"), hl.Func("second")
    f[x, y] = values[x, y] * 3
    between = f.gpu_tile(x, y, xi, yi, 16, 8).realize([48, 32], target)
    g[x, y] = between[x, y] + 1
    np.testing.assert_array_equal(realize(g.gpu_tile(x, y, xi, yi, 16, 8), a.shape, target), 3 * a + 1)


def test_host_changes_reach_the_device(target):
    a = integers(0, 99, (32, 48), "int32")
    values = buffer(a)
    f = hl.Func("first")
    f[x, y] = values[x, y] * 3
    f.gpu_tile(x, y, xi, yi, 16, 8)
    np.testing.assert_array_equal(realize(f, a.shape, target), 3 * a)
    values.fill(7)
    values.set_host_dirty()
    np.testing.assert_array_equal(realize(f, a.shape, target), np.full_like(a, 21))


def test_specialization_for_a_parameter(target):
    a = integers(0, 99, (32, 48), "int32")
    values = buffer(a)
    factor = hl.Param(hl.Int(32))
    f = hl.Func("scaled")
    f[x, y] = values[x, y] * factor
    f.gpu_tile(x, y, xi, yi, 16, 8).specialize(factor == 2)
    for value in [2, 5]:
        factor.set(value)
        np.testing.assert_array_equal(realize(f, a.shape, target), value * a)


def test_error_names_the_access(target):
    """The bounds of inputs are checked on the host, before a kernel runs."""
    values = buffer(np.zeros((8, 8), np.int32))
    f = hl.Func("outside")
    f[x, y] = values[x + 1, y]
    with pytest.raises(hl.HalideError, match="beyond the max"):
        realize(f.gpu_tile(x, y, xi, yi, 8, 8), (8, 8), target)

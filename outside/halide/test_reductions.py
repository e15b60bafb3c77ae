"""Reductions, scans, histograms, sorting, and recurrences."""

import halide as hl
import numpy as np
import pytest

from gpu import buffer, integers, realize, realize_all, uniform

x, y, xi, yi, xo, yo, u, v = hl.vars("x y xi yi xo yo u v")
KINDS = {"int32": hl.Int(32), "uint32": hl.UInt(32), "int64": hl.Int(64), "float32": hl.Float(32), "float64": hl.Float(64)}


@pytest.mark.parametrize("size", [1, 100, 4096])
def test_sum_of_partial_sums(target, size):
    a = integers(-100, 100, size, "int32")
    values = buffer(a)
    r = hl.RDom([(0, size)])
    ro, ri = hl.RVar("ro"), hl.RVar("ri")
    total = hl.Func("total")
    total[()] = 0
    total[()] += values[r.x]
    partial = total.update().split(r.x, ro, ri, 64).rfactor(ri, u)
    partial.compute_root().gpu_tile(u, xi, 32).update().gpu_tile(u, xi, 32)
    assert realize(total, (), target) == a.sum()


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64"])
def test_row_statistics(target, dtype):
    a = integers(0, 120, (48, 70), dtype)
    values = buffer(a)
    r = hl.RDom([(0, 70)])
    f = hl.Func("statistics")
    f[y] = hl.Tuple([hl.minimum(values[r.x, y]), hl.maximum(values[r.x, y]), hl.argmax(r, values[r.x, y])[0]])
    smallest, largest, index = realize_all(f.gpu_tile(y, yi, 16), (48,), target)
    np.testing.assert_array_equal(smallest, a.min(axis=1))
    np.testing.assert_array_equal(largest, a.max(axis=1))
    np.testing.assert_array_equal(index, a.argmax(axis=1))


def test_block_reduction(target):
    """The threads of a block add in a tree, with barriers between the steps."""
    a = uniform(12, 256)
    values = buffer(a)
    lane = hl.Var("lane")
    tree, output = hl.Func("tree"), hl.Func("output")
    tree[lane, y] = values[lane, y]
    for width in [128, 64, 32, 16, 8, 4, 2, 1]:
        r = hl.RDom([(0, width)])
        tree[r.x, y] += tree[r.x + width, y]
    output[y] = tree[0, y]
    output.gpu_blocks(y)
    tree.compute_at(output, y).store_in(hl.MemoryType.GPUShared).gpu_threads(lane)
    for index in range(8):
        tree.update(index).gpu_threads(tree.rvars(index)[0])
    np.testing.assert_allclose(realize(output, (12,), target), a.sum(axis=1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", KINDS)
def test_histogram(target, dtype):
    """Atomic additions."""
    a = integers(0, 50, (64, 64), "uint8")
    values = buffer(a)
    r = hl.RDom([(0, 64), (0, 64)])
    counts = hl.Func("counts")
    counts[x] = hl.cast(KINDS[dtype], 0)
    counts[hl.i32(values[r.x, r.y])] += hl.cast(KINDS[dtype], 1)
    rxi, ryi = hl.RVar("rxi"), hl.RVar("ryi")
    counts.gpu_tile(x, xi, 16)
    counts.update().atomic().gpu_tile(r.x, r.y, rxi, ryi, 16, 8)
    np.testing.assert_array_equal(realize(counts, (64,), target), np.bincount(a.ravel(), minlength=64))


@pytest.mark.parametrize("name", ["minimum", "maximum", "product"])
@pytest.mark.parametrize("dtype", KINDS)
def test_atomic_updates(target, name, dtype):
    """Atomic updates, which have an instruction or are loops that compare and swap."""
    a = integers(1, 3, 2048, dtype)
    values = buffer(a)
    r, ri = hl.RDom([(0, 2048)]), hl.RVar("ri")
    f = hl.Func("updates")
    f[x] = hl.cast(KINDS[dtype], {"minimum": 100, "maximum": 0, "product": 1}[name])
    before, value = f[r.x % 256], values[r.x]
    f[r.x % 256] = {"minimum": hl.min(before, value), "maximum": hl.max(before, value), "product": before * value}[name]
    f.gpu_tile(x, xi, 32)
    f.update().atomic().gpu_tile(r.x, ri, 64)
    columns = a.reshape(8, 256)
    expected = {"minimum": columns.min, "maximum": columns.max, "product": columns.prod}[name](axis=0)
    np.testing.assert_array_equal(realize(f, (256,), target), expected.astype(dtype))


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_scan_of_rows(target, dtype):
    a = integers(0, 9, (40, 100), dtype)
    values = buffer(a)
    r = hl.RDom([(1, 99)])
    f = hl.Func("scan")
    f[x, y] = values[x, y]
    f[r.x, y] += f[r.x - 1, y]
    f.gpu_tile(x, y, xi, yi, 32, 4)
    f.update().gpu_tile(y, yi, 8)
    np.testing.assert_array_equal(realize(f, a.shape, target), a.cumsum(axis=1))


def test_scan_in_blocks(target):
    """A scan in three kernels: of blocks, of their sums, and the addition of the sums before."""
    a = integers(0, 9, 2048, "int32")
    values = buffer(a)
    lanes, blocks = 64, 32
    inside, sums, output = hl.Func("inside"), hl.Func("sums"), hl.Func("output")
    r, s = hl.RDom([(1, lanes - 1)]), hl.RDom([(1, blocks)])
    inside[x, y] = values[x + lanes * y]
    inside[r.x, y] += inside[r.x - 1, y]
    sums[y] = 0
    sums[s.x] = sums[s.x - 1] + inside[lanes - 1, s.x - 1]
    output[x] = inside[x % lanes, x / lanes] + sums[x / lanes]
    inside.compute_root().gpu_tile(x, y, xi, yi, 32, 4).update().gpu_tile(y, yi, 8)
    sums.compute_root().gpu_tile(y, yi, 8)
    sums.update().gpu_single_thread()
    output.gpu_tile(x, xi, 64)
    np.testing.assert_array_equal(realize(output, (2048,), target), a.cumsum())


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_bitonic_sort(target, dtype):
    """A kernel for each step of the network."""
    size = 256
    a = integers(-1000, 1000, size, dtype)
    values = buffer(a)
    current = hl.Func("start")
    current[x] = values[x]
    current.compute_root().gpu_tile(x, xi, 32)
    length = 2
    while length <= size:
        distance = length // 2
        while distance >= 1:
            step = hl.Func(f"step_{length}_{distance}")
            partner = x ^ distance
            smaller, larger = hl.min(current[x], current[partner % size]), hl.max(current[x], current[partner % size])
            step[x] = hl.select(((x & length) == 0) == ((x & distance) == 0), smaller, larger)
            step.compute_root().gpu_tile(x, xi, 32)
            current = step
            distance //= 2
        length *= 2
    np.testing.assert_array_equal(realize(current, (size,), target), np.sort(a))


def test_recursive_filter(target):
    a = uniform(32, 64)
    values = buffer(a)
    r = hl.RDom([(1, 63)])
    f = hl.Func("filter")
    f[x, y] = values[x, y]
    f[r.x, y] = 0.75 * f[r.x - 1, y] + 0.25 * f[r.x, y]
    f[62 - r.x + 1, y] = 0.5 * f[62 - r.x + 2, y] + 0.5 * f[62 - r.x + 1, y]
    f.gpu_tile(x, y, xi, yi, 32, 4)
    f.update(0).gpu_tile(y, yi, 8)
    f.update(1).gpu_tile(y, yi, 8)
    expected = a.copy()
    for i in range(1, 64):
        expected[:, i] = np.float32(0.75) * expected[:, i - 1] + np.float32(0.25) * expected[:, i]
    for i in range(62, -1, -1):
        expected[:, i] = np.float32(0.5) * expected[:, i + 1] + np.float32(0.5) * expected[:, i]
    np.testing.assert_allclose(realize(f, a.shape, target), expected, rtol=1e-5, atol=1e-6)


def test_game_of_life(target):
    """Eight generations, a kernel for each."""
    a = integers(0, 2, (32, 48), "uint8")
    values = buffer(a)
    current = hl.Func("start")
    current[x, y] = values[x, y]
    current.compute_root().gpu_tile(x, y, xi, yi, 16, 8)
    r = hl.RDom([(-1, 3), (-1, 3)])
    for generation in range(8):
        following, count = hl.Func(f"generation_{generation}"), hl.Func(f"count_{generation}")
        count[x, y] = hl.u8(0)
        count[x, y] += current[(x + r.x + 48) % 48, (y + r.y + 32) % 32]
        following[x, y] = hl.u8((count[x, y] == 3) | ((count[x, y] == 4) & (current[x, y] == 1)))
        following.compute_root().gpu_tile(x, y, xi, yi, 16, 8)
        current = following
    expected = a
    for _ in range(8):
        around = sum(np.roll(expected, (j, i), (0, 1)) for j in (-1, 0, 1) for i in (-1, 0, 1))
        expected = ((around == 3) | ((around == 4) & (expected == 1))).astype(np.uint8)
    np.testing.assert_array_equal(realize(current, a.shape, target), expected)


@pytest.mark.parametrize("offset", [1, 3, 31, -1, -5])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float16"])
def test_shuffles(warp_target, dtype, offset):
    """Lanes read a register of other lanes."""
    a = integers(0, 99, (16, 192), dtype)
    values = buffer(a)
    registers, output = hl.Func("registers"), hl.Func("output")
    registers[x, y] = values[x, y] + values[x, y]
    output[x, y] = registers[x + 32, y] + registers[x + 32 + offset, y]
    output.split(x, xo, xi, 32, hl.TailStrategy.RoundUp).split(y, yo, yi, 4).reorder(xi, yi, xo, yo)
    output.gpu_blocks(xo, yo).gpu_threads(yi).gpu_lanes(xi)
    registers.compute_at(output, yi).split(x, u, v, 32, hl.TailStrategy.RoundUp).gpu_lanes(v).unroll(u)
    expected = 2 * (a[:, 32:128] + a[:, 32 + offset:128 + offset])
    np.testing.assert_array_equal(realize(output, (16, 96), warp_target), expected.astype(dtype))


def test_scatter_and_gather(target):
    a, order = integers(0, 999, 512, "int32"), np.random.default_rng(5).permutation(512).astype("int32")
    values, places = buffer(a), buffer(order)
    r = hl.RDom([(0, 512)])
    scattered, output = hl.Func("scattered"), hl.Func("output")
    scattered[x] = 0
    scattered[hl.clamp(places[r.x], 0, 511)] = values[r.x]
    output[x] = scattered[hl.clamp(places[x], 0, 511)]
    ri = hl.RVar("ri")
    scattered.compute_root().gpu_tile(x, xi, 32)
    scattered.update().allow_race_conditions().gpu_tile(r.x, ri, 32)
    output.gpu_tile(x, xi, 32)
    np.testing.assert_array_equal(realize(output, (512,), target), a)

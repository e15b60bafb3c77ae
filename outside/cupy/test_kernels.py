"""Kernels that the program writes itself: elementwise, reduction, raw kernels, modules, and kernels in Python."""

import cupy as cp
import numpy as np
import pytest
from cupyx import jit

RAW = r"""
extern "C" {
__constant__ float factors[4];
__device__ int calls;

__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void reverse(int* data, int n) {
    extern __shared__ int part[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) part[i] = data[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = part[n - 1 - i];
}

__global__ void scale(float* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factors[i % 4];
    if (i == 0) atomicAdd(&calls, 1);
}

__global__ void warp_sum(const int* data, int* sums) {
    int value = data[blockIdx.x * 32 + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    if (threadIdx.x == 0) sums[blockIdx.x] = value;
}
}

template <typename T> __global__ void fill(T* data, T value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = value;
}
"""


def test_elementwise():
    kernel = cp.ElementwiseKernel("T x, T y, raw float32 z", "T out", "out = x * x - y + z[i % 2]", "squares")
    x, y, z = np.arange(12, dtype=np.float32).reshape(3, 4), np.float32(2), np.array([1, 5], dtype=np.float32)
    found = kernel(cp.asarray(x), y, cp.asarray(z))
    np.testing.assert_array_equal(found.get(), x * x - y + np.resize(z, 12).reshape(3, 4))


@pytest.mark.parametrize("size", [1, 31, 1000, 100_000])
def test_reduction(size):
    kernel = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "norm2")
    x = np.arange(size, dtype=np.int64) % 17
    assert int(kernel(cp.asarray(x))) == int((x * x).sum())


def test_reduction_over_an_axis():
    kernel = cp.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", "-1e30", "largest")
    x = np.random.default_rng(3).uniform(-5, 5, (6, 7, 8)).astype(np.float32)
    np.testing.assert_array_equal(kernel(cp.asarray(x), axis=1).get(), x.max(axis=1))


def test_raw_kernel():
    kernel, n = cp.RawKernel(RAW, "saxpy"), 1000
    x, y = np.arange(n, dtype=np.float32), np.ones(n, dtype=np.float32)
    d = cp.asarray(y)
    kernel((4,), (256,), (np.float32(3), cp.asarray(x), d, np.int32(n)))
    np.testing.assert_array_equal(d.get(), 3 * x + y)
    assert kernel.max_threads_per_block >= 256 and kernel.num_regs > 0


def test_dynamic_shared_memory():
    kernel, n = cp.RawKernel(RAW, "reverse"), 15_000
    kernel.max_dynamic_shared_size_bytes = 4 * n
    d = cp.arange(n, dtype=cp.int32)
    kernel((1,), (128,), (d, np.int32(n)), shared_mem=4 * n)
    np.testing.assert_array_equal(d.get(), np.arange(n)[::-1])


def test_globals_of_a_module():
    module = cp.RawModule(code=RAW)
    factors = cp.ndarray(4, cp.float32, module.get_global("factors"))
    factors[...] = cp.asarray([1, 2, 3, 4], dtype=cp.float32)
    d = cp.ones(100, dtype=cp.float32)
    module.get_function("scale")((1,), (128,), (d, np.int32(100)))
    np.testing.assert_array_equal(d.get(), np.resize([1, 2, 3, 4], 100))
    assert int(cp.ndarray((), cp.int32, module.get_global("calls"))) == 1


def test_warp_sum():
    data, sums = np.arange(320, dtype=np.int32), cp.zeros(10, dtype=cp.int32)
    cp.RawKernel(RAW, "warp_sum")((10,), (32,), (cp.asarray(data), sums))
    np.testing.assert_array_equal(sums.get(), data.reshape(10, 32).sum(axis=1))


@pytest.mark.parametrize(("name", "dtype"), [("fill<float>", "float32"), ("fill<long long>", "int64"), ("fill<short>", "int16")])
def test_templates(name, dtype):
    module = cp.RawModule(code=RAW, options=("-std=c++17",), name_expressions=[name])
    d = cp.zeros(100, dtype=dtype)
    module.get_function(name)((1,), (128,), (d, np.dtype(dtype).type(7), np.int32(100)))
    assert (d.get() == 7).all()


@jit.rawkernel()
def block_sum(x, y, size):
    part = jit.shared_memory(cp.float32, 128)
    thread = jit.threadIdx.x
    i = jit.blockIdx.x * jit.blockDim.x + thread
    part[thread] = x[i] if i < size else cp.float32(0)
    jit.syncthreads()
    if thread == 0:
        total = cp.float32(0)
        for k in range(128):
            total += part[k]
        jit.atomic_add(y, 0, total)


def test_kernel_in_python():
    x, y = cp.arange(1000, dtype=cp.float32), cp.zeros(1, dtype=cp.float32)
    block_sum((8,), (128,), (x, y, cp.uint32(1000)))
    assert float(y[0]) == 499_500


def test_compile_error_has_the_log():
    with pytest.raises(cp.cuda.compiler.CompileException, match="undeclared"):
        cp.RawKernel('extern "C" __global__ void k() { undeclared = 1; }', "k").compile()

"""Kernels by CuPy: generated from expressions, and from CUDA C++."""

import cupy as cp

import values

total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
multiply = cp.RawKernel(
    r"""
extern "C" __global__ void multiply(const float* a, const float* b, float* c, int size) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float product = 0;
    for (int k = 0; k < size; ++k) product += a[row * size + k] * b[k * size + column];
    c[row * size + column] = product;
}
""",
    "multiply",
)

x = cp.asarray(values.VECTOR)
added = x + cp.asarray(values.OTHER)
product, tiles = cp.empty_like(cp.asarray(values.LEFT)), values.SIZE // 16
arguments = (cp.asarray(values.LEFT), cp.asarray(values.RIGHT), product, cp.int32(values.SIZE))
multiply((tiles, tiles), (16, 16), arguments)
values.check(added.get(), float(total(x)), product.get())

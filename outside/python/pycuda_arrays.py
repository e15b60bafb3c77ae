"""Kernels by PyCUDA: CUDA C++ that nvcc compiles, and kernels that it generates from expressions."""

import numpy as np
import pycuda_tests  # noqa: F401, compiles to PTX
import pycuda.autoinit  # noqa: F401, makes a context
from pycuda import gpuarray
from pycuda.compiler import SourceModule

import values

multiply = SourceModule(
    r"""
__global__ void multiply(const float* a, const float* b, float* c, int size) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float product = 0;
    for (int k = 0; k < size; ++k) product += a[row * size + k] * b[k * size + column];
    c[row * size + column] = product;
}
"""
).get_function("multiply")

x = gpuarray.to_gpu(values.VECTOR)
added = x + gpuarray.to_gpu(values.OTHER)
product, tiles = gpuarray.zeros_like(gpuarray.to_gpu(values.LEFT)), values.SIZE // 16
arguments = (gpuarray.to_gpu(values.LEFT), gpuarray.to_gpu(values.RIGHT), product, np.int32(values.SIZE))
multiply(*arguments, block=(16, 16, 1), grid=(tiles, tiles))
values.check(added.get(), gpuarray.sum(x).get(), product.get())

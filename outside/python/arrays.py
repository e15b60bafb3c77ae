"""Kernels by numba-cuda: Python functions that it compiles."""

import numpy as np
from numba import cuda, float32

import values


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def total(x, result):
    part = cuda.shared.array(256, float32)
    i, thread = cuda.grid(1), cuda.threadIdx.x
    part[thread] = x[i] if i < x.size else 0
    cuda.syncthreads()
    width = 128
    while width > 0:
        if thread < width:
            part[thread] += part[thread + width]
        cuda.syncthreads()
        width //= 2
    if thread == 0:
        cuda.atomic.add(result, 0, part[0])


@cuda.jit
def multiply(a, b, c):
    row, column = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        product = float32(0)
        for k in range(a.shape[1]):
            product += a[row, k] * b[k, column]
        c[row, column] = product


blocks, tiles = (values.COUNT + 255) // 256, values.SIZE // 16
x = cuda.to_device(values.VECTOR)
added = cuda.device_array_like(x)
add[blocks, 256](x, cuda.to_device(values.OTHER), added)
sums = cuda.to_device(np.zeros(1, dtype=np.float32))
total[blocks, 256](x, sums)
product = cuda.device_array_like(values.LEFT)
multiply[(tiles, tiles), (16, 16)](cuda.to_device(values.LEFT), cuda.to_device(values.RIGHT), product)
values.check(added.copy_to_host(), sums.copy_to_host()[0], product.copy_to_host())

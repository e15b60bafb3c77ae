"""Kernels by Warp: Python functions that it translates to CUDA C++ and compiles to PTX."""

import numpy as np
import warp as wp

import values

wp.config.cuda_output = "ptx"
wp.config.quiet = True


@wp.kernel
def add(a: wp.array[float], b: wp.array[float], c: wp.array[float]):
    i = wp.tid()
    c[i] = a[i] + b[i]


@wp.kernel
def total(x: wp.array[float], result: wp.array[float]):
    wp.atomic_add(result, 0, x[wp.tid()])


@wp.kernel
def multiply(a: wp.array2d[float], b: wp.array2d[float], c: wp.array2d[float]):
    row, column = wp.tid()
    product = float(0.0)
    for k in range(a.shape[1]):
        product += a[row, k] * b[k, column]
    c[row, column] = product


with wp.ScopedDevice("cuda:0"):
    x, other, added = wp.array(values.VECTOR), wp.array(values.OTHER), wp.zeros(values.COUNT, dtype=float)
    wp.launch(add, dim=values.COUNT, inputs=[x, other, added])
    sums = wp.zeros(1, dtype=float)
    wp.launch(total, dim=values.COUNT, inputs=[x, sums])
    product = wp.zeros((values.SIZE, values.SIZE), dtype=float)
    wp.launch(multiply, dim=product.shape, inputs=[wp.array(values.LEFT), wp.array(values.RIGHT), product])
    values.check(added.numpy(), sums.numpy()[0], product.numpy())

"""Kernels by Dr.Jit, which traces operations on arrays and generates PTX itself."""

import drjit as dr
from drjit.cuda import Float, UInt32

import values


@dr.syntax
def multiply(left, right, size):
    row, column = dr.meshgrid(dr.arange(UInt32, size), dr.arange(UInt32, size), indexing="ij")
    product, k = dr.zeros(Float, size * size), UInt32(0)
    while k < size:
        product += dr.gather(Float, left, row * size + k) * dr.gather(Float, right, k * size + column)
        k += 1
    return product


x, other = Float(values.VECTOR), Float(values.OTHER)
total = dr.zeros(Float, 1)
dr.scatter_add(total, x, UInt32(0))
product = multiply(Float(values.LEFT.ravel()), Float(values.RIGHT.ravel()), values.SIZE)
values.check((x + other).numpy(), total.numpy()[0], product.numpy().reshape(values.SIZE, values.SIZE))

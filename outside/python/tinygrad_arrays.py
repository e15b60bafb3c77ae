"""Kernels by tinygrad, which it generates from tensor expressions."""

from tinygrad import Device, Tensor

import values

assert Device.DEFAULT == "CUDA"
x = Tensor(values.VECTOR)
added = x + Tensor(values.OTHER)
product = Tensor(values.LEFT) @ Tensor(values.RIGHT)
values.check(added.numpy(), x.sum().item(), product.numpy())

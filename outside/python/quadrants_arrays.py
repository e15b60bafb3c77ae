"""Kernels by Quadrants, which compiles functions in Python to PTX by LLVM."""

import quadrants as qd

import values

qd.init(arch=qd.cuda, enable_fallback=False)


def on_device(array):
    result = qd.ndarray(qd.f32, array.shape)
    result.from_numpy(array)
    return result


@qd.kernel
def add(a: qd.types.ndarray(), b: qd.types.ndarray(), c: qd.types.ndarray()):
    for i in a:
        c[i] = a[i] + b[i]


@qd.kernel
def total(a: qd.types.ndarray()) -> qd.f32:
    result = 0.0
    for i in a:
        result += a[i]
    return result


@qd.kernel
def multiply(a: qd.types.ndarray(), b: qd.types.ndarray(), c: qd.types.ndarray()):
    for row, column in c:
        product = 0.0
        for k in range(a.shape[1]):
            product += a[row, k] * b[k, column]
        c[row, column] = product


x, other, added = (on_device(array) for array in (values.VECTOR, values.OTHER, values.VECTOR))
left, right, product = (on_device(array) for array in (values.LEFT, values.RIGHT, values.LEFT))
add(x, other, added)
multiply(left, right, product)
values.check(added.to_numpy(), total(x), product.to_numpy())

"""Launches kernels of Triton without PyTorch and without a GPU: `triton.compile` needs neither, and CUDA's driver API does the rest."""

import ctypes

import numpy as np
import triton
from cuda.bindings import driver
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def check(result):
    """Returns the values of a call, and raises an error that names the code."""
    code, *values = result
    if code != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(driver.cuGetErrorName(code)[1].decode())
    return values[0] if len(values) == 1 else values


check(driver.cuInit(0))
DEVICE = check(driver.cuDeviceGet(0))
check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(DEVICE))))

MAJOR = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
MINOR = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
CAPABILITY = 10 * check(driver.cuDeviceGetAttribute(MAJOR, DEVICE)) + check(driver.cuDeviceGetAttribute(MINOR, DEVICE))

RANDOM = np.random.default_rng(7)
POINTERS = {"float32": "*fp32", "float16": "*fp16", "int32": "*i32"}


class Array:
    """Device memory with the contents of an array. Types that NumPy lacks are bytes with the name of Triton's type."""

    def __init__(self, values, pointer=None):
        self.values = np.ascontiguousarray(values)
        self.pointer = pointer or POINTERS[self.values.dtype.name]
        self.address = check(driver.cuMemAlloc(self.values.nbytes))
        check(driver.cuMemcpyHtoD(self.address, self.values.ctypes.data, self.values.nbytes))

    def get(self):
        check(driver.cuMemcpyDtoH(self.values.ctypes.data, self.address, self.values.nbytes))
        return self.values


def compiled(kernel, capability, arguments, constants, **options):
    """Compiles a kernel for a compute capability, and returns its function and Triton's metadata."""
    names = [name for name in kernel.arg_names if name not in constants]
    signature = {name: kind(argument) for name, argument in zip(names, arguments, strict=True)}
    signature |= {name: "constexpr" for name in constants}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    result = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    module = check(driver.cuModuleLoadData(result.asm["ptx"].encode() + b"\0"))
    return check(driver.cuModuleGetFunction(module, result.metadata.name.encode())), result.metadata


def kind(argument):
    if isinstance(argument, Array):
        return argument.pointer
    return "fp32" if isinstance(argument, float) else "i32"


def launch(kernel, capability, grid, *arguments, constants, **options):
    """Launches a kernel of Triton, and waits for it."""
    function, metadata = compiled(kernel, capability, arguments, constants, **options)
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    check(driver.cuFuncSetAttribute(function, attribute, metadata.shared))
    values = [int(argument.address) if isinstance(argument, Array) else argument for argument in arguments]
    types = [
        ctypes.c_uint64 if isinstance(argument, Array) else ctypes.c_float if isinstance(argument, float) else ctypes.c_int32
        for argument in arguments
    ]
    # Two pointers to scratch memory, which these kernels do not use, follow the arguments.
    values += [0, 0]
    types += [ctypes.c_uint64, ctypes.c_uint64]
    grid = (*grid, 1, 1)[:3]
    threads = 32 * metadata.num_warps
    check(driver.cuLaunchKernel(function, *grid, threads, 1, 1, metadata.shared, 0, (tuple(values), tuple(types)), 0))
    check(driver.cuCtxSynchronize())


def uniform(*shape, dtype=np.float32):
    """Returns random values from -1 to 1."""
    return RANDOM.uniform(-1, 1, shape).astype(dtype)

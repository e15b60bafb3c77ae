"""Kernels by cuda-bindings: the C functions of the driver and of NVRTC. With a path as its argument it leaves the PTX there."""

import pathlib
import sys

import numpy as np
from cuda.bindings import driver, nvrtc

import values


def called(result):
    """What a call gave besides its code, which must be success."""
    code, *rest = result
    assert int(code) == 0, code
    return rest[0] if len(rest) == 1 else rest


def compiled():
    source = (pathlib.Path(__file__).parent.parent / "kernels.cu").read_bytes()
    program = called(nvrtc.nvrtcCreateProgram(source, b"kernels.cu", 0, [], []))
    called(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_75"]))
    ptx = bytearray(called(nvrtc.nvrtcGetPTXSize(program)))
    buffer = bytes(ptx)
    called(nvrtc.nvrtcGetPTX(program, buffer))
    return buffer


def on_device(array):
    address = called(driver.cuMemAlloc(array.nbytes))
    called(driver.cuMemcpyHtoD(address, array, array.nbytes))
    return address


def run(module, name, grid, block, *arguments):
    function = called(driver.cuModuleGetFunction(module, name))
    places = [np.array(int(a), dtype=np.uint32 if kind == "n" else np.uint64) for kind, a in arguments]
    pointers = np.array([place.ctypes.data for place in places], dtype=np.uint64)
    called(driver.cuLaunchKernel(function, *grid, *block, 0, 0, pointers.ctypes.data, 0))


def result(address, like):
    array = np.zeros_like(like)
    called(driver.cuMemcpyDtoH(array, address, array.nbytes))
    return array


def main():
    ptx = compiled()
    if len(sys.argv) > 1:
        pathlib.Path(sys.argv[1]).write_bytes(ptx.rstrip(b"\0"))
    called(driver.cuInit(0))
    device = called(driver.cuDeviceGet(0))
    called(driver.cuCtxSetCurrent(called(driver.cuDevicePrimaryCtxRetain(device))))
    module = called(driver.cuModuleLoadData(ptx))
    blocks = ((values.COUNT + 255) // 256, 1, 1)

    x, y, z = (on_device(array) for array in (values.VECTOR, values.OTHER, np.zeros_like(values.VECTOR)))
    run(module, b"add", blocks, (256, 1, 1), ("p", x), ("p", y), ("p", z), ("n", values.COUNT))
    total = on_device(np.zeros(1, dtype=np.float32))
    run(module, b"sum", blocks, (256, 1, 1), ("p", x), ("p", total), ("n", values.COUNT))
    a, b, c = (on_device(array) for array in (values.LEFT, values.RIGHT, np.zeros_like(values.LEFT)))
    tiles = values.SIZE // 16
    run(module, b"multiply", (tiles, tiles, 1), (16, 16, 1), ("p", a), ("p", b), ("p", c), ("n", values.SIZE))
    called(driver.cuCtxSynchronize())
    sums = result(total, np.zeros(1, dtype=np.float32))
    values.check(result(z, values.VECTOR), sums[0], result(c, values.LEFT))
    for address in (x, y, z, total, a, b, c):
        called(driver.cuMemFree(address))
    called(driver.cuModuleUnload(module))
    called(driver.cuDevicePrimaryCtxRelease(device))


main()

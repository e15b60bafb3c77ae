"""Kernels by cuda-core: programs, streams, buffers and launches as Python objects."""

import pathlib

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

import values

device = Device()
device.set_current()
stream = device.create_stream()
pinned = LegacyPinnedMemoryResource()
source = (pathlib.Path(__file__).parent.parent / "kernels.cu").read_text()
module = Program(source, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("ptx")


def on_host(buffer, like):
    return np.from_dlpack(buffer).view(np.float32)[: like.size].reshape(like.shape)


def on_device(array):
    """A buffer of the device with the numbers of an array, by way of pinned memory."""
    staging = pinned.allocate(array.nbytes, stream=stream)
    on_host(staging, array)[...] = array
    buffer = device.memory_resource.allocate(array.nbytes, stream=stream)
    buffer.copy_from(staging, stream=stream)
    stream.sync()
    return buffer


def result(buffer, like):
    staging = pinned.allocate(like.nbytes, stream=stream)
    staging.copy_from(buffer, stream=stream)
    stream.sync()
    return on_host(staging, like).copy()


def run(name, grid, block, *arguments):
    launch(stream, LaunchConfig(grid=grid, block=block), module.get_kernel(name), *arguments)


x, y, z = (on_device(array) for array in (values.VECTOR, values.OTHER, np.zeros_like(values.VECTOR)))
total = on_device(np.zeros(1, dtype=np.float32))
a, b, c = (on_device(array) for array in (values.LEFT, values.RIGHT, np.zeros_like(values.LEFT)))
blocks, tiles = (values.COUNT + 255) // 256, values.SIZE // 16
run("add", blocks, 256, x, y, z, np.uint32(values.COUNT))
run("sum", blocks, 256, x, total, np.uint32(values.COUNT))
run("multiply", (tiles, tiles), (16, 16), a, b, c, np.uint32(values.SIZE))
sums = result(total, np.zeros(1, dtype=np.float32))
values.check(result(z, values.VECTOR), sums[0], result(c, values.LEFT))

"""Ranks of one process, with arrays on their devices."""

import threading

import nccl.core as nccl
import numpy as np
from cuda.bindings import driver
from cuda.core import Device

TYPES = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64]


def call(function, *arguments):
    """Calls a function of the driver, and returns its results."""
    code, *results = function(*arguments)
    assert code == driver.CUresult.CUDA_SUCCESS, (function, code)
    return results[0] if results else None


class Array:
    """An array in the memory of a device, or a part of one."""

    def __init__(self, device, values, address=None):
        self.device, self.shape, self.dtype = device, np.shape(values), np.asarray(values).dtype
        self.owns = address is None
        if not self.owns:
            self.address = address
            return
        Device(device).set_current()
        values = np.ascontiguousarray(values)
        self.address = int(call(driver.cuMemAlloc, max(values.nbytes, 1)))
        call(driver.cuMemcpyHtoD, self.address, values.ctypes.data, values.nbytes)

    def __del__(self):
        if self.owns:
            driver.cuMemFree(self.address)

    @property
    def __cuda_array_interface__(self):
        data = (self.address, False)
        return {"shape": self.shape, "typestr": self.dtype.str, "data": data, "version": 3, "strides": None}

    def part(self, start, end):
        """Returns some of the elements; this array must live as long."""
        address = self.address + start * self.dtype.itemsize
        return Array(self.device, np.empty(end - start, self.dtype), address)

    def values(self, stream=None):
        """Copies the elements to the host."""
        Device(self.device).set_current()
        values = np.empty(self.shape, self.dtype)
        if stream is None:
            call(driver.cuMemcpyDtoH, values.ctypes.data, self.address, values.nbytes)
        else:
            call(driver.cuMemcpyDtoHAsync, values.ctypes.data, self.address, values.nbytes, stream.handle)
            stream.sync()
        return values


class Ranks:
    """The communicators of all devices, which this thread uses in groups."""

    def __init__(self, size):
        self.size = size
        self.communicators = nccl.Communicator.init_all(size)

    def arrays(self, values):
        """Copies the array of each rank to its device."""
        return [Array(rank, value) for rank, value in enumerate(values)]

    def empty(self, shape, dtype):
        return self.arrays([np.full(shape, 77, dtype) for _ in range(self.size)])

    def run(self, operation):
        """Calls `operation(communicator, rank)` for each rank, in a group."""
        with nccl.group():
            for rank, communicator in enumerate(self.communicators):
                operation(communicator, rank)

    def values(self, arrays):
        """Copies the array of each rank from its device."""
        return [array.values() for array in arrays]

    def close(self):
        for communicator in self.communicators:
            if communicator.is_valid:
                communicator.destroy()


def threads(size, operation):
    """Calls `operation(rank)` in a thread for each rank, on its device, and returns the results. Raises the first exception."""
    results, failures = [None] * size, []

    def run(rank):
        try:
            Device(rank).set_current()
            results[rank] = operation(rank)
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    started = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]
    return results


def numbers(size, shape, dtype, seed=1):
    """Returns an array of small numbers for each rank, whose sums and products are exact in every type."""
    generator = np.random.default_rng(seed)
    return [generator.integers(1, 4, shape).astype(dtype) for _ in range(size)]

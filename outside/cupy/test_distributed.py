"""Ranks on several devices: CuPy's binding of NCCL, and its process groups, compared with NumPy."""

import json
import socket
import subprocess
import sys
import threading

import cupy as cp
import numpy as np
import pytest
from cupy.cuda import nccl
from cupyx import distributed

SIZE = 4
NUMBERS = {
    np.int8: nccl.NCCL_INT8,
    np.uint8: nccl.NCCL_UINT8,
    np.int32: nccl.NCCL_INT32,
    np.uint32: nccl.NCCL_UINT32,
    np.int64: nccl.NCCL_INT64,
    np.uint64: nccl.NCCL_UINT64,
    np.float16: nccl.NCCL_FLOAT16,
    np.float32: nccl.NCCL_FLOAT32,
    np.float64: nccl.NCCL_FLOAT64,
}
OPERATORS = {nccl.NCCL_SUM: np.sum, nccl.NCCL_PROD: np.prod, nccl.NCCL_MAX: np.max, nccl.NCCL_MIN: np.min}


def numbers(shape, dtype=np.float32, seed=1):
    """Returns an array of small numbers for each rank, whose sums and products are exact in every type."""
    generator = np.random.default_rng(seed)
    values = [generator.integers(1, 4, shape).astype(dtype) for _ in range(SIZE)]
    if np.dtype(dtype).kind == "c":
        values = [value + 1j * generator.integers(1, 4, shape) for value in values]
    return [value.astype(dtype) for value in values]


@pytest.fixture(scope="module")
def communicators():
    return nccl.NcclCommunicator.initAll(list(range(SIZE)))


def on_devices(values):
    arrays = []
    for rank, value in enumerate(values):
        with cp.cuda.Device(rank):
            arrays.append(cp.asarray(value))
    return arrays


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_all_reduce_in_a_group(communicators, operator, dtype):
    given = numbers((3, 5), dtype)
    sources, targets = on_devices(given), on_devices([np.zeros((3, 5), dtype)] * SIZE)
    nccl.groupStart()
    for rank, communicator in enumerate(communicators):
        with cp.cuda.Device(rank):
            communicator.allReduce(
                sources[rank].data.ptr, targets[rank].data.ptr, 15, NUMBERS[dtype], operator, cp.cuda.Stream.null.ptr
            )
    nccl.groupEnd()
    for target in targets:
        np.testing.assert_array_equal(target.get(), OPERATORS[operator](given, axis=0).astype(dtype))


def test_threads_meet_under_an_identifier():
    identifier, results = nccl.get_unique_id(), [None] * SIZE

    def run(rank):
        with cp.cuda.Device(rank):
            communicator = nccl.NcclCommunicator(SIZE, identifier, rank)
            values, stream = cp.full(4, rank, cp.float32), cp.cuda.Stream(non_blocking=True)
            cp.cuda.Stream.null.synchronize()
            communicator.allReduce(values.data.ptr, values.data.ptr, 4, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.ptr)
            stream.synchronize()
            communicator.check_async_error()
            identity = (communicator.size(), communicator.rank_id(), communicator.device_id())
            results[rank] = (identity, values.get().tolist())
            communicator.destroy()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(SIZE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [((SIZE, rank, rank), [6.0] * 4) for rank in range(SIZE)]


def test_two_ranks_on_one_device_are_refused():
    with pytest.raises(nccl.NcclError):
        nccl.NcclCommunicator.initAll([2, 2])


def test_version_and_descriptions_of_errors():
    assert nccl.get_version() >= 21800
    with pytest.raises(nccl.NcclError, match="INVALID_ARGUMENT"):
        nccl.NcclCommunicator(2, nccl.get_unique_id(), 2)


def broadcast(group, rank, given):
    memory = cp.asarray(given[rank])
    group.broadcast(memory, root=2)
    return memory, given[2]


def reduce(group, rank, given):
    source, target = cp.asarray(given[rank]), cp.zeros_like(cp.asarray(given[rank]))
    group.reduce(source, target, root=1)
    return target, sum(given) if rank == 1 else np.zeros_like(given[0])


def all_reduce(group, rank, given):
    source = cp.asarray(given[rank])
    target = cp.zeros_like(source)
    group.all_reduce(source, target)
    return target, sum(given)


def reduce_scatter(group, rank, given):
    wide = [np.stack([value] * SIZE) * (np.arange(SIZE) + 1).reshape(-1, 1, 1) for value in given]
    wide = [value.astype(given[0].dtype) for value in wide]
    target = cp.zeros_like(cp.asarray(given[0]))
    group.reduce_scatter(cp.asarray(wide[rank]), target, target.size)
    return target, sum(wide)[rank]


def all_gather(group, rank, given):
    source = cp.asarray(given[rank])
    target = cp.zeros((SIZE, *source.shape), source.dtype)
    group.all_gather(source, target, source.size)
    return target, np.stack(given)


def ring(group, rank, given):
    target = cp.zeros_like(cp.asarray(given[rank]))
    if rank == 0:
        group.send(cp.asarray(given[rank]), 1)
        group.recv(target, SIZE - 1)
    else:
        group.recv(target, rank - 1)
        group.send(cp.asarray(given[rank]), (rank + 1) % SIZE)
    return target, given[rank - 1]


def exchange(group, rank, given):
    target = cp.zeros_like(cp.asarray(given[rank]))
    group.send_recv(cp.asarray(given[rank]), target, rank ^ 1)
    return target, given[rank ^ 1]


def scatter(group, rank, given):
    target = cp.zeros_like(cp.asarray(given[rank]))
    group.scatter(cp.asarray(np.stack(given)), target, root=3)
    return target, given[rank]


def gather(group, rank, given):
    target = cp.zeros((SIZE, *given[0].shape), given[0].dtype)
    group.gather(cp.asarray(given[rank]), target, root=0)
    return target, np.stack(given) if rank == 0 else np.zeros((SIZE, *given[0].shape), given[0].dtype)


def all_to_all(group, rank, given):
    wide = [np.stack([value + part for part in range(SIZE)]).astype(value.dtype) for value in given]
    target = cp.zeros_like(cp.asarray(wide[rank]))
    group.all_to_all(cp.asarray(wide[rank]), target)
    return target, np.stack([value[rank] for value in wide])


OPERATIONS = [broadcast, reduce, all_reduce, reduce_scatter, all_gather, ring, exchange, scatter, gather, all_to_all]
TYPES = [np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32, np.float64, np.complex64, np.complex128]
# CuPy does not reduce complex numbers.
CASES = [
    (operation, dtype)
    for operation in OPERATIONS
    for dtype in TYPES
    if np.dtype(dtype).kind != "c" or operation not in (reduce, all_reduce, reduce_scatter)
]


def run_rank(rank, port):
    """Runs all operations with all types, and prints the names of those with wrong results."""
    wrong = []
    with cp.cuda.Device(rank):
        group = distributed.init_process_group(SIZE, rank, host="127.0.0.1", port=port)
        for operation, dtype in CASES:
            target, expected = operation(group, rank, numbers((2, 3), dtype))
            if not np.array_equal(target.get(), expected):
                wrong.append(f"{operation.__name__} {np.dtype(dtype).name}")
        group.stop()
    print(json.dumps(wrong))


@pytest.fixture(scope="module")
def wrong_operations():
    """Runs the ranks in processes, and returns the names of the operations with wrong results."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, str(port)]
    processes = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(SIZE)]
    try:
        outputs = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * SIZE
    return [name for output in outputs for name in json.loads(output)]


@pytest.mark.parametrize("operation, dtype", CASES)
def test_operation_of_processes(wrong_operations, operation, dtype):
    assert f"{operation.__name__} {np.dtype(dtype).name}" not in wrong_operations


if __name__ == "__main__":
    run_rank(int(sys.argv[2]), int(sys.argv[1]))

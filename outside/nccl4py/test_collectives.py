"""The collectives, compared with NumPy."""

import nccl.core as nccl
import numpy as np
import pytest
from cuda.core import Device
from ranks import TYPES, Array, numbers

OPERATORS = {
    nccl.SUM: lambda values: np.sum(values, axis=0),
    nccl.PROD: lambda values: np.prod(values, axis=0),
    nccl.MIN: lambda values: np.min(values, axis=0),
    nccl.MAX: lambda values: np.max(values, axis=0),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_all_reduce(ranks, operator, dtype):
    given = numbers(ranks.size, 37, dtype)
    sources, targets = ranks.arrays(given), ranks.empty(37, dtype)
    ranks.run(lambda comm, rank: comm.allreduce(sources[rank], targets[rank], operator))
    expected = OPERATORS[operator](np.stack(given)).astype(dtype)
    for target in ranks.values(targets):
        np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_average(ranks, dtype):
    given = [(value * ranks.size).astype(dtype) for value in numbers(ranks.size, 9, dtype)]
    memory = ranks.arrays(given)
    ranks.run(lambda comm, rank: comm.allreduce(memory[rank], memory[rank], nccl.AVG))
    expected = (np.sum(np.stack(given), axis=0) / ranks.size).astype(dtype)
    for value in ranks.values(memory):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("on_device", [False, True])
def test_pre_multiplied_sum(ranks, dtype, on_device):
    given = numbers(ranks.size, 11, dtype)
    factors = [np.array([rank + 1], dtype) for rank in range(ranks.size)]
    scalars = ranks.arrays(factors) if on_device else factors
    operators = [comm.create_pre_mul_sum(scalars[rank]) for rank, comm in enumerate(ranks.communicators)]
    memory = ranks.arrays(given)
    ranks.run(lambda comm, rank: comm.allreduce(memory[rank], memory[rank], operators[rank]))
    expected = sum(factor * value for factor, value in zip(factors, given)).astype(dtype)
    for value in ranks.values(memory):
        np.testing.assert_array_equal(value, expected)
    for operator in operators:
        operator.close()


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("root", range(4))
def test_reduce(ranks, root, in_place):
    given = numbers(ranks.size, (5, 7), np.float32, root)
    sources = ranks.arrays(given)
    targets = sources if in_place else ranks.empty((5, 7), np.float32)
    ranks.run(lambda comm, rank: comm.reduce(sources[rank], targets[rank], nccl.SUM, root=root))
    for rank, (value, before) in enumerate(zip(ranks.values(targets), given)):
        unchanged = before if in_place else np.full_like(before, 77)
        np.testing.assert_array_equal(value, sum(given) if rank == root else unchanged)


@pytest.mark.parametrize("root", range(4))
@pytest.mark.parametrize("in_place", [False, True])
def test_broadcast(ranks, root, in_place):
    given = numbers(ranks.size, 100, np.float64, root)
    sources = ranks.arrays(given)
    targets = sources if in_place else ranks.empty(100, np.float64)
    ranks.run(lambda comm, rank: comm.broadcast(sources[rank], targets[rank], root))
    for value in ranks.values(targets):
        np.testing.assert_array_equal(value, given[root])


@pytest.mark.parametrize("dtype", TYPES)
def test_all_gather(ranks, dtype):
    given = numbers(ranks.size, 13, dtype)
    sources, targets = ranks.arrays(given), ranks.empty(13 * ranks.size, dtype)
    ranks.run(lambda comm, rank: comm.allgather(sources[rank], targets[rank]))
    for value in ranks.values(targets):
        np.testing.assert_array_equal(value, np.concatenate(given))


def test_all_gather_in_place(ranks):
    given = numbers(ranks.size, 6, np.int32)
    whole = [np.zeros(6 * ranks.size, np.int32) for _ in given]
    for rank, value in enumerate(given):
        whole[rank][6 * rank : 6 * rank + 6] = value
    memory = ranks.arrays(whole)
    ranks.run(lambda comm, rank: comm.allgather(memory[rank].part(6 * rank, 6 * rank + 6), memory[rank]))
    for value in ranks.values(memory):
        np.testing.assert_array_equal(value, np.concatenate(given))


@pytest.mark.parametrize("in_place", [False, True])
def test_reduce_scatter(ranks, in_place):
    given = numbers(ranks.size, 8 * ranks.size, np.float32)
    sources = ranks.arrays(given)
    targets = [memory.part(8 * rank, 8 * rank + 8) for rank, memory in enumerate(sources)]
    if not in_place:
        targets = ranks.empty(8, np.float32)
    ranks.run(lambda comm, rank: comm.reduce_scatter(sources[rank], targets[rank], nccl.SUM))
    for rank, value in enumerate(ranks.values(targets)):
        np.testing.assert_array_equal(value, sum(given)[8 * rank : 8 * rank + 8])


def test_all_to_all(ranks):
    given = numbers(ranks.size, (ranks.size, 5), np.int64)
    sources, targets = ranks.arrays(given), ranks.empty((ranks.size, 5), np.int64)
    ranks.run(lambda comm, rank: comm.alltoall(sources[rank], targets[rank]))
    for rank, value in enumerate(ranks.values(targets)):
        np.testing.assert_array_equal(value, np.stack([source[rank] for source in given]))


@pytest.mark.parametrize("root", range(4))
def test_gather_and_scatter(ranks, root):
    given = numbers(ranks.size, 3, np.float32, root)
    sources, gathered = ranks.arrays(given), ranks.empty(3 * ranks.size, np.float32)
    ranks.run(lambda comm, rank: comm.gather(sources[rank], gathered[rank], root))
    np.testing.assert_array_equal(ranks.values(gathered)[root], np.concatenate(given))
    scattered = ranks.empty(3, np.float32)
    ranks.run(lambda comm, rank: comm.scatter(gathered[rank], scattered[rank], root))
    for value, source in zip(ranks.values(scattered), given):
        np.testing.assert_array_equal(value, source)


def test_ring_of_transfers(ranks):
    given = numbers(ranks.size, 1000, np.uint8)
    sources, targets = ranks.arrays(given), ranks.empty(1000, np.uint8)

    def exchange(comm, rank):
        comm.send(sources[rank], (rank + 1) % ranks.size)
        comm.recv(targets[rank], (rank - 1) % ranks.size)

    ranks.run(exchange)
    for rank, value in enumerate(ranks.values(targets)):
        np.testing.assert_array_equal(value, given[rank - 1])


def test_transfer_to_the_rank_itself(ranks):
    given = numbers(ranks.size, 4, np.float16)
    sources, targets = ranks.arrays(given), ranks.empty(4, np.float16)

    def exchange(comm, rank):
        comm.recv(targets[rank], rank)
        comm.send(sources[rank], rank)

    ranks.run(exchange)
    for value, source in zip(ranks.values(targets), given):
        np.testing.assert_array_equal(value, source)


def test_transfers_between_two_ranks_arrive_in_order(ranks):
    sources = [Array(0, np.full(2, index, np.int32)) for index in range(5)]
    targets = [Array(3, np.zeros(2, np.int32)) for _ in sources]
    with nccl.group():
        for source in sources:
            ranks.communicators[0].send(source, 3)
        for target in targets:
            ranks.communicators[3].recv(target, 0)
    assert [target.values()[0] for target in targets] == [0, 1, 2, 3, 4]


def test_group_with_operations_of_several_kinds_and_an_inner_group(ranks):
    given = numbers(ranks.size, 6, np.float32)
    sources, sums, first = ranks.arrays(given), ranks.empty(6, np.float32), ranks.empty(6, np.float32)
    with nccl.group():
        ranks.run(lambda comm, rank: comm.allreduce(sources[rank], sums[rank], nccl.SUM))
        ranks.run(lambda comm, rank: comm.broadcast(sources[rank], first[rank], 0))
    for value, copy in zip(ranks.values(sums), ranks.values(first)):
        np.testing.assert_array_equal(value, sum(given))
        np.testing.assert_array_equal(copy, given[0])


def test_operations_on_streams_are_ordered_with_copies(ranks):
    given = numbers(ranks.size, 50, np.float32)
    memory, streams = ranks.arrays(given), []
    for rank in range(ranks.size):
        Device(rank).set_current()
        streams.append(Device(rank).create_stream())
    for _ in range(3):
        ranks.run(lambda comm, rank: comm.allreduce(memory[rank], memory[rank], nccl.MAX, stream=streams[rank]))
    for array, stream in zip(memory, streams):
        np.testing.assert_array_equal(array.values(stream), np.max(given, axis=0))


def test_minimum_and_maximum_of_signed_zeros_infinities_and_subnormals(ranks):
    rows = [[-0.0, np.inf, 1e-40], [0.0, -np.inf, 2e-40], [1.0, 0.0, 3e-40], [-1.0, 1.0, -1e-40]]
    given = [np.array(row, np.float32) for row in rows]
    for operator, function in ((nccl.MIN, np.min), (nccl.MAX, np.max)):
        memory = ranks.arrays(given)
        ranks.run(lambda comm, rank: comm.allreduce(memory[rank], memory[rank], operator))
        for value in ranks.values(memory):
            np.testing.assert_array_equal(value, function(np.stack(given), axis=0))

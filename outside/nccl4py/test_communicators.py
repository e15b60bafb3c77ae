"""Communicators: their creation, in threads and processes, their parts, and their end."""

import multiprocessing
import threading

import nccl.core as nccl
import numpy as np
import pytest
from cuda.core import Device
from ranks import Array, numbers, threads

SIZE = 4


def sum_of_ones(communicator):
    """Returns the sum of a 1 of each rank, which is the number of ranks."""
    one = Array(communicator.device.device_id, np.ones(3, np.float32))
    communicator.allreduce(one, one, nccl.SUM)
    values = one.values()
    assert (values == values[0]).all()
    return values[0]


def test_ranks_have_their_numbers_and_devices(ranks):
    for rank, communicator in enumerate(ranks.communicators):
        assert (communicator.rank, communicator.nranks, communicator.device.device_id) == (rank, SIZE, rank)


@pytest.mark.parametrize("count", [1, 2])
def test_threads_meet_under_the_first_identifier(count):
    identifiers = [nccl.get_unique_id() for _ in range(count)]

    def run(rank):
        communicator = nccl.Communicator.init(SIZE, rank, identifiers[0] if count == 1 else identifiers)
        total = sum_of_ones(communicator)
        communicator.destroy()
        return total

    assert threads(SIZE, run) == [SIZE] * SIZE


def test_one_thread_creates_all_ranks_in_a_group():
    identifier, communicators = nccl.get_unique_id(), []
    with nccl.group():
        for rank in range(SIZE):
            Device(rank).set_current()
            communicators.append(nccl.Communicator.init(SIZE, rank, identifier))
    assert [communicator.rank for communicator in communicators] == list(range(SIZE))
    memory = [Array(rank, np.array([rank], np.int32)) for rank in range(SIZE)]
    with nccl.group():
        for communicator, array in zip(communicators, memory):
            communicator.allreduce(array, array, nccl.SUM)
    assert memory[2].values() == [6]
    for communicator in communicators:
        communicator.destroy()


def test_non_blocking_communicators_connect_and_finish():
    identifier = nccl.get_unique_id()
    progress = nccl.NCCLConfig(blocking=False)

    def settled(communicator):
        while communicator.get_async_error() == 7:  # ncclInProgress
            pass
        assert communicator.get_async_error() == 0

    def run(rank):
        communicator = nccl.Communicator.init(SIZE, rank, identifier, progress)
        settled(communicator)
        total = sum_of_ones(communicator)
        communicator.finalize()
        settled(communicator)
        communicator.destroy()
        return total

    assert threads(SIZE, run) == [SIZE] * SIZE


def rank_of_process(rank, identifier, results):
    Device(rank).set_current()
    communicator = nccl.Communicator.init(SIZE, rank, nccl.UniqueId.from_bytes(identifier))
    memory = Array(rank, numbers(SIZE, 10, np.float32)[rank])
    communicator.allreduce(memory, memory, nccl.SUM)
    results.put((rank, memory.values()))
    communicator.destroy()


def test_processes_meet_under_an_identifier():
    context = multiprocessing.get_context("spawn")
    results, identifier = context.Queue(), nccl.get_unique_id()
    # The process that has created the identifier is rank 0.
    others = [
        context.Process(target=rank_of_process, args=(rank, identifier.as_bytes, results)) for rank in range(1, SIZE)
    ]
    for process in others:
        process.start()
    rank_of_process(0, identifier.as_bytes, results)
    sums = dict(results.get(timeout=100) for _ in range(SIZE))
    for process in others:
        process.join()
        assert process.exitcode == 0
    for rank in range(SIZE):
        np.testing.assert_array_equal(sums[rank], sum(numbers(SIZE, 10, np.float32)))


def test_split_into_odd_and_even_ranks():
    identifier = nccl.get_unique_id()

    def run(rank):
        whole = nccl.Communicator.init(SIZE, rank, identifier)
        # The keys reverse the order.
        part = whole.split(color=rank % 2, key=-rank)
        result = (part.rank, part.nranks, sum_of_ones(part))
        part.destroy()
        whole.destroy()
        return result

    assert threads(SIZE, run) == [(1, 2, 2), (1, 2, 2), (0, 2, 2), (0, 2, 2)]


def test_split_without_a_color_is_no_communicator():
    identifier = nccl.get_unique_id()

    def run(rank):
        whole = nccl.Communicator.init(SIZE, rank, identifier)
        part = whole.split(color=None if rank == 0 else 5)
        result = sum_of_ones(part) if part.is_valid else None
        if part.is_valid:
            part.destroy()
        whole.destroy()
        return result

    assert threads(SIZE, run) == [None, 3, 3, 3]


def test_one_thread_splits_in_a_group(ranks):
    with nccl.group():
        parts = [communicator.split(color=rank // 2) for rank, communicator in enumerate(ranks.communicators)]
    assert [(part.rank, part.nranks) for part in parts] == [(0, 2), (1, 2), (0, 2), (1, 2)]
    for part in parts:
        part.destroy()


def test_shrink_leaves_ranks_out():
    identifier = nccl.get_unique_id()

    def run(rank):
        whole = nccl.Communicator.init(SIZE, rank, identifier)
        if rank == 1:
            whole.destroy()
            return None
        rest = whole.shrink([1])
        result = (rest.rank, sum_of_ones(rest))
        rest.destroy()
        whole.destroy()
        return result

    assert threads(SIZE, run) == [(0, 3), None, (1, 3), (2, 3)]


def test_grow_adds_ranks():
    identifier, further, is_known = nccl.get_unique_id(), [], threading.Event()

    def run(rank):
        if rank >= 2:
            is_known.wait()
            whole = nccl.Communicator().grow(SIZE, further[0], rank=rank)
        else:
            small = nccl.Communicator.init(2, rank, identifier)
            if rank == 0:
                further.append(small.get_unique_id())
                is_known.set()
                whole = small.grow(SIZE, further[0])
            else:
                whole = small.grow(SIZE)
            small.destroy()
        result = (whole.rank, sum_of_ones(whole))
        whole.destroy()
        return result

    assert threads(SIZE, run) == [(rank, SIZE) for rank in range(SIZE)]


def test_registered_memory_and_windows(own_ranks):
    memory = Array(0, np.ones(100, np.float32))
    own_ranks.communicators[0].register_buffer(memory).close()

    identifier = nccl.get_unique_id()

    def run(rank):
        communicator = nccl.Communicator.init(SIZE, rank, identifier)
        buffer = nccl.mem_alloc(1 << 16)
        window = communicator.register_window(buffer)
        assert window.handle != 0
        communicator.allreduce(buffer, buffer, nccl.SUM)
        window.close()
        nccl.mem_free(buffer)
        communicator.destroy()

    threads(SIZE, run)


def test_two_ranks_on_one_device_are_refused():
    with pytest.raises(Exception, match="InvalidUsage"):
        nccl.Communicator.init_all([1, 1])


def test_device_that_does_not_exist_is_refused():
    with pytest.raises(Exception, match="InvalidArgument|UnhandledCudaError|InvalidUsage"):
        nccl.Communicator.init_all([0, 99])


def test_rank_out_of_range_is_refused():
    with pytest.raises(Exception, match="InvalidArgument"):
        nccl.Communicator.init(2, 2, nccl.get_unique_id())


def test_operation_after_finalize_is_refused(own_ranks):
    communicator = own_ranks.communicators[1]
    communicator.finalize()
    with pytest.raises(Exception, match="Invalid"):
        sum_of_ones(communicator)
    assert communicator.get_last_error()


def test_root_out_of_range_is_refused(ranks):
    memory = Array(0, np.ones(1, np.float32))
    with pytest.raises(Exception, match="InvalidArgument"):
        ranks.communicators[0].reduce(memory, memory, nccl.SUM, root=SIZE)


def test_aborted_communicator_ends_an_operation_that_waits():
    identifier = nccl.get_unique_id()

    def run(rank):
        communicator = nccl.Communicator.init(2, rank, identifier)
        if rank == 0:
            one, stream = Array(0, np.ones(3, np.float32)), Device(0).create_stream()
            # Rank 1 does not call it.
            communicator.allreduce(one, one, nccl.SUM, stream=stream)
            communicator.abort()
            stream.sync()
        else:
            communicator.abort()

    threads(2, run)


def test_descriptions_of_errors_differ():
    texts = {nccl.get_error_string(code) for code in range(8)}
    assert len(texts) == 8 and all(texts)

"""Replays the traces of `tests/traces` on PyTorch's caching allocator.

Prints for each trace the peak of the memory that the allocator reserves, divided by the peak of the
memory in use, and the calls that allocate or map device memory in the last of eight repetitions.

    python traces.py ../../tests/traces/*.log
    PYTORCH_ALLOC_CONF=expandable_segments:True python traces.py ../../tests/traces/*.log
"""

import os
import pathlib
import sys
import time

import torch

REPETITIONS = 8


def events(path):
    """Returns the lines of a log: operation, address, bytes and stream."""
    lines = path.read_text().splitlines()[1:]
    for line in lines:
        _, operation, address, size, _, stream = line.split()
        yield operation, address, int(size), stream


def replay(trace, streams):
    """Replays a trace once, and returns the longest time of an operation in microseconds."""
    live = {}
    longest = 0
    for operation, address, size, stream in trace:
        start = time.perf_counter_ns()
        if operation == "allocate":
            with torch.cuda.stream(streams[stream]):
                tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
            live[address] = tensor, stream
            del tensor
        else:
            tensor, owner = live.pop(address)
            if stream != owner:
                # The allocator waits for this stream before it uses the memory elsewhere.
                tensor.record_stream(streams[stream])
            del tensor
        longest = max(longest, time.perf_counter_ns() - start)
    live.clear()
    torch.cuda.synchronize()
    return longest / 1000


def main():
    print(f"PyTorch {torch.__version__}, {os.environ.get('PYTORCH_ALLOC_CONF', 'default')}")
    for path in map(pathlib.Path, sys.argv[1:]):
        trace = list(events(path))
        streams = {name: torch.cuda.Stream() for name in sorted({event[3] for event in trace})}
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        calls = []
        try:
            for _ in range(REPETITIONS):
                before = torch.cuda.memory_stats()["num_device_alloc"]
                longest = replay(trace, streams)
                calls.append(torch.cuda.memory_stats()["num_device_alloc"] - before)
        except torch.OutOfMemoryError:
            print(f"{path.stem:36} out of memory")
            continue
        stats = torch.cuda.memory_stats()
        reserved = stats["reserved_bytes.all.peak"]
        used = stats["requested_bytes.all.peak"]
        print(
            f"{path.stem:36} reserved / used {reserved / used:.3f} ({reserved >> 20} / {used >> 20} MiB), "
            f"device allocations {calls}, longest operation {longest:.0f} us"
        )


main()

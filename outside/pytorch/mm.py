"""The host time of queued products of small matrices in PyTorch: the counterpart of Curium's example library_times.

python mm.py [--size 16]

Prints the median and the quartiles of the host time of `torch.mm` into an existing result, for bf16 and f32. As in the example, a sample is
200 calls between two synchronizations, of which only the calls are measured.
"""

import argparse
import statistics
import time

import torch

CALLS = 200
ROUNDS = 81
WARM_UP = 2


def measured(work):
    """Returns the quartiles of the host time of a call in nanoseconds."""

    def sample():
        work()
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(CALLS):
            work()
        elapsed = time.perf_counter_ns() - begin
        torch.cuda.synchronize()
        return elapsed / CALLS

    samples = [sample() for _ in range(WARM_UP + ROUNDS)]
    return statistics.quantiles(samples[WARM_UP:], n=4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=16)
    size = parser.parse_args().size
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}", flush=True)
    with torch.no_grad():
        for name, dtype in [("bf16", torch.bfloat16), ("f32", torch.float32)]:
            a, b, out = (torch.zeros(size, size, device="cuda", dtype=dtype) for _ in range(3))
            lower, median, upper = measured(lambda: torch.mm(a, b, out=out))
            print(f"mm {name:4} {size} × {size}: {median:.0f} ns (quartiles {lower:.0f} to {upper:.0f})", flush=True)


if __name__ == "__main__":
    main()

"""A transformer block, forward and backward, in bf16: the counterpart in PyTorch of Curium's example 17_transformer_block.

python block.py [--batch 8] [--sequence 1024] [--width 1024] [--heads 16] [--full] [--check]

Prints the median and the quartiles of the times of the forward pass and of a step, which also computes the gradients of all parameters and
of the input, for each form: eager, in CUDA graphs, and compiled (alone, and in CUDA graphs), with scaled_dot_product_attention and with an
explicit softmax. The times are those of the host clock around several repetitions with one synchronization, as in the example. A form that
does not work on this machine is reported and left out.
"""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F

SAMPLES = 25
REPLAYS = 20
WARM_UP = 50


class Block(torch.nn.Module):
    def __init__(self, width, heads, is_causal, is_explicit):
        super().__init__()
        self.heads, self.is_causal, self.is_explicit = heads, is_causal, is_explicit
        self.norm1 = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.projection = torch.nn.Linear(width, width)
        self.norm2 = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def attention(self, q, k, v):
        if not self.is_explicit:
            return F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if self.is_causal:
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(mask, float("-inf"))
        return scores.softmax(-1) @ v

    def forward(self, x):
        batch, sequence, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, sequence, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        context = self.attention(q, k, v).transpose(1, 2).reshape(batch, sequence, width)
        x = x + self.projection(context)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


def captured(work):
    """Returns a function that replays the work, which keeps its memory."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def measured(work):
    """Returns the quartiles of the time in milliseconds."""

    def repeat(count):
        begin = time.perf_counter()
        for _ in range(count):
            work()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) * 1e3 / count

    torch.cuda.synchronize()
    repeat(WARM_UP)
    return statistics.quantiles([repeat(REPLAYS) for _ in range(SAMPLES)], n=4)


def operations(options):
    """Returns the number of floating-point operations of both passes, without those that the mask makes superfluous."""
    rows = options.batch * options.sequence
    of_layers = 2 * rows * options.width * 12 * options.width
    of_attention = 4 * rows * options.sequence * options.width * (1.0 if options.full else 0.5)
    return 3 * (of_layers + of_attention)


def forms(module, x, dy):
    """Yields the names of the forms, and functions that prepare the forward pass and the step."""
    inputs = [x, *module.parameters()]

    def passes(model):
        def forward():
            # As in the example, the forward pass keeps what the backward pass reads.
            return model(x)

        def step():
            return torch.autograd.grad(model(x), inputs, dy)

        return forward, step

    yield "eager", lambda: passes(module)
    yield "graph", lambda: tuple(captured(work) for work in passes(module))
    compiled = []

    def compile_once():
        if not compiled:
            compiled.append(torch.compile(module))
        return passes(compiled[0])

    yield "compiled", compile_once
    yield "compiled, graph", lambda: tuple(captured(work) for work in compile_once())


def check(options):
    """Compares the gradients of both attentions in f32 and in bf16."""
    results = []
    for dtype, is_explicit in [(torch.float32, True), (torch.bfloat16, True), (torch.bfloat16, False)]:
        module, x, dy = made(options, dtype, is_explicit)
        results.append([module(x), *torch.autograd.grad(module(x), [x, *module.parameters()], dy)])
    names = ["output", "input", *(name for name, _ in module.named_parameters())]
    for name, exact, *others in zip(names, *results):
        errors = [((other.float() - exact).abs().max() / exact.abs().max()).item() for other in others]
        print(f"{name:18} error {errors[0]:.5f} explicit, {errors[1]:.5f} sdpa")


def made(options, dtype, is_explicit):
    torch.manual_seed(1)
    module = Block(options.width, options.heads, not options.full, is_explicit).cuda().to(dtype)
    shape = (options.batch, options.sequence, options.width)
    x = torch.randn(shape, device="cuda").to(dtype).requires_grad_()
    return module, x, torch.randn(shape, device="cuda").to(dtype)


def main():
    parser = argparse.ArgumentParser()
    for name, default in [("batch", 8), ("sequence", 1024), ("width", 1024), ("heads", 16)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--full", action="store_true", help="attention without a causal mask")
    parser.add_argument("--check", action="store_true", help="print the errors of bf16 instead of times")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {vars(options)}", flush=True)
    if options.check:
        check(options)
        return
    for attention, is_explicit in [("sdpa", False), ("explicit", True)]:
        for form, prepare in forms(*made(options, torch.bfloat16, is_explicit)):
            try:
                works = prepare()
                for name, work, share in [("forward", works[0], 1 / 3), ("step", works[1], 1)]:
                    lower, median, upper = measured(work)
                    speed = operations(options) * share / median / 1e9
                    times = f"{median:.4f} ms (quartiles {lower:.4f} to {upper:.4f}), {speed:.0f} TFLOP/s"
                    print(f"{attention:8} {form:15} {name:8} {times}", flush=True)
            except Exception as error:  # noqa: BLE001
                print(f"{attention:8} {form:15} does not work here: {str(error).splitlines()[0][:200]}", flush=True)


if __name__ == "__main__":
    main()

"""ggml's operations on its CUDA backend, compared with those on its CPU backend."""

import ctypes
from ctypes import c_bool, c_float, c_int, c_int64, c_size_t, c_void_p

import pytest

import ggml
from ggml import T, TYPES, operation

I = c_int
F = c_float
# The normalized error of ggml's own tests, and of its products of quantized types.
EXACT = 1e-7
QUANTIZED = 5e-4

UNARY = [
    "abs", "sgn", "neg", "step", "tanh", "elu", "relu", "sigmoid", "gelu", "gelu_erf", "gelu_quick", "silu", "hardswish",
    "hardsigmoid", "exp", "expm1", "softplus", "floor", "ceil", "round", "trunc", "sqr", "sin", "cos",
]
GLU = ["reglu", "geglu", "swiglu", "geglu_erf", "geglu_quick"]
FLOATS = ["f32", "f16", "bf16"]
QUANTIZED_TYPES = [
    "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs",
    "iq3_s", "iq1_s", "iq1_m", "iq4_nl", "iq4_xs", "mxfp4",
]
MATRIX_TYPES = FLOATS + QUANTIZED_TYPES

CASES = {}


def case(name, tolerance=EXACT):
    def add(build):
        assert name not in CASES, name
        CASES[name] = (build, tolerance)
        return build

    return add


for name in UNARY:
    for kind in ["f32", "f16"]:
        @case(f"{name}-{kind}", EXACT if kind == "f32" else 1e-6)
        def _(context, tensors, name=name, kind=kind):
            return operation(name, T)(context, tensors.tensor(33, 5, 2, type=kind, low=-3.0, high=3.0))

for name in ["sqrt", "log"]:
    @case(name)
    def _(context, tensors, name=name):
        return operation(name, T)(context, tensors.tensor(33, 5, low=0.1, high=9.0))

for name in ["add", "sub", "mul", "div"]:
    for kind in ["f32", "f16"]:
        @case(f"{name}-{kind}", EXACT if kind == "f32" else 1e-6)
        def _(context, tensors, name=name, kind=kind):
            return operation(name, T, T)(
                context, tensors.tensor(32, 6, 4, type=kind), tensors.tensor(32, 3, 1, type=kind, low=0.5, high=2.0)
            )

# The CPU backend computes GELU with a table of half precision.
for name in GLU:
    @case(name, 1e-6)
    def _(context, tensors, name=name):
        return operation(name, T)(context, tensors.tensor(64, 5))

    @case(f"{name}_split", 1e-6)
    def _(context, tensors, name=name):
        return operation(f"{name}_split", T, T)(context, tensors.tensor(64, 5), tensors.tensor(64, 5))


@case("leaky_relu")
def _(context, tensors):
    return operation("leaky_relu", T, F, c_bool)(context, tensors.tensor(33, 5), 0.1, False)


@case("scale")
def _(context, tensors):
    return operation("scale", T, F)(context, tensors.tensor(33, 5), 2.5)


@case("scale_bias")
def _(context, tensors):
    return operation("scale_bias", T, F, F)(context, tensors.tensor(33, 5), 2.5, -1.0)


@case("clamp")
def _(context, tensors):
    return operation("clamp", T, F, F)(context, tensors.tensor(33, 5), -0.5, 0.25)


@case("add1")
def _(context, tensors):
    return operation("add1", T, T)(context, tensors.tensor(33, 5), tensors.tensor(1))


@case("acc")
def _(context, tensors):
    acc = operation("acc", T, T, c_size_t, c_size_t, c_size_t, c_size_t)
    return acc(context, tensors.tensor(32, 4), tensors.tensor(16, 2), 128, 512, 512, 64)


for name in ["norm", "rms_norm", "l2_norm"]:
    for columns in [64, 1025]:
        @case(f"{name}-{columns}")
        def _(context, tensors, name=name, columns=columns):
            return operation(name, T, F)(context, tensors.tensor(columns, 3, 2), 1e-6)


@case("group_norm")
def _(context, tensors):
    return operation("group_norm", T, I, F)(context, tensors.tensor(8, 4, 32), 8, 1e-6)


@case("rms_norm_back")
def _(context, tensors):
    return operation("rms_norm_back", T, T, F)(context, tensors.tensor(64, 5), tensors.tensor(64, 5), 1e-6)


@case("soft_max")
def _(context, tensors):
    return operation("soft_max", T)(context, tensors.tensor(40, 5, 2, low=-4.0, high=4.0))


for kind in ["f32", "f16"]:
    @case(f"soft_max_ext-{kind}", 1e-6)
    def _(context, tensors, kind=kind):
        soft_max = operation("soft_max_ext", T, T, F, F)
        return soft_max(context, tensors.tensor(40, 8, 2), tensors.tensor(40, 8, type=kind), 0.3, 8.0)


@case("diag_mask_inf")
def _(context, tensors):
    return operation("diag_mask_inf", T, I)(context, tensors.tensor(10, 10), 2)


for name, result in [("sum", 1), ("sum_rows", 5), ("mean", 5), ("cumsum", 0)]:
    @case(name, 1e-6)
    def _(context, tensors, name=name):
        return operation(name, T)(context, tensors.tensor(300, 5))


@case("argmax", 0.0)
def _(context, tensors):
    return operation("argmax", T)(context, tensors.tensor(300, 5))


for columns in [7, 60, 1024]:
    for order in [0, 1]:
        @case(f"argsort-{columns}-{order}", 0.0)
        def _(context, tensors, columns=columns, order=order):
            return operation("argsort", T, I)(context, tensors.tensor(columns, 3), order)


@case("count_equal", 0.0)
def _(context, tensors):
    return operation("count_equal", T, T)(context, tensors.integers(100, 4, below=3), tensors.integers(100, 4, below=3))


@case("arange")
def _(context, tensors):
    return operation("arange", F, F, F)(context, 0.0, 20.0, 0.5)


@case("repeat")
def _(context, tensors):
    return operation("repeat", T, T)(context, tensors.tensor(8, 2, 1), tensors.tensor(16, 4, 3))


@case("repeat_back")
def _(context, tensors):
    return operation("repeat_back", T, T)(context, tensors.tensor(16, 4, 2), tensors.tensor(8, 2, 1))


for axis in range(4):
    @case(f"concat-{axis}")
    def _(context, tensors, axis=axis):
        other = [8, 4, 3, 2]
        other[axis] = 5
        return operation("concat", T, T, I)(context, tensors.tensor(8, 4, 3, 2), tensors.tensor(*other), axis)


@case("cont-permuted")
def _(context, tensors):
    permuted = operation("permute", T, I, I, I, I)(context, tensors.tensor(8, 5, 3), 2, 0, 1, 3)
    return operation("cont", T)(context, permuted)


@case("pad")
def _(context, tensors):
    return operation("pad", T, I, I, I, I)(context, tensors.tensor(9, 5, 2), 3, 1, 0, 0)


@case("pad_reflect_1d")
def _(context, tensors):
    return operation("pad_reflect_1d", T, I, I)(context, tensors.tensor(20, 3), 4, 5)


@case("roll")
def _(context, tensors):
    return operation("roll", T, I, I, I, I)(context, tensors.tensor(9, 5, 2), 3, -1, 1, 0)


for mode in [0, 1, 2]:
    @case(f"upscale-{mode}", 1e-6)
    def _(context, tensors, mode=mode):
        return operation("upscale", T, I, I)(context, tensors.tensor(6, 5, 2), 2, mode)


@case("timestep_embedding", 1e-6)
def _(context, tensors):
    return operation("timestep_embedding", T, I, I)(context, tensors.tensor(5, low=0.0, high=10.0), 32, 1000)


@case("conv_transpose_1d")
def _(context, tensors):
    convolve = operation("conv_transpose_1d", T, T, I, I, I)
    return convolve(context, tensors.tensor(3, 4, 2), tensors.tensor(10, 2), 2, 0, 1)


@case("conv_transpose_2d", QUANTIZED)
def _(context, tensors):
    return operation("conv_transpose_2d_p0", T, T, I)(
        context, tensors.tensor(3, 3, 4, 2, type="f16"), tensors.tensor(6, 5, 2, 1), 2
    )


for kind in ["f32", "f16"]:
    @case(f"conv_2d_direct-{kind}", QUANTIZED)
    def _(context, tensors, kind=kind):
        convolve = operation("conv_2d_direct", T, T, I, I, I, I, I, I)
        return convolve(context, tensors.tensor(3, 3, 4, 6, type=kind), tensors.tensor(10, 9, 4, 2), 1, 1, 1, 1, 1, 1)


@case("conv_2d_dw_direct")
def _(context, tensors):
    convolve = operation("conv_2d_dw_direct", T, T, I, I, I, I, I, I)
    return convolve(context, tensors.tensor(3, 3, 1, 6), tensors.tensor(10, 9, 6, 1), 1, 1, 1, 1, 1, 1)


@case("im2col", 1e-6)
def _(context, tensors):
    unfold = operation("im2col", T, T, I, I, I, I, I, I, c_bool, I)
    return unfold(
        context, tensors.tensor(3, 3, 4, 2, type="f16"), tensors.tensor(10, 9, 4, 1), 1, 1, 1, 1, 1, 1, True, TYPES["f16"]
    )


for name, kind in [("max", 0), ("average", 1)]:
    @case(f"pool_2d-{name}")
    def _(context, tensors, kind=kind):
        return operation("pool_2d", T, I, I, I, I, I, F, F)(context, tensors.tensor(12, 10, 3), kind, 3, 3, 2, 2, 1.0, 1.0)


for kind in MATRIX_TYPES:
    for columns in [1, 4, 16]:
        @case(f"mul_mat-{kind}-{columns}", QUANTIZED)
        def _(context, tensors, kind=kind, columns=columns):
            return operation("mul_mat", T, T)(context, tensors.tensor(256, 32, type=kind), tensors.tensor(256, columns))

    @case(f"mul_mat_id-{kind}", QUANTIZED)
    def _(context, tensors, kind=kind):
        experts = tensors.values([0, 2, 1, 3, 3, 0], 2, 3, type="i32")
        return operation("mul_mat_id", T, T, T)(
            context, tensors.tensor(256, 16, 4, type=kind), tensors.tensor(256, 2, 3), experts
        )

for kind in FLOATS:
    @case(f"mul_mat-{kind}-batched", QUANTIZED)
    def _(context, tensors, kind=kind):
        return operation("mul_mat", T, T)(context, tensors.tensor(64, 32, 2, 2, type=kind), tensors.tensor(64, 48, 4, 2))

    @case(f"mul_mat-{kind}-large", QUANTIZED)
    def _(context, tensors, kind=kind):
        return operation("mul_mat", T, T)(context, tensors.tensor(64, 96, type=kind), tensors.tensor(64, 80))


@case("out_prod")
def _(context, tensors):
    return operation("out_prod", T, T)(context, tensors.tensor(16, 8), tensors.tensor(12, 8))


for kind in FLOATS + ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0"]:
    @case(f"get_rows-{kind}")
    def _(context, tensors, kind=kind):
        return operation("get_rows", T, T)(context, tensors.tensor(256, 8, type=kind), tensors.integers(5, below=8))

for kind in FLOATS + ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl"]:
    @case(f"set_rows-{kind}")
    def _(context, tensors, kind=kind):
        rows = tensors.values([5, 0, 3], 3, type="i64")
        return operation("set_rows", T, T, T)(context, tensors.tensor(128, 8, type=kind), tensors.tensor(128, 3), rows)

    @case(f"cpy-f32-{kind}")
    def _(context, tensors, kind=kind):
        return operation("cpy", T, T)(context, tensors.tensor(128, 4), tensors.tensor(128, 4, type=kind))

for kind in ["f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"]:
    @case(f"cpy-{kind}-f32")
    def _(context, tensors, kind=kind):
        return operation("cpy", T, T)(context, tensors.tensor(128, 4, type=kind), tensors.tensor(128, 4))

for mode in [0, 2]:
    for kind in ["f32", "f16"]:
        @case(f"rope-{mode}-{kind}", 1e-6)
        def _(context, tensors, mode=mode, kind=kind):
            positions = tensors.values([0, 3, 7], 3, type="i32")
            rope = operation("rope_ext", T, T, T, I, I, I, F, F, F, F, F, F)
            return rope(
                context, tensors.tensor(64, 4, 3, type=kind), positions, None, 64, mode, 512, 10000.0, 1.0, 0.0, 1.0, 32.0, 1.0
            )


def flash(context, tensors, head, queries, keys, kind):
    attention = operation("flash_attn_ext", T, T, T, T, F, F, F)
    return attention(
        context,
        tensors.tensor(head, queries, 4, 1),
        tensors.tensor(head, keys, 2, 1, type=kind),
        tensors.tensor(head, keys, 2, 1, type=kind),
        tensors.tensor(keys, 64, type="f16"),
        head ** -0.5,
        0.0,
        0.0,
    )


for head, queries, kind in [(64, 1, "f16"), (64, 8, "f16"), (128, 3, "f16"), (64, 1, "q8_0"), (64, 2, "q4_0"), (128, 1, "q8_0"),
                             (128, 2, "q4_0")]:
    @case(f"flash_attn-{head}-{queries}-{kind}", QUANTIZED)
    def _(context, tensors, head=head, queries=queries, kind=kind):
        return flash(context, tensors, head, queries, 256, kind)


@case("cross_entropy_loss", 1e-6)
def _(context, tensors):
    labels = operation("soft_max", T)(context, tensors.tensor(30, 4))
    return operation("cross_entropy_loss", T, T)(context, tensors.tensor(30, 4), labels)


@case("ssm_conv")
def _(context, tensors):
    return operation("ssm_conv", T, T)(context, tensors.tensor(7, 256, 1), tensors.tensor(4, 256))


@case("rwkv_wkv6", 1e-6)
def _(context, tensors):
    shape = (64, 2, 3)
    wkv = operation("rwkv_wkv6", T, T, T, T, T, T)
    return wkv(
        context,
        tensors.tensor(*shape),
        tensors.tensor(*shape),
        tensors.tensor(*shape),
        tensors.tensor(64, 2),
        tensors.tensor(*shape, low=0.1, high=0.9),
        tensors.tensor(64 * 64 * 2, 1),
    )


@case("solve_tri", 1e-6)
def _(context, tensors):
    size = 12
    lower = [
        (2.0 + row / 10 if row == column else 0.1 * (row - column) / size if column < row else 0.0)
        for row in range(size)
        for column in range(size)
    ]
    solve = operation("solve_tri", T, T, c_bool, c_bool, c_bool)
    return solve(context, tensors.values(lower, size, size), tensors.tensor(5, size), True, True, False)


@pytest.fixture(scope="session")
def backends():
    cuda = ggml.load("libggml-cuda.so")
    cpu = ggml.load("libggml-cpu-x64.so")
    yield cuda, cpu
    ggml.backend_free(cuda)
    ggml.backend_free(cpu)


@pytest.mark.parametrize("name", CASES)
def test_operation(name, backends):
    build, tolerance = CASES[name]
    cuda, cpu = backends
    try:
        actual = ggml.compute(cuda, build)
        expected = ggml.compute(cpu, build)
    except ggml.Unsupported:
        pytest.skip("a backend does not support it")
    assert len(actual) > 0
    assert ggml.error(actual, expected) <= tolerance

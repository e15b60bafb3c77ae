"""The functions of ggml that the tests call, declared without its headers, and the comparison of two backends."""

import ctypes
import os
import random
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path

FOLDER = Path(os.environ["GGML_FOLDER"])

base = ctypes.CDLL(FOLDER / "libggml-base.so", mode=ctypes.RTLD_GLOBAL)
registry = ctypes.CDLL(FOLDER / "libggml.cuda.v0.5.0.so", mode=ctypes.RTLD_GLOBAL)

# The integers of `enum ggml_type`, by the names that `ggml_type_name` gives them: up to mxfp4. Types that ggml removed have no name.
base.ggml_type_name.restype = c_char_p
NAMES = [base.ggml_type_name(number) for number in range(40)]
TYPES = {name.decode(): number for number, name in enumerate(NAMES) if name}


class InitParams(Structure):
    _fields_ = [("bytes", c_size_t), ("buffer", c_void_p), ("no_alloc", c_bool)]


class Tensor(Structure):
    """The begin of `struct ggml_tensor`."""

    _fields_ = [
        ("type", c_int),
        ("buffer", c_void_p),
        ("ne", c_int64 * 4),
        ("nb", c_size_t * 4),
        ("op", c_int),
    ]


class Traits(Structure):
    """The begin of `struct ggml_type_traits`."""

    _fields_ = [
        ("name", c_char_p),
        ("block", c_int64),
        ("block_interleave", c_int64),
        ("bytes", c_size_t),
        ("is_quantized", c_bool),
        ("to_float", ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int64)),
    ]


T = POINTER(Tensor)


def function(name, result, *parameters):
    symbol = getattr(base, name)
    symbol.restype = result
    symbol.argtypes = parameters
    return symbol


def operation(name, *parameters):
    """Returns an operation: a function of a context that returns a tensor."""
    return function(f"ggml_{name}", T, c_void_p, *parameters)


init = function("ggml_init", c_void_p, InitParams)
free = function("ggml_free", None, c_void_p)
new_tensor = operation("new_tensor", c_int, c_int, POINTER(c_int64))
nbytes = function("ggml_nbytes", c_size_t, T)
nelements = function("ggml_nelements", c_int64, T)
op_desc = function("ggml_op_desc", c_char_p, T)
traits = function("ggml_get_type_traits", POINTER(Traits), c_int)
new_graph = function("ggml_new_graph", c_void_p, c_void_p)
build_forward = function("ggml_build_forward_expand", None, c_void_p, T)
quantize = function("ggml_quantize_chunk", c_size_t, c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p)
alloc_tensors = function("ggml_backend_alloc_ctx_tensors", c_void_p, c_void_p, c_void_p)
buffer_free = function("ggml_backend_buffer_free", None, c_void_p)
backend_free = function("ggml_backend_free", None, c_void_p)
tensor_set = function("ggml_backend_tensor_set", None, T, c_void_p, c_size_t, c_size_t)
tensor_get = function("ggml_backend_tensor_get", None, T, c_void_p, c_size_t, c_size_t)
graph_compute = function("ggml_backend_graph_compute", c_int, c_void_p, c_void_p)
supports_op = function("ggml_backend_supports_op", c_bool, c_void_p, T)
set_prec = function("ggml_mul_mat_set_prec", None, T, c_int)

registry.ggml_backend_load.restype = c_void_p
registry.ggml_backend_load.argtypes = [c_char_p]
function("ggml_backend_reg_dev_get", c_void_p, c_void_p, c_size_t)
function("ggml_backend_reg_dev_count", c_size_t, c_void_p)
function("ggml_backend_dev_init", c_void_p, c_void_p, c_char_p)


def load(library):
    """Returns a backend for the first device of a backend library."""
    registered = registry.ggml_backend_load(str(FOLDER / library).encode())
    assert registered, f"{library} cannot be loaded"
    assert base.ggml_backend_reg_dev_count(registered) > 0, f"{library} has no device"
    return base.ggml_backend_dev_init(base.ggml_backend_reg_dev_get(registered, 0), None)


class Case:
    """A graph of one operation: its tensors are created once for each backend, with the same data."""

    def __init__(self, context, seed):
        self.context = context
        self.random = random.Random(seed)
        self.data = []

    def tensor(self, *shape, type="f32", low=-1.0, high=1.0):
        """Creates a tensor of random numbers."""
        count = 1
        for length in shape:
            count *= length
        return self._filled(shape, type, [self.random.uniform(low, high) for _ in range(count)])

    def integers(self, *shape, below, type="i32"):
        """Creates a tensor of random integers."""
        count = 1
        for length in shape:
            count *= length
        numbers = [self.random.randrange(below) for _ in range(count)]
        return self.values(numbers, *shape, type=type)

    def values(self, numbers, *shape, type="f32"):
        """Creates a tensor of these numbers."""
        if type in ("i32", "i64", "i16", "i8"):
            element = {"i32": c_int32, "i64": c_int64, "i16": ctypes.c_int16, "i8": ctypes.c_int8}[type]
            return self._new(shape, type, bytes((element * len(numbers))(*numbers)))
        return self._filled(shape, type, numbers)

    def _filled(self, shape, type, numbers):
        floats = (c_float * len(numbers))(*numbers)
        if type == "f32":
            return self._new(shape, type, bytes(floats))
        row = shape[0]
        rows = len(numbers) // row
        number = TYPES[type]
        size = traits(number).contents.bytes * row // traits(number).contents.block
        data = ctypes.create_string_buffer(size * rows)
        weights = (c_float * row)(*[1.0] * row)
        quantize(number, floats, data, 0, rows, row, weights)
        return self._new(shape, type, data.raw)

    def _new(self, shape, type, data):
        tensor = new_tensor(self.context, TYPES[type], len(shape), (c_int64 * len(shape))(*shape))
        assert nbytes(tensor) == len(data), (nbytes(tensor), len(data), shape, type)
        self.data.append((tensor, data))
        return tensor


def numbers(tensor):
    """Returns the elements of a contiguous tensor."""
    size = nbytes(tensor)
    data = ctypes.create_string_buffer(size)
    tensor_get(tensor, data, 0, size)
    count = nelements(tensor)
    kind = tensor.contents.type
    if kind == TYPES["f32"]:
        return list((c_float * count).from_buffer(data))
    if kind == TYPES["i32"]:
        return list((c_int32 * count).from_buffer(data))
    if kind == TYPES["i64"]:
        return list((c_int64 * count).from_buffer(data))
    floats = (c_float * count)()
    traits(kind).contents.to_float(data, floats, count)
    return list(floats)


class Unsupported(Exception):
    """The backend does not support the operation."""


def compute(backend, build, seed=7):
    """Computes the result of an operation on a backend. `build` gets a case and returns the result's tensor."""
    context = init(InitParams(1 << 20, None, True))
    case = Case(context, seed)
    result = build(context, case)
    if not supports_op(backend, result):
        free(context)
        raise Unsupported
    graph = new_graph(context)
    build_forward(graph, result)
    buffer = alloc_tensors(context, backend)
    assert buffer, "the tensors cannot be allocated"
    for tensor, data in case.data:
        tensor_set(tensor, data, 0, len(data))
    status = graph_compute(backend, graph)
    assert status == 0, f"the computation failed: {status}"
    values = numbers(result)
    buffer_free(buffer)
    free(context)
    return values


MAX = 3.4028234663852886e38


def is_infinite(number):
    """Returns whether a number is infinite, or the largest one, with which the CUDA backend masks."""
    return abs(number) >= MAX


def error(actual, expected):
    """Returns the mean square error, divided by the mean square of the expected numbers."""
    assert len(actual) == len(expected)
    difference = 0.0
    norm = 0.0
    for a, b in zip(actual, expected):
        if is_infinite(a) or is_infinite(b):
            assert is_infinite(a) and is_infinite(b) and (a > 0) == (b > 0), (a, b)
            continue
        assert a == a and b == b, (a, b)
        difference += (a - b) ** 2
        norm += b * b
    return difference / norm if norm > 0 else difference

"""Compiles with TVM, by NVRTC to PTX, and runs the result on the device."""

import numpy as np
import tvm
import tvm_ffi
from tvm import te
from tvm.s_tir import dlight
from tvm.support import nvcc

DEVICE = tvm.cuda(0)
RANDOM = np.random.default_rng(7)
RULES = [dlight.gpu.Matmul(), dlight.gpu.GEMV(), dlight.gpu.Reduction(), dlight.gpu.GeneralReduction(), dlight.gpu.Transpose(),
         dlight.gpu.Fallback()]


@tvm_ffi.register_global_func("tvm_callback_cuda_compile", override=True)
def compile_to_ptx(code):
    """Takes the place of TVM's own function, which compiles to machine code."""
    return nvcc.compile_cuda(code, target_format="ptx")


def target(arch="sm_80"):
    return tvm.target.Target({"kind": "cuda", "arch": arch, "max_num_threads": 1024, "thread_warp_size": 32,
                              "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024}, host="llvm")


def uniform(*shape, dtype="float32"):
    return RANDOM.uniform(-2, 2, shape).astype(dtype)


def integers(low, high, shape, dtype):
    return RANDOM.integers(low, high, shape).astype(dtype)


def run(module, arrays, shapes, on):
    """Compiles the function `main`, runs it, and returns its outputs, each of which has a shape and a type."""
    with on:
        library = tvm.compile(module, target=on)
    arguments = [tvm.runtime.tensor(array, DEVICE) for array in arrays]
    outputs = [tvm.runtime.empty(shape, dtype, DEVICE) for shape, dtype in shapes]
    library["main"](*arguments, *outputs)
    return [output.numpy() for output in outputs]


def evaluate(function, arrays, on=None, rules=RULES):
    """Returns the results of a function on tensors, with the schedule that TVM's rules choose. Functions that have one need no rules."""
    on = on or target()
    inputs = [te.placeholder(array.shape, str(array.dtype), name=f"input{index}") for index, array in enumerate(arrays)]
    with on:
        outputs = function(*inputs)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        module = tvm.IRModule({"main": te.create_prim_func([*inputs, *outputs])})
        module = dlight.ApplyDefaultSchedule(*rules)(module) if rules else module
    shapes = [(tuple(int(size) for size in output.shape), str(output.dtype)) for output in outputs]
    return run(module, arrays, shapes, on)

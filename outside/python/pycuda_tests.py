"""A plugin of pytest: PyCUDA compiles to PTX, where it asks nvcc for machine code by default."""

import functools

from pycuda import compiler

compiler.compile = functools.partial(compiler.compile, target="ptx")

/* The complex numbers of CUDA, whose own header includes those of its compiler. */
#pragma once
typedef struct __attribute__((aligned(8))) cuFloatComplex { float x, y; } cuFloatComplex, cuComplex;
typedef struct __attribute__((aligned(16))) cuDoubleComplex { double x, y; } cuDoubleComplex;

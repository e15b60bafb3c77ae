/* The few declarations of CUDA's runtime that the libraries' headers need. */
#pragma once
#include <stddef.h>
typedef struct CUstream_st *cudaStream_t;

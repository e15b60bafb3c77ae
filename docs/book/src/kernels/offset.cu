#include "offset.h"

// x = x + OFFSET.
__global__ void offset(float* x, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] += OFFSET;
    }
}

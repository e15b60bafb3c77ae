// x = by * x.
template<class T> __global__ void scale(T* x, T by, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] *= by;
    }
}

// x = -x.
__global__ void negate(float* x, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] = -x[i];
    }
}

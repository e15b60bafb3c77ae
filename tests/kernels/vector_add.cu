// sum = left + right, with a grid of any size.
extern "C" __global__ void vector_add(const float* left, const float* right, float* sum, unsigned int n)
{
    unsigned int stride = gridDim.x * blockDim.x;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        sum[i] = left[i] + right[i];
    }
}

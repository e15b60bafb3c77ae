// Adds how often each byte value occurs in n bytes to the 256 counters of `bins`.
extern "C" __global__ void histogram(const unsigned char* data, unsigned int* bins, unsigned int n)
{
    __shared__ unsigned int block_bins[256];
    for (unsigned int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        block_bins[bin] = 0;
    }
    __syncthreads();
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&block_bins[data[i]], 1u);
    }
    __syncthreads();
    for (unsigned int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        if (block_bins[bin] != 0) {
            atomicAdd(&bins[bin], block_bins[bin]);
        }
    }
}

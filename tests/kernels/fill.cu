// Writes `value` to n words.
extern "C" __global__ void fill(unsigned int* data, unsigned int value, unsigned int n)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] = value;
    }
}

// Writes its own index to each of n words.
extern "C" __global__ void fill_index(unsigned int* data, unsigned int n)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] = i;
    }
}

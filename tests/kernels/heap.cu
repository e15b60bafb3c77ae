// Memory from the device's heap that outlives the kernel that asked for it.

// A row of `threadIdx.x + 1` words for each thread, kept for later kernels.
extern "C" __global__ void heap_keep(unsigned int** rows, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned int* row = (unsigned int*)malloc((index + 1) * sizeof(unsigned int));
    for (unsigned int at = 0; row && at <= index; ++at) {
        row[at] = index * at;
    }
    rows[index] = row;
}

// The sum of each row.
extern "C" __global__ void heap_read(unsigned int** rows, unsigned int* sums, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned int sum = 0;
    for (unsigned int at = 0; at <= index; ++at) {
        sum += rows[index][at];
    }
    sums[index] = sum;
}

extern "C" __global__ void heap_free(unsigned int** rows, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) {
        free(rows[index]);
        rows[index] = 0;
    }
}

// Asks for more than the heap has, which gives no memory; and for a little, which gives some.
extern "C" __global__ void heap_limit(unsigned long long bytes, unsigned int* got)
{
    void* much = malloc(bytes);
    void* little = malloc(16);
    got[0] = much != 0;
    got[1] = little != 0;
    free(much);
    free(little);
}

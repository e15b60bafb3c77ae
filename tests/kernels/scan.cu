// Prefix sums: within a warp by shuffles, within a block by shared memory, within a block by a tree.

// The sum of the warp's values up to and with this lane's.
__device__ unsigned int scan_warp(unsigned int value)
{
    unsigned int lane = threadIdx.x % 32;
    for (unsigned int offset = 1; offset < 32; offset *= 2) {
        unsigned int left = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset) {
            value += left;
        }
    }
    return value;
}

// Inclusive sums of each block's `blockDim.x` values, a multiple of 32; `totals` gets the sum of each block.
extern "C" __global__ void scan_inclusive(const unsigned int* input, unsigned int* output, unsigned int* totals, unsigned int n)
{
    __shared__ unsigned int warps[32];
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int warp = threadIdx.x / 32;
    unsigned int sum = scan_warp(index < n ? input[index] : 0);
    if (threadIdx.x % 32 == 31) {
        warps[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
        unsigned int mine = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0;
        warps[threadIdx.x] = scan_warp(mine);
    }
    __syncthreads();
    if (warp > 0) {
        sum += warps[warp - 1];
    }
    if (index < n) {
        output[index] = sum;
    }
    if (threadIdx.x == blockDim.x - 1) {
        totals[blockIdx.x] = sum;
    }
}

// Adds to each block's values the totals of the blocks before it.
extern "C" __global__ void scan_add_totals(unsigned int* output, const unsigned int* totals, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int before = 0;
    for (unsigned int block = 0; block < blockIdx.x; ++block) {
        before += totals[block];
    }
    if (index < n) {
        output[index] += before;
    }
}

// Exclusive sums of 512 values by one block of 256 threads, up and down a tree in dynamic shared memory.
extern "C" __global__ void scan_exclusive(unsigned int* values)
{
    extern __shared__ unsigned int tree[];
    unsigned int thread = threadIdx.x;
    tree[2 * thread] = values[2 * thread];
    tree[2 * thread + 1] = values[2 * thread + 1];
    unsigned int offset = 1;
    for (unsigned int count = 256; count > 0; count /= 2) {
        __syncthreads();
        if (thread < count) {
            tree[offset * (2 * thread + 2) - 1] += tree[offset * (2 * thread + 1) - 1];
        }
        offset *= 2;
    }
    if (thread == 0) {
        tree[511] = 0;
    }
    for (unsigned int count = 1; count < 512; count *= 2) {
        offset /= 2;
        __syncthreads();
        if (thread < count) {
            unsigned int left = offset * (2 * thread + 1) - 1;
            unsigned int right = offset * (2 * thread + 2) - 1;
            unsigned int sum = tree[left];
            tree[left] = tree[right];
            tree[right] += sum;
        }
    }
    __syncthreads();
    values[2 * thread] = tree[2 * thread];
    values[2 * thread + 1] = tree[2 * thread + 1];
}

// The values that are odd, in their order, by one warp; `count` gets their number.
extern "C" __global__ void compact_odd(const unsigned int* input, unsigned int* output, unsigned int* count, unsigned int n)
{
    unsigned int kept = 0;
    for (unsigned int base = 0; base < n; base += 32) {
        unsigned int index = base + threadIdx.x;
        bool odd = index < n && input[index] % 2 == 1;
        unsigned int mask = __ballot_sync(0xffffffffu, odd);
        if (odd) {
            output[kept + __popc(mask & ((1u << threadIdx.x) - 1))] = input[index];
        }
        kept += __popc(mask);
    }
    if (threadIdx.x == 0) {
        *count = kept;
    }
}

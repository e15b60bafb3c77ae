// Prefix sums: within a warp by shuffles, within a block by shared memory or a tree, and across blocks in one pass.

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

// Inclusive sums in one pass: a block of 128 threads takes the next part, publishes its own total, and adds up those of the parts before
// it, from the last one back to one that knows the sum of all before. `states` has a word for each part, its upper two bits what it
// holds: nothing yet, a total, or a sum of all up to it; `next` is zero.
extern "C" __global__ void scan_look_back(const unsigned int* input, unsigned int* output, volatile unsigned int* states, unsigned int* next,
                                          unsigned int n)
{
    __shared__ unsigned int part;
    __shared__ unsigned int before;
    __shared__ unsigned int warps[4];
    if (threadIdx.x == 0) {
        part = atomicAdd(next, 1);
    }
    __syncthreads();
    unsigned int index = part * 128 + threadIdx.x;
    unsigned int warp = threadIdx.x / 32;
    unsigned int sum = scan_warp(index < n ? input[index] & 0xffff : 0);
    if (threadIdx.x % 32 == 31) {
        warps[warp] = sum;
    }
    __syncthreads();
    for (unsigned int other = 0; other < warp; ++other) {
        sum += warps[other];
    }
    if (threadIdx.x == 127) {
        const unsigned int total = 1u << 30;
        const unsigned int all = 2u << 30;
        states[part] = (part == 0 ? all : total) | sum;
        unsigned int found = 0;
        for (int other = (int)part - 1; other >= 0;) {
            unsigned int state = states[other];
            found += state & (total - 1);
            if (state >= all) {
                break;
            }
            other -= state >= total;
        }
        states[part] = all | (found + sum);
        before = found;
    }
    __syncthreads();
    if (index < n) {
        output[index] = before + sum;
    }
}

// Sums that begin anew at each flag, of up to 1024 values by one block; every round adds what lies twice as far back.
extern "C" __global__ void scan_segments(const unsigned int* input, const unsigned char* flags, unsigned int* output, unsigned int n)
{
    __shared__ unsigned int sums[1024];
    __shared__ unsigned char begun[1024];
    unsigned int index = threadIdx.x;
    sums[index] = index < n ? input[index] : 0;
    begun[index] = index < n ? flags[index] : 0;
    for (unsigned int offset = 1; offset < blockDim.x; offset *= 2) {
        __syncthreads();
        bool adds = index >= offset && !begun[index];
        unsigned int sum = adds ? sums[index - offset] : 0;
        unsigned char begins = adds ? begun[index - offset] : 0;
        __syncthreads();
        sums[index] += sum;
        begun[index] |= begins;
    }
    if (index < n) {
        output[index] = sums[index];
    }
}

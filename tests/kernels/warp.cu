// Lanes that see one another, and atomics of every kind.

// Votes, matches and shuffles of each lane's value: 8 results each.
extern "C" __global__ void warp_operations(const unsigned int* input, unsigned int* output)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int lane = threadIdx.x % 32;
    unsigned int value = input[index];
    unsigned int* out = output + 8 * index;
    const unsigned int all = 0xffffffffu;
    out[0] = __ballot_sync(all, value & 1);
    out[1] = __any_sync(all, value > 200) + 2 * __all_sync(all, value < 250);
    out[2] = __match_any_sync(all, value % 4);
    int agree;
    out[3] = __match_all_sync(all, value / 256, &agree) + agree;
    out[4] = __shfl_xor_sync(all, value, 5);
    out[5] = __shfl_down_sync(all, value, 3, 8);
    out[6] = __shfl_up_sync(all, value, 2, 16);
    out[7] = __shfl_sync(all, value, lane * 7, 32);
}

// The number of active lanes in each branch.
extern "C" __global__ void active_lanes(unsigned int* output)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x % 3 == 0) {
        output[index] = __popc(__activemask());
    } else {
        output[index] = 100 + __popc(__activemask());
    }
}

// Every atomic operation, all threads on the same 12 words, which start as the kernel's caller left them.
extern "C" __global__ void atomics(unsigned int* words, unsigned long long* wide, float* single_sum, double* double_sum)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&words[0], index);
    atomicSub(&words[1], 1);
    atomicMin(&words[2], index);
    atomicMax(&words[3], index);
    atomicMin((int*)&words[4], -(int)index);
    atomicMax((int*)&words[5], -(int)index);
    atomicAnd(&words[6], ~(1u << index % 32));
    atomicOr(&words[7], 1u << index % 32);
    atomicXor(&words[8], 1u << index % 8);
    atomicInc(&words[9], 9);
    atomicDec(&words[10], 9);
    unsigned int seen = words[11];
    while (true) {
        unsigned int before = atomicCAS(&words[11], seen, seen + 2);
        if (before == seen) {
            break;
        }
        seen = before;
    }
    atomicAdd(&wide[0], 1ull << 32);
    atomicMax(&wide[1], (unsigned long long)index << 40);
    atomicAdd(single_sum, 0.5f);
    atomicAdd(double_sum, 0.25);
}

// Counts of a histogram, one addition for all lanes of a warp that have the same key.
extern "C" __global__ void aggregated_histogram(const unsigned char* keys, unsigned int* bins, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned int active = __activemask();
    unsigned int same = __match_any_sync(active, keys[index]);
    if (__ffs(same) - 1 == threadIdx.x % 32) {
        atomicAdd(&bins[keys[index]], __popc(same));
    }
}

// A barrier that counts and combines the votes of a block: 3 results of each block.
extern "C" __global__ void block_votes(const unsigned int* input, int* output)
{
    unsigned int value = input[blockIdx.x * blockDim.x + threadIdx.x];
    int count = __syncthreads_count(value > 100);
    int every = __syncthreads_and(value > 0);
    int some = __syncthreads_or(value > 250);
    if (threadIdx.x == 0) {
        output[3 * blockIdx.x] = count;
        output[3 * blockIdx.x + 1] = every != 0;
        output[3 * blockIdx.x + 2] = some != 0;
    }
}

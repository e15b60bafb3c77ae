// Sorting: networks in shared memory, one thread's own array, by bits, and steps of sorts across blocks.

// Sorts 1024 keys by one block of 512 threads.
extern "C" __global__ void sort_bitonic(int* keys)
{
    __shared__ int tile[1024];
    unsigned int thread = threadIdx.x;
    tile[thread] = keys[thread];
    tile[thread + 512] = keys[thread + 512];
    for (unsigned int size = 2; size <= 1024; size *= 2) {
        for (unsigned int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            unsigned int low = 2 * thread - (thread & (stride - 1));
            bool ascending = (low & size) == 0;
            int left = tile[low];
            int right = tile[low + stride];
            if ((left > right) == ascending) {
                tile[low] = right;
                tile[low + stride] = left;
            }
        }
    }
    __syncthreads();
    keys[thread] = tile[thread];
    keys[thread + 512] = tile[thread + 512];
}

// Sorts the 32 keys of each warp, one per lane, by compare and exchange along odd and even pairs.
extern "C" __global__ void sort_warp(unsigned int* keys)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int lane = threadIdx.x % 32;
    unsigned int key = keys[index];
    for (unsigned int round = 0; round < 32; ++round) {
        bool low = (lane + round) % 2 == 0;
        unsigned int partner = low ? lane + 1 : lane - 1;
        unsigned int other = __shfl_sync(0xffffffffu, key, partner & 31);
        if (partner < 32) {
            key = low ? min(key, other) : max(key, other);
        }
    }
    keys[index] = key;
}

// Sorts `n` keys, at most 64, by insertion in an array of each thread's own; each thread has a row.
extern "C" __global__ void sort_insertion(float* rows, unsigned int count, unsigned int n)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) {
        return;
    }
    float keys[64];
    for (unsigned int index = 0; index < n; ++index) {
        float key = rows[row * n + index];
        int place = (int)index - 1;
        while (place >= 0 && keys[place] > key) {
            keys[place + 1] = keys[place];
            --place;
        }
        keys[place + 1] = key;
    }
    for (unsigned int index = 0; index < n; ++index) {
        rows[row * n + index] = keys[index];
    }
}

// Sorts 256 keys by their bits, lowest first, by one block of 256 threads.
extern "C" __global__ void sort_radix(unsigned int* keys)
{
    __shared__ unsigned int tile[256];
    __shared__ unsigned int warps[8];
    unsigned int lane = threadIdx.x % 32;
    unsigned int warp = threadIdx.x / 32;
    unsigned int key = keys[threadIdx.x];
    for (unsigned int bit = 0; bit < 32; ++bit) {
        bool one = key >> bit & 1;
        unsigned int zeros = __ballot_sync(0xffffffffu, !one);
        if (lane == 0) {
            warps[warp] = __popc(zeros);
        }
        __syncthreads();
        unsigned int before = 0;
        unsigned int all = 0;
        for (unsigned int other = 0; other < 8; ++other) {
            before += other < warp ? warps[other] : 0;
            all += warps[other];
        }
        before += __popc(zeros & ((1u << lane) - 1));
        tile[one ? all + threadIdx.x - before : before] = key;
        __syncthreads();
        key = tile[threadIdx.x];
    }
    keys[threadIdx.x] = key;
}

// One step of a merge sort: runs of `run` sorted keys become runs of twice as many; each thread finds the place of its key.
extern "C" __global__ void sort_merge(const unsigned int* input, unsigned int* output, unsigned int run, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned int pair = index / (2 * run) * 2 * run;
    bool left = index - pair < run;
    unsigned int low = min(left ? pair + run : pair, n);
    unsigned int high = min(left ? pair + 2 * run : pair + run, n);
    unsigned int other = low;
    unsigned int key = input[index];
    // Equal keys of the left run come first.
    while (low < high) {
        unsigned int middle = (low + high) / 2;
        if (left ? input[middle] < key : input[middle] <= key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    unsigned int mine = index - (left ? pair : pair + run);
    output[pair + mine + low - other] = key;
}

// How often each of 16 digits occurs in each block: all counts of one digit after one another.
extern "C" __global__ void sort_digit_count(const unsigned int* keys, unsigned int* counts, unsigned int shift, unsigned int n)
{
    __shared__ unsigned int bins[16];
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 16) {
        bins[threadIdx.x] = 0;
    }
    __syncthreads();
    if (index < n) {
        atomicAdd(&bins[keys[index] >> shift & 15], 1);
    }
    __syncthreads();
    if (threadIdx.x < 16) {
        counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
    }
}

// Moves each key, in order, to the first place of its digit and block, which `starts` has; blocks of 128 threads.
extern "C" __global__ void sort_digit_scatter(const unsigned int* keys, unsigned int* output, const unsigned int* starts, unsigned int shift,
                                              unsigned int n)
{
    __shared__ unsigned int counts[4][16];
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int lane = threadIdx.x % 32;
    unsigned int warp = threadIdx.x / 32;
    if (threadIdx.x < 64) {
        counts[threadIdx.x / 16][threadIdx.x % 16] = 0;
    }
    __syncthreads();
    unsigned int digit = index < n ? keys[index] >> shift & 15 : 16;
    unsigned int same = __match_any_sync(0xffffffffu, digit);
    if (digit < 16 && __ffs(same) - 1 == lane) {
        counts[warp][digit] = __popc(same);
    }
    __syncthreads();
    if (digit < 16) {
        unsigned int place = starts[digit * gridDim.x + blockIdx.x] + __popc(same & ((1u << lane) - 1));
        for (unsigned int other = 0; other < warp; ++other) {
            place += counts[other][digit];
        }
        output[place] = keys[index];
    }
}

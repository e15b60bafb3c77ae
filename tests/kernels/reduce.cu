// Reductions of n values to one: within a warp by shuffles, within a block by shared memory, between blocks by one atomic.
//
// The block size is a multiple of 32, the grid any size, and `result` holds the neutral element before the launch.

struct Sum {
    template <typename T> __device__ T operator()(T left, T right) const { return left + right; }
};

struct Max {
    template <typename T> __device__ T operator()(T left, T right) const { return left < right ? right : left; }
};

template <typename T, typename Combine> __device__ T reduce_warp(T value, Combine combine)
{
    for (unsigned int offset = 16; offset > 0; offset /= 2) {
        value = combine(value, __shfl_down_sync(0xffffffffu, value, offset));
    }
    return value;
}

// The value of the whole block, in its thread 0.
template <typename T, typename Combine> __device__ T reduce_block(T value, T neutral, Combine combine)
{
    __shared__ T warps[32];
    unsigned int lane = threadIdx.x % 32;
    unsigned int warp = threadIdx.x / 32;
    value = reduce_warp(value, combine);
    if (lane == 0) {
        warps[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        value = reduce_warp(lane < blockDim.x / 32 ? warps[lane] : neutral, combine);
    }
    return value;
}

template <typename T, typename Combine>
__device__ T reduce_input(const T* input, unsigned int n, T neutral, Combine combine)
{
    T value = neutral;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        value = combine(value, input[i]);
    }
    return reduce_block(value, neutral, combine);
}

extern "C" __global__ void reduce_sum_u32(const unsigned int* input, unsigned int* result, unsigned int n)
{
    unsigned int sum = reduce_input(input, n, 0u, Sum());
    if (threadIdx.x == 0) {
        atomicAdd(result, sum);
    }
}

extern "C" __global__ void reduce_sum_f32(const float* input, float* result, unsigned int n)
{
    float sum = reduce_input(input, n, 0.0f, Sum());
    if (threadIdx.x == 0) {
        atomicAdd(result, sum);
    }
}

extern "C" __global__ void reduce_max_i32(const int* input, int* result, unsigned int n)
{
    int maximum = reduce_input(input, n, (int)0x80000000, Max());
    if (threadIdx.x == 0) {
        atomicMax(result, maximum);
    }
}

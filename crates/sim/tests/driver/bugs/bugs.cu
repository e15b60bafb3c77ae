// Kernels with real bugs, which `bugs.rs` runs. `bugs.ptx` is the output of NVRTC 13.0 with --generate-line-info.

__device__ __forceinline__ float neighbor(const float *tile, int index)
{
    return tile[index];
}

// The threads read what others wrote, without __syncthreads().
extern "C" __global__ void missing_barrier(float *x)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = neighbor(tile, 63 - threadIdx.x);
}

// `<=` in place of `<`.
extern "C" __global__ void off_by_one(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        x[i] *= 2.0f;
}

// The mask lacks the upper half of the warp.
extern "C" __global__ void wrong_mask(float *x)
{
    float sum = x[threadIdx.x];
    sum += __shfl_down_sync(0xffff, sum, 8);
    x[threadIdx.x] = sum;
}

// Half of each warp skips the barrier.
extern "C" __global__ void skipped_barrier(float *x)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x % 32 < 16)
        __syncthreads();
    x[threadIdx.x] = tile[threadIdx.x];
}

// Threads that return early leave their elements of the tile unwritten.
extern "C" __global__ void early_return(float *x, int n)
{
    __shared__ float tile[64];
    if (threadIdx.x >= n)
        return;
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[threadIdx.x ^ 32];
}

// Lanes of a warp exchange elements without __syncwarp().
extern "C" __global__ void warp_race(float *x)
{
    __shared__ float tile[32];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = tile[threadIdx.x ^ 1];
}

// Nobody sets the flag.
extern "C" __global__ void endless_loop(volatile int *flag)
{
    while (*flag == 0) {
    }
}

// A float4 at an address that is a multiple of 4 only.
extern "C" __global__ void misaligned_vector(float *x)
{
    float4 v = *reinterpret_cast<float4 *>(x + 1);
    x[0] = v.x + v.w;
}

// The host frees the memory on another stream before the launch.
extern "C" __global__ void use_after_free(float *x)
{
    x[threadIdx.x] = 1.0f;
}

// The sum includes elements that no thread wrote.
extern "C" __global__ void uninitialized_shared(float *x)
{
    __shared__ float tile[64];
    if (threadIdx.x < 32)
        tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[threadIdx.x];
}

// The pitch is in bytes, and is used as a number of elements.
extern "C" __global__ void wrong_pitch(float *x, int pitch, int height)
{
    if (threadIdx.y < height)
        x[threadIdx.y * pitch + threadIdx.x] = 0.0f;
}

// Threads of several blocks add without an atomic operation.
__device__ int total[4];
extern "C" __global__ void missing_atomic()
{
    total[2] += 1;
}

// The cluster has two blocks.
extern "C" __global__ void __cluster_dims__(2, 1, 1) wrong_rank(int rank)
{
    __shared__ int box[4];
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(box));
    asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank));
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(address), "r"(rank));
}

// The block has 24 threads, so the lanes from 16 on add the values of lanes that do not exist.
extern "C" __global__ void missing_neutral_value(float *x)
{
    float sum = x[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x == 0)
        x[0] = sum;
}

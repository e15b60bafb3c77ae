// nvrtc: --gpu-architecture=compute_80 --std=c++17
//
// The kernels of the transformer block beside its matrix products.
//
// A warp processes a row and keeps it in registers: each lane has VECTORS groups of 8 consecutive bf16 elements, which it loads and stores
// with 16-byte accesses. Sums are computed in f32. Blocks have 32 x 4 threads.

using u16 = unsigned short;
using u32 = unsigned int;

constexpr u32 LANES = 32;
constexpr u32 WARPS = 4;
constexpr u32 GROUP = 8;
constexpr float EPSILON = 1e-5f;

__device__ float sum_of_warp(float value)
{
    for (u32 distance = LANES / 2; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xffffffff, value, distance);
    }
    return value;
}

__device__ u32 rounded(float low, float high)
{
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

__device__ void unpack(u32 pair, float& low, float& high)
{
    low = __uint_as_float(pair << 16);
    high = __uint_as_float(pair & 0xffff0000);
}

__device__ uint4 load_packed(const u16* from)
{
    return *reinterpret_cast<const uint4*>(from);
}

__device__ void unpack(uint4 packed, float (&to)[GROUP])
{
    unpack(packed.x, to[0], to[1]);
    unpack(packed.y, to[2], to[3]);
    unpack(packed.z, to[4], to[5]);
    unpack(packed.w, to[6], to[7]);
}

__device__ void load(const u16* from, float (&to)[GROUP])
{
    unpack(load_packed(from), to);
}

__device__ void store(u16* to, const float (&from)[GROUP])
{
    uint4 packed;
    packed.x = rounded(from[0], from[1]);
    packed.y = rounded(from[2], from[3]);
    packed.z = rounded(from[4], from[5]);
    packed.w = rounded(from[6], from[7]);
    *reinterpret_cast<uint4*>(to) = packed;
}

// Returns the first column of a group of a lane.
__device__ u32 column_of(u32 vector)
{
    return (vector * LANES + threadIdx.x) * GROUP;
}

__device__ size_t first_row()
{
    return size_t(blockIdx.x) * WARPS + threadIdx.y;
}

// y = (x - mean) / deviation * gain + bias. Stores the mean and the reciprocal of the deviation of each row.
template <u32 VECTORS>
__device__ void layer_norm(const u16* x, const u16* gain, const u16* bias, u16* y, float2* statistics, u32 rows, u32 width)
{
    size_t row = first_row();
    if (row >= rows) {
        return;
    }
    float elements[VECTORS][GROUP] = {};
    float sum = 0;
    #pragma unroll
    for (u32 vector = 0; vector < VECTORS; vector++) {
        if (column_of(vector) < width) {
            load(x + row * width + column_of(vector), elements[vector]);
        }
        for (u32 index = 0; index < GROUP; index++) {
            sum += elements[vector][index];
        }
    }
    float mean = sum_of_warp(sum) / width;
    float squares = 0;
    #pragma unroll
    for (u32 vector = 0; vector < VECTORS; vector++) {
        for (u32 index = 0; index < GROUP && column_of(vector) < width; index++) {
            float difference = elements[vector][index] - mean;
            squares += difference * difference;
        }
    }
    float reciprocal = rsqrtf(sum_of_warp(squares) / width + EPSILON);
    #pragma unroll
    for (u32 vector = 0; vector < VECTORS; vector++) {
        u32 column = column_of(vector);
        if (column < width) {
            float gains[GROUP], biases[GROUP], result[GROUP];
            load(gain + column, gains);
            load(bias + column, biases);
            for (u32 index = 0; index < GROUP; index++) {
                result[index] = (elements[vector][index] - mean) * reciprocal * gains[index] + biases[index];
            }
            store(y + row * width + column, result);
        }
    }
    if (threadIdx.x == 0) {
        statistics[row] = make_float2(mean, reciprocal);
    }
}

// Adds the sums of the warps of a block, and stores them in the row of the block. All threads call it.
template <u32 VECTORS>
__device__ void store_sums(const float (&sums)[VECTORS][GROUP], float* partial, u32 width)
{
    __shared__ float of_warps[WARPS][VECTORS * LANES * GROUP];
    __syncthreads();
    #pragma unroll
    for (u32 vector = 0; vector < VECTORS; vector++) {
        for (u32 index = 0; index < GROUP; index++) {
            of_warps[threadIdx.y][column_of(vector) + index] = sums[vector][index];
        }
    }
    __syncthreads();
    for (u32 column = threadIdx.y * LANES + threadIdx.x; column < width; column += WARPS * LANES) {
        float sum = 0;
        for (u32 warp = 0; warp < WARPS; warp++) {
            sum += of_warps[warp][column];
        }
        partial[size_t(blockIdx.x) * width + column] = sum;
    }
}

// dx = residual + the gradient of the input of a normalization. Each block sums the gradients of gain and bias over its rows and stores
// them in a row of the partial sums: the first stage of their reduction.
template <u32 VECTORS>
__device__ void layer_norm_backward(const u16* dy, const u16* x, const float2* statistics, const u16* gain, const u16* residual,
    u16* dx, float* partial_gain, float* partial_bias, u32 rows, u32 width)
{
    float of_gain[VECTORS][GROUP] = {}, of_bias[VECTORS][GROUP] = {};
    for (size_t row = first_row(); row < rows; row += size_t(gridDim.x) * WARPS) {
        float mean = statistics[row].x, reciprocal = statistics[row].y;
        float normalized[VECTORS][GROUP] = {}, scaled[VECTORS][GROUP] = {};
        uint4 residuals[VECTORS];
        float sum = 0, product = 0;
        #pragma unroll
        for (u32 vector = 0; vector < VECTORS; vector++) {
            u32 column = column_of(vector);
            if (column < width) {
                float gains[GROUP], gradient[GROUP];
                load(x + row * width + column, normalized[vector]);
                load(dy + row * width + column, gradient);
                load(gain + column, gains);
                residuals[vector] = load_packed(residual + row * width + column);
                for (u32 index = 0; index < GROUP; index++) {
                    normalized[vector][index] = (normalized[vector][index] - mean) * reciprocal;
                    scaled[vector][index] = gradient[index] * gains[index];
                    of_gain[vector][index] += gradient[index] * normalized[vector][index];
                    of_bias[vector][index] += gradient[index];
                    sum += scaled[vector][index];
                    product += scaled[vector][index] * normalized[vector][index];
                }
            }
        }
        sum = sum_of_warp(sum) / width;
        product = sum_of_warp(product) / width;
        #pragma unroll
        for (u32 vector = 0; vector < VECTORS; vector++) {
            u32 column = column_of(vector);
            if (column < width) {
                float result[GROUP];
                unpack(residuals[vector], result);
                for (u32 index = 0; index < GROUP; index++) {
                    result[index] += reciprocal * (scaled[vector][index] - sum - normalized[vector][index] * product);
                }
                store(dx + row * width + column, result);
            }
        }
    }
    store_sums<VECTORS>(of_gain, partial_gain, width);
    store_sums<VECTORS>(of_bias, partial_bias, width);
}

// The second stage: adds the partial sums of all blocks, those of the gain where blockIdx.y is 0, and else those of the bias. Blocks have
// 32 x 32 threads and 32 columns.
extern "C" __global__ void __launch_bounds__(1024) sum_partial(const float* partial_gain, const float* partial_bias, u16* gain,
    u16* bias, u32 parts, u32 width)
{
    __shared__ float sums[LANES][LANES + 1];
    const float* partial = blockIdx.y == 0 ? partial_gain : partial_bias;
    u32 column = blockIdx.x * LANES + threadIdx.x;
    float sum = 0;
    for (u32 part = threadIdx.y; part < parts && column < width; part += LANES) {
        sum += partial[size_t(part) * width + column];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = sum_of_warp(sums[threadIdx.x][threadIdx.y]);
    column = blockIdx.x * LANES + threadIdx.y;
    if (threadIdx.x == 0 && column < width) {
        (blockIdx.y == 0 ? gain : bias)[column] = u16(rounded(sum, 0));
    }
}

// Rows of up to 1024 elements.
#define KERNEL extern "C" __global__ void __launch_bounds__(LANES * WARPS)
KERNEL layer_norm_4(const u16* x, const u16* gain, const u16* bias, u16* y, float2* statistics, u32 rows, u32 width)
{
    layer_norm<4>(x, gain, bias, y, statistics, rows, width);
}

KERNEL layer_norm_backward_4(const u16* dy, const u16* x, const float2* statistics, const u16* gain, const u16* residual,
    u16* dx, float* partial_gain, float* partial_bias, u32 rows, u32 width)
{
    layer_norm_backward<4>(dy, x, statistics, gain, residual, dx, partial_gain, partial_bias, rows, width);
}

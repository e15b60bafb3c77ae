// nvrtc: --gpu-architecture=compute_80
//
// Numbers of 16 bits with the exponent of single precision (bf16), alone and in pairs.

__device__ float widen(unsigned short bits) { return __uint_as_float((unsigned int)bits << 16); }

__device__ unsigned short narrow(float value)
{
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

// Single precision, rounded to the nearest.
extern "C" __global__ void bf16_round(const float* input, unsigned short* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) {
        output[index] = narrow(input[index]);
    }
}

// a * x + y of pairs, rounded once.
extern "C" __global__ void bf16_axpy(unsigned int a, const unsigned int* x, unsigned int* y, unsigned int pairs)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < pairs) {
        asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(y[index]) : "r"(a), "r"(x[index]));
    }
}

// Pairs: the smaller, the larger, the larger unless one is no number, the magnitude, the negative: 5 results each.
extern "C" __global__ void bf16_extremes(const unsigned int* left, const unsigned int* right, unsigned int* output, unsigned int pairs)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= pairs) {
        return;
    }
    unsigned int* out = output + 5 * index;
    asm("min.bf16x2 %0, %1, %2;" : "=r"(out[0]) : "r"(left[index]), "r"(right[index]));
    asm("max.bf16x2 %0, %1, %2;" : "=r"(out[1]) : "r"(left[index]), "r"(right[index]));
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(out[2]) : "r"(left[index]), "r"(right[index]));
    asm("abs.bf16x2 %0, %1;" : "=r"(out[3]) : "r"(left[index]));
    asm("neg.bf16x2 %0, %1;" : "=r"(out[4]) : "r"(left[index]));
}

// A product of matrices in tiles of 16 by 16: sums in single precision, in ascending order, rounded at the end.
extern "C" __global__ void bf16_product(const unsigned short* left, const unsigned short* right, unsigned short* product,
                                        unsigned int rows, unsigned int depth, unsigned int columns)
{
    __shared__ float left_tile[16][16];
    __shared__ float right_tile[16][16];
    unsigned int row = blockIdx.y * 16 + threadIdx.y;
    unsigned int column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (unsigned int start = 0; start < depth; start += 16) {
        unsigned int across = start + threadIdx.x;
        unsigned int down = start + threadIdx.y;
        left_tile[threadIdx.y][threadIdx.x] = row < rows && across < depth ? widen(left[row * depth + across]) : 0.0f;
        right_tile[threadIdx.y][threadIdx.x] = down < depth && column < columns ? widen(right[down * columns + column]) : 0.0f;
        __syncthreads();
        for (unsigned int k = 0; k < 16; ++k) {
            sum = fmaf(left_tile[threadIdx.y][k], right_tile[k][threadIdx.x], sum);
        }
        __syncthreads();
    }
    if (row < rows && column < columns) {
        product[row * columns + column] = narrow(sum);
    }
}

// The sum of each row of pairs, a warp each: every lane in its order, then lanes that are ever nearer.
extern "C" __global__ void bf16_sum(const unsigned int* input, float* sums, unsigned int pairs)
{
    float sum = 0.0f;
    for (unsigned int at = threadIdx.x; at < pairs; at += 32) {
        unsigned int pair = input[blockIdx.x * pairs + at];
        sum += widen(pair & 0xffff);
        sum += widen(pair >> 16);
    }
    for (unsigned int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

// A 16 by 8 product of 16 by 16 and 16 by 8 numbers by tensor cores, one warp: A by rows, B by columns.
extern "C" __global__ void bf16_tensor_product(const unsigned int* a, const unsigned int* b, float* c)
{
    unsigned int group = threadIdx.x / 4;
    unsigned int place = threadIdx.x % 4;
    float d0, d1, d2, d3;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
        : "r"(a[group * 8 + place]), "r"(a[(group + 8) * 8 + place]), "r"(a[group * 8 + place + 4]), "r"(a[(group + 8) * 8 + place + 4]),
          "r"(b[group * 8 + place]), "r"(b[group * 8 + place + 4]), "f"(0.0f));
    c[group * 8 + 2 * place] = d0;
    c[group * 8 + 2 * place + 1] = d1;
    c[(group + 8) * 8 + 2 * place] = d2;
    c[(group + 8) * 8 + 2 * place + 1] = d3;
}

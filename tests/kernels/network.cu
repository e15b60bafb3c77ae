// nvrtc: --fmad=false
//
// What neural networks are made of. Exponentials and the like are near a CPU's, sums and quotients the same.

// The softmax of each row, a block of 128 threads each.
extern "C" __global__ void softmax(const float* input, float* output, unsigned int columns)
{
    __shared__ float buffer[128];
    const float* row = input + blockIdx.x * columns;
    float largest = __int_as_float(0xff800000);
    for (unsigned int column = threadIdx.x; column < columns; column += 128) {
        largest = fmaxf(largest, row[column]);
    }
    buffer[threadIdx.x] = largest;
    for (unsigned int stride = 64; stride > 0; stride /= 2) {
        __syncthreads();
        if (threadIdx.x < stride) {
            buffer[threadIdx.x] = fmaxf(buffer[threadIdx.x], buffer[threadIdx.x + stride]);
        }
    }
    __syncthreads();
    largest = buffer[0];
    __syncthreads();
    float sum = 0.0f;
    for (unsigned int column = threadIdx.x; column < columns; column += 128) {
        sum += expf(row[column] - largest);
    }
    buffer[threadIdx.x] = sum;
    for (unsigned int stride = 64; stride > 0; stride /= 2) {
        __syncthreads();
        if (threadIdx.x < stride) {
            buffer[threadIdx.x] += buffer[threadIdx.x + stride];
        }
    }
    __syncthreads();
    for (unsigned int column = threadIdx.x; column < columns; column += 128) {
        output[blockIdx.x * columns + column] = expf(row[column] - largest) / buffer[0];
    }
}

// Each row less its mean, by its deviation; a warp each.
extern "C" __global__ void layer_norm(const float* input, float* output, unsigned int rows, unsigned int columns)
{
    unsigned int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    unsigned int lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    float sum = 0.0f;
    for (unsigned int column = lane; column < columns; column += 32) {
        sum += input[row * columns + column];
    }
    for (unsigned int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    float mean = sum / (float)columns;
    float squares = 0.0f;
    for (unsigned int column = lane; column < columns; column += 32) {
        float distance = input[row * columns + column] - mean;
        squares += distance * distance;
    }
    for (unsigned int offset = 16; offset > 0; offset /= 2) {
        squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    }
    float deviation = sqrtf(squares / (float)columns + 1e-5f);
    for (unsigned int column = lane; column < columns; column += 32) {
        output[row * columns + column] = (input[row * columns + column] - mean) / deviation;
    }
}

// The elementary functions of the device's library: 8 results each.
extern "C" __global__ void functions(const float* input, float* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    float x = input[index];
    float* out = output + 8 * index;
    out[0] = expf(x);
    out[1] = logf(fabsf(x) + 1.0f);
    out[2] = sinf(x);
    out[3] = cosf(x);
    out[4] = tanhf(x);
    out[5] = powf(fabsf(x), 1.5f);
    out[6] = atanf(x);
    out[7] = erff(x);
}

// Those of double precision: 6 results each.
extern "C" __global__ void double_functions(const double* input, double* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    double x = input[index];
    double* out = output + 6 * index;
    out[0] = exp(x);
    out[1] = log(fabs(x) + 1.0);
    out[2] = sin(x);
    out[3] = sqrt(fabs(x));
    out[4] = cbrt(x);
    out[5] = fmod(x, 0.7);
}

// Sums, products and quotients in each direction of rounding: 12 results each.
extern "C" __global__ void roundings(const float2* input, float* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    float a = input[index].x;
    float b = input[index].y;
    float* out = output + 12 * index;
    out[0] = __fadd_rn(a, b);
    out[1] = __fadd_rz(a, b);
    out[2] = __fadd_ru(a, b);
    out[3] = __fadd_rd(a, b);
    out[4] = __fmul_rn(a, b);
    out[5] = __fmul_rz(a, b);
    out[6] = __fmul_ru(a, b);
    out[7] = __fmul_rd(a, b);
    out[8] = __fdiv_rn(a, b);
    out[9] = __fdiv_rz(a, b);
    out[10] = __fdiv_ru(a, b);
    out[11] = __fdiv_rd(a, b);
}

// Halves, converted, added, multiplied and compared, two at a time: 4 results each.
extern "C" __global__ void halves(const float2* input, unsigned int* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    float a = input[index].x;
    float b = input[index].y;
    unsigned int* out = output + 4 * index;
    unsigned short low;
    unsigned short high;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(low) : "f"(a));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(high) : "f"(b));
    unsigned int pair = (unsigned int)high << 16 | low;
    unsigned int swapped = (unsigned int)low << 16 | high;
    out[0] = pair;
    asm("add.f16x2 %0, %1, %2;" : "=r"(out[1]) : "r"(pair), "r"(swapped));
    asm("mul.f16x2 %0, %1, %2;" : "=r"(out[2]) : "r"(pair), "r"(swapped));
    asm("fma.rn.f16x2 %0, %1, %2, %1;" : "=r"(out[3]) : "r"(pair), "r"(swapped));
}

// Attention: softmax(query * key / sqrt(DEPTH)) * value, whose softmax is computed while the keys come by.
//
// The sum so far is scaled down whenever a larger score comes by, so that no row of scores is ever stored.
#define DEPTH 32
#define TILE 16

__device__ float widen(float value) { return value; }

__device__ float widen(unsigned short bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

__device__ void store(float value, float* to) { *to = value; }

__device__ void store(float value, unsigned short* to)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    *to = bits;
}

// The largest score so far, and the sum of all exponentials, each as if the largest had been known.
struct Running {
    float largest;
    float sum;

    __device__ Running() : largest(__int_as_float(0xff800000)), sum(0.0f) {}

    // Takes a score, and returns what everything summed before is to be scaled by; `weight` becomes the score's own part.
    __device__ float take(float score, float& weight)
    {
        float scale = 1.0f;
        if (score > largest) {
            scale = expf(largest - score);
            largest = score;
        }
        weight = expf(score - largest);
        sum = sum * scale + weight;
        return scale;
    }
};

// A thread for each query, a row of the grid for each head; keys and values pass through shared memory.
template <typename T> __device__ void attend(const T* queries, const T* keys, const T* values, T* output, unsigned int n, bool causal)
{
    __shared__ float key_tile[TILE][DEPTH];
    __shared__ float value_tile[TILE][DEPTH];
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int head = blockIdx.y * n * DEPTH;
    float query[DEPTH];
    float result[DEPTH];
    for (unsigned int at = 0; at < DEPTH; ++at) {
        query[at] = row < n ? widen(queries[head + row * DEPTH + at]) : 0.0f;
        result[at] = 0.0f;
    }
    Running running;
    for (unsigned int start = 0; start < n; start += TILE) {
        __syncthreads();
        for (unsigned int at = threadIdx.x; at < TILE * DEPTH; at += blockDim.x) {
            bool inside = start + at / DEPTH < n;
            key_tile[at / DEPTH][at % DEPTH] = inside ? widen(keys[head + start * DEPTH + at]) : 0.0f;
            value_tile[at / DEPTH][at % DEPTH] = inside ? widen(values[head + start * DEPTH + at]) : 0.0f;
        }
        __syncthreads();
        unsigned int end = causal ? row + 1 : n;
        for (unsigned int key = 0; key < TILE && start + key < end && start + key < n; ++key) {
            float score = 0.0f;
            for (unsigned int at = 0; at < DEPTH; ++at) {
                score += query[at] * key_tile[key][at];
            }
            float weight;
            float scale = running.take(score * rsqrtf(DEPTH), weight);
            for (unsigned int at = 0; at < DEPTH; ++at) {
                result[at] = result[at] * scale + weight * value_tile[key][at];
            }
        }
    }
    for (unsigned int at = 0; at < DEPTH && row < n; ++at) {
        store(result[at] / running.sum, output + head + row * DEPTH + at);
    }
}

extern "C" __global__ void attention(const float* queries, const float* keys, const float* values, float* output, unsigned int n)
{
    attend(queries, keys, values, output, n, false);
}

// Each query sees the keys up to its own place.
extern "C" __global__ void attention_causal(const float* queries, const float* keys, const float* values, float* output, unsigned int n)
{
    attend(queries, keys, values, output, n, true);
}

// Of halves, with sums in single precision.
extern "C" __global__ void attention_f16(const unsigned short* queries, const unsigned short* keys, const unsigned short* values,
                                         unsigned short* output, unsigned int n)
{
    attend(queries, keys, values, output, n, false);
}

// A sum that is meant for one largest score, for another; of nothing it stays nothing.
__device__ float rescaled(float sum, float largest, float other) { return sum > 0.0f ? sum * expf(largest - other) : 0.0f; }

// The softmax of each row in one pass over it and one to write it, a warp each: lanes combine what they have seen.
extern "C" __global__ void softmax_online(const float* input, float* output, unsigned int columns)
{
    const float* row = input + blockIdx.x * columns;
    Running running;
    float weight;
    for (unsigned int column = threadIdx.x; column < columns; column += 32) {
        running.take(row[column], weight);
    }
    for (unsigned int offset = 16; offset > 0; offset /= 2) {
        float largest = __shfl_xor_sync(0xffffffffu, running.largest, offset);
        float sum = __shfl_xor_sync(0xffffffffu, running.sum, offset);
        float common = fmaxf(largest, running.largest);
        running.sum = rescaled(running.sum, running.largest, common) + rescaled(sum, largest, common);
        running.largest = common;
    }
    for (unsigned int column = threadIdx.x; column < columns; column += 32) {
        output[blockIdx.x * columns + column] = expf(row[column] - running.largest) / running.sum;
    }
}

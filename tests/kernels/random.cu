// Random numbers that depend on nothing but a key and a counter, so that every thread has its own without any state.

__device__ unsigned int rotate_left(unsigned int value, unsigned int count) { return value << count | value >> (32 - count); }

// Threefry on two words: twenty rounds, with a part of the key after every fourth.
__device__ uint2 threefry(uint2 counter, uint2 key)
{
    const unsigned int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    unsigned int keys[3] = {key.x, key.y, 0x1bd11bdau ^ key.x ^ key.y};
    counter.x += keys[0];
    counter.y += keys[1];
    for (unsigned int round = 0; round < 20; ++round) {
        counter.x += counter.y;
        counter.y = rotate_left(counter.y, rotations[round % 8]) ^ counter.x;
        if (round % 4 == 3) {
            unsigned int injected = round / 4 + 1;
            counter.x += keys[injected % 3];
            counter.y += keys[(injected + 1) % 3] + injected;
        }
    }
    return counter;
}

// Two words for each counter, which are given with their keys.
extern "C" __global__ void random_threefry(const uint2* counters, const uint2* keys, uint2* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) {
        output[index] = threefry(counters[index], keys[index]);
    }
}

// From 0 to 1, without 1: the upper 24 bits of a word.
__device__ float uniform(unsigned int word) { return (float)(word >> 8) * 5.9604644775390625e-8f; }

// Numbers of thread after thread, two each.
extern "C" __global__ void random_uniform(float2* output, unsigned int seed, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) {
        uint2 words = threefry(make_uint2(index, 0), make_uint2(seed, 0));
        output[index] = make_float2(uniform(words.x), uniform(words.y));
    }
}

// Numbers of the normal distribution, by the transform of Box and Muller: the radius is the square root of a logarithm.
extern "C" __global__ void random_normal(float2* output, unsigned int seed, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    uint2 words = threefry(make_uint2(index, 0), make_uint2(seed, 0));
    float radius = sqrtf(-2.0f * logf(1.0f - uniform(words.x)));
    float sine;
    float cosine;
    sincospif(2.0f * uniform(words.y), &sine, &cosine);
    output[index] = make_float2(radius * cosine, radius * sine);
}

// How many of n points in a square lie in the quarter of a circle, in whole numbers.
extern "C" __global__ void random_circle(unsigned long long* inside, unsigned int seed, unsigned int n)
{
    unsigned long long count = 0;
    for (unsigned int index = blockIdx.x * blockDim.x + threadIdx.x; index < n; index += gridDim.x * blockDim.x) {
        uint2 words = threefry(make_uint2(index, 0), make_uint2(seed, 0));
        unsigned long long x = words.x >> 1;
        unsigned long long y = words.y >> 1;
        count += x * x + y * y < 1ull << 62;
    }
    atomicAdd(inside, count);
}

// The numbers from 0 to n - 1 in another order: four rounds that mix the halves of an index until it is less than n.
extern "C" __global__ void random_permutation(unsigned int* output, unsigned int seed, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned int bits = 2;
    while (1u << bits < n) {
        bits += 2;
    }
    unsigned int half = bits / 2;
    unsigned int mask = (1u << half) - 1;
    unsigned int value = index;
    do {
        unsigned int high = value >> half;
        unsigned int low = value & mask;
        for (unsigned int round = 0; round < 4; ++round) {
            unsigned int mixed = threefry(make_uint2(low, round), make_uint2(seed, 0)).x & mask;
            unsigned int before = high;
            high = low;
            low = before ^ mixed;
        }
        value = high << half | low;
    } while (value >= n);
    output[index] = value;
}

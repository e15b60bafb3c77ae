// Adds two vectors.
extern "C" __global__ void add(const float* x, const float* y, float* sum, unsigned int n)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        sum[i] = x[i] + y[i];
    }
}

// Squares each element in place.
extern "C" __global__ void square(float* x, unsigned int n)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] = x[i] * x[i];
    }
}

// The next state of each generator of random numbers, `steps` times over: work that takes a while.
extern "C" __global__ void step(unsigned int* state, unsigned int n, unsigned int steps)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    unsigned int value = state[i];
    for (unsigned int round = 0; round < steps; ++round) {
        value = value * 1664525u + 1013904223u;
    }
    state[i] = value;
}

// Counts how often each byte occurs.
extern "C" __global__ void count_bytes(const unsigned char* text, unsigned int n, unsigned int* counts)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&counts[text[i]], 1u);
    }
}

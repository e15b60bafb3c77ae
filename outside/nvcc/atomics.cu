// Atomic operations of every width, in global and shared memory, and a lock made of them.
#include "check.h"
#include <cuda_fp16.h>

__device__ int mutex;
__global__ void work(int* x, unsigned long long* y, float* f, double* d, __half2* h, int* guarded) {
    __shared__ int local;
    if (threadIdx.x == 0) local = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&local, i % 3);
    atomicMax(x, i * 7 % 1000), atomicMin(x + 1, -(i * 11 % 1000)), atomicXor(x + 2, i), atomicOr(x + 3, 1 << i % 32);
    atomicInc((unsigned*)x + 4, 99), atomicAdd(y, 1ull << 33), atomicAdd(f, 0.5f), atomicAdd(d, 0.25);
    atomicAdd(h, __floats2half2_rn(1, -1));
    for (bool done = false; !done;) {
        if (atomicCAS(&mutex, 0, 1) == 0) {
            __threadfence();
            *(volatile int*)guarded += 1;
            __threadfence();
            atomicExch(&mutex, 0), done = true;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(x + 5, local);
}

int main() {
    int *x = managed<int>(8), *guarded = managed<int>(1);
    auto* y = managed<unsigned long long>(1);
    float* f = managed<float>(1);
    double* d = managed<double>(1);
    __half2* h = managed<__half2>(1);
    work<<<4, 96>>>(x, y, f, d, h, guarded);
    finish();
    int most = 0, least = 0, exclusive = 0, rest = 0;
    for (int i = 0; i < 384; ++i) {
        most = i * 7 % 1000 > most ? i * 7 % 1000 : most, least = -(i * 11 % 1000) < least ? -(i * 11 % 1000) : least;
        exclusive ^= i, rest += i % 3;
    }
    EXPECT(x[0] == most && x[1] == least && x[2] == exclusive && x[3] == -1 && x[4] == 84 && x[5] == rest);
    EXPECT(*y == 384ull << 33 && *f == 192 && *d == 96 && *guarded == 384);
    EXPECT(__low2float(*h) == 384 && __high2float(*h) == -384);
}

// Stream-ordered allocation from the default pool, with a release threshold and its statistics.
#include "check.h"

__global__ void fill(int* x, int value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void same(const int* x, int value, int* wrong) {
    if (x[blockIdx.x * blockDim.x + threadIdx.x] != value) atomicAdd(wrong, 1);
}

int main() {
    cudaMemPool_t pool;
    CALL(cudaDeviceGetDefaultMemPool(&pool, 0));
    unsigned long long keep = ~0ull, used = 1, reserved = 0;
    CALL(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    cudaStream_t stream;
    CALL(cudaStreamCreate(&stream));
    int* wrong = managed<int>(1);
    for (int i = 0; i < 20; ++i) {
        int *a, *b, blocks = 1 + i * 3;
        CALL(cudaMallocAsync(&a, blocks * 256, stream)), CALL(cudaMallocAsync(&b, blocks * 256, stream));
        EXPECT(a != b);
        fill<<<blocks, 64, 0, stream>>>(a, i);
        fill<<<blocks, 64, 0, stream>>>(b, -i);
        same<<<blocks, 64, 0, stream>>>(a, i, wrong);
        same<<<blocks, 64, 0, stream>>>(b, -i, wrong);
        CALL(cudaFreeAsync(a, stream)), CALL(cudaFreeAsync(b, stream));
    }
    CALL(cudaStreamSynchronize(stream));
    EXPECT(*wrong == 0);
    CALL(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    CALL(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    EXPECT(used == 0 && reserved > 0);
    CALL(cudaMemPoolTrimTo(pool, 0));
    CALL(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    EXPECT(reserved == 0);
}

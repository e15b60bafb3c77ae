// Dynamic shared memory beyond 48 KiB, after the limit is raised.
#include "check.h"

__global__ void reverse(int* x, int count) {
    extern __shared__ int place[];
    for (int i = threadIdx.x; i < count; i += blockDim.x) place[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) x[i] = place[count - 1 - i];
}

int main() {
    const int count = 25000;
    int* x = managed<int>(count);
    for (int i = 0; i < count; ++i) x[i] = i;
    reverse<<<1, 256, count * 4>>>(x, count);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    CALL(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, count * 4));
    reverse<<<1, 256, count * 4>>>(x, count);
    finish();
    for (int i = 0; i < count; ++i) EXPECT_AT(i, x[i], count - 1 - i);
}

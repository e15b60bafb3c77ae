// An assertion that fails ends the context with its own error, and one that holds does nothing.
#include "check.h"
#include <cassert>

__global__ void check(int limit) { assert(threadIdx.x < limit); }

int main() {
    check<<<1, 32>>>(32);
    finish();
    check<<<1, 32>>>(30);
    EXPECT(cudaDeviceSynchronize() == cudaErrorAssert);
    EXPECT(cudaDeviceSynchronize() == cudaErrorAssert);
}

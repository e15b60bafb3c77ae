// Variables of the device and constants by their names.
#include "check.h"

__constant__ float weights[8];
__device__ int counters[4] = {1, 2, 3, 4};
__device__ double pointer_target = 2.5;
__device__ double* pointer = &pointer_target;

__global__ void use(float* out) {
    float sum = 0;
    for (int i = 0; i < 8; ++i) sum += weights[i] * i;
    out[0] = sum, out[1] = *pointer;
    counters[threadIdx.x] *= 10;
}

int main() {
    float host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *out = managed<float>(2);
    CALL(cudaMemcpyToSymbol(weights, host, sizeof host));
    CALL(cudaMemcpyToSymbol(weights, host, 8, 24));
    use<<<1, 4>>>(out);
    finish();
    int found[4];
    CALL(cudaMemcpyFromSymbol(found, counters, sizeof found));
    for (int i = 0; i < 4; ++i) EXPECT_AT(i, found[i], (i + 1) * 10);
    EXPECT(out[0] == 0 * 1 + 2 + 6 + 12 + 20 + 30 + 6 * 1 + 7 * 2 && out[1] == 2.5f);
    void* address;
    size_t size;
    CALL(cudaGetSymbolAddress(&address, counters)), CALL(cudaGetSymbolSize(&size, counters));
    EXPECT(size == 16 && address != nullptr);
}

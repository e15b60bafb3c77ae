// Pinned and mapped memory, memory that is registered, and rows that are copied.
#include "check.h"
#include <vector>

__global__ void twice(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }

int main() {
    int *mapped, *device, *pinned;
    CALL(cudaHostAlloc(&mapped, 1024, cudaHostAllocMapped)), CALL(cudaHostGetDevicePointer(&device, mapped, 0));
    for (int i = 0; i < 256; ++i) mapped[i] = i;
    twice<<<2, 128>>>(device);
    finish();
    for (int i = 0; i < 256; ++i) EXPECT_AT(i, mapped[i], 2 * i);
    CALL(cudaMallocHost(&pinned, 1024));
    for (int i = 0; i < 256; ++i) pinned[i] = -i;
    int* rows;
    size_t pitch;
    CALL(cudaMallocPitch(&rows, &pitch, 64, 16));
    CALL(cudaMemcpy2DAsync(rows, pitch, pinned, 64, 64, 16, cudaMemcpyHostToDevice));
    std::vector<int> back(256);
    CALL(cudaMemcpy2D(back.data(), 64, rows, pitch, 64, 16, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 256; ++i) EXPECT_AT(i, back[i], -i);
    CALL(cudaHostRegister(back.data(), 1024, cudaHostRegisterMapped)), CALL(cudaHostGetDevicePointer(&device, back.data(), 0));
    twice<<<2, 128>>>(device);
    finish();
    for (int i = 0; i < 256; ++i) EXPECT_AT(i, back[i], -2 * i);
    cudaPointerAttributes attributes;
    CALL(cudaPointerGetAttributes(&attributes, mapped));
    EXPECT(attributes.type == cudaMemoryTypeHost);
    CALL(cudaPointerGetAttributes(&attributes, rows));
    EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
    CALL(cudaHostUnregister(back.data())), CALL(cudaFreeHost(pinned)), CALL(cudaFreeHost(mapped)), CALL(cudaFree(rows));
}

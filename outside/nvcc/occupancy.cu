// Attributes of devices and kernels, and occupancy that fits them.
#include "check.h"

__global__ void __launch_bounds__(256) kernel(int* x) {
    __shared__ int place[1024];
    place[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = place[255 - threadIdx.x];
}

int main() {
    cudaDeviceProp device;
    CALL(cudaGetDeviceProperties(&device, 0));
    EXPECT(device.warpSize == 32 && device.major * 10 + device.minor >= 75 && device.multiProcessorCount > 0);
    int count = 0;
    CALL(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    EXPECT(count == device.multiProcessorCount);
    cudaFuncAttributes attributes;
    CALL(cudaFuncGetAttributes(&attributes, kernel));
    EXPECT(attributes.sharedSizeBytes == 4096 && attributes.maxThreadsPerBlock == 256 && attributes.ptxVersion == 90);
    int few = 0, many = 0, grid = 0, block = 0;
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&many, kernel, 64, 0));
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&few, kernel, 256, 40000));
    EXPECT(many > few && few > 0);
    CALL(cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel));
    EXPECT(block > 0 && block <= 256 && grid > 0);
    int* x = managed<int>(256);
    kernel<<<1, 512>>>(x);
    EXPECT(cudaGetLastError() != cudaSuccess);
    kernel<<<1, 256>>>(x);
    finish();
}

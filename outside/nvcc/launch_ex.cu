// Launches with attributes: clusters of a size chosen at run time, programmatic dependent launches, cooperation.
#include "check.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void ranks(unsigned* out) {
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) out[blockIdx.x] = cluster.block_rank() * 10 + cluster.num_blocks();
}
__global__ void first(int* x) {
    x[threadIdx.x] = threadIdx.x + 5;
    cudaTriggerProgrammaticLaunchCompletion();
}
__global__ void second(const int* x, int* y) {
    cudaGridDependencySynchronize();
    y[threadIdx.x] = x[threadIdx.x] * 2;
}

int main() {
    unsigned* out = managed<unsigned>(8);
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8), config.blockDim = dim3(32), config.attrs = &attribute, config.numAttrs = 1;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    CALL(cudaLaunchKernelEx(&config, ranks, out));
    finish();
    for (unsigned i = 0; i < 8; ++i) EXPECT_AT(i, out[i], i % 2 * 10 + 2);
    int *x = managed<int>(64), *y = managed<int>(64);
    cudaStream_t stream;
    CALL(cudaStreamCreate(&stream));
    first<<<1, 64, 0, stream>>>(x);
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(1), config.blockDim = dim3(64), config.stream = stream;
    CALL(cudaLaunchKernelEx(&config, second, (const int*)x, y));
    CALL(cudaStreamSynchronize(stream));
    for (int i = 0; i < 64; ++i) EXPECT_AT(i, y[i], (i + 5) * 2);
}

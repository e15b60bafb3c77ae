// Blocks of a cluster read each other's shared memory.
#include "check.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void __cluster_dims__(4, 1, 1) ring(int* out) {
    __shared__ int part[32];
    auto cluster = cg::this_cluster();
    part[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
    cluster.sync();
    int* next = cluster.map_shared_rank(part, (cluster.block_rank() + 1) % cluster.num_blocks());
    out[blockIdx.x * 32 + threadIdx.x] = next[31 - threadIdx.x];
    atomicAdd(cluster.map_shared_rank(&part[0], 0), 1);
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) out[gridDim.x * 32 + blockIdx.x / 4] = part[0];
}

int main() {
    int* out = managed<int>(8 * 32 + 2);
    // The counter is in a cell that others read: reads end before it changes.
    ring<<<8, 32>>>(out);
    finish();
    for (int block = 0; block < 8; ++block)
        for (int i = 0; i < 31; ++i)
            EXPECT_AT(i, out[block * 32 + i], (block / 4 * 4 + (block + 1) % 4) * 100 + 31 - i);
    EXPECT_AT(0, out[256], 128);
    EXPECT_AT(1, out[257], 400 + 128);
}

// Labeled and binary partitions, coalesced groups of divergent threads, and their reductions.
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void labeled(int* out) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int i = threadIdx.x, label = (i * 7) % 5;
    auto group = cg::labeled_partition(warp, label);
    out[i * 6] = group.size();
    out[i * 6 + 1] = group.thread_rank();
    out[i * 6 + 2] = cg::reduce(group, i, cg::plus<int>());
    out[i * 6 + 3] = group.shfl(i, 0);
    auto half = cg::binary_partition(warp, i % 3 == 0);
    out[i * 6 + 4] = cg::reduce(half, i, cg::less<int>());
    if (i % 4 == 1) {
        auto active = cg::coalesced_threads();
        out[i * 6 + 5] = active.size() * 100 + active.thread_rank();
    }
}

int main() {
    const int count = 64;
    int* out = managed<int>(count * 6);
    labeled<<<1, count>>>(out);
    finish();
    auto label = [](int i) { return (i * 7) % 5; };
    for (int i = 0; i < count; ++i) {
        int first = i / 32 * 32, size = 0, rank = 0, sum = 0, leader = -1, least = 1000;
        for (int j = first; j < first + 32; ++j) {
            if (label(j) == label(i)) {
                size += 1, rank += j < i, sum += j;
                leader = leader < 0 ? j : leader;
            }
            if ((j % 3 == 0) == (i % 3 == 0) && j < least) least = j;
        }
        EXPECT_AT(i, out[i * 6], size);
        EXPECT_AT(i, out[i * 6 + 1], rank);
        EXPECT_AT(i, out[i * 6 + 2], sum);
        EXPECT_AT(i, out[i * 6 + 3], leader);
        EXPECT_AT(i, out[i * 6 + 4], least);
        EXPECT_AT(i, out[i * 6 + 5], i % 4 == 1 ? 800 + i % 32 / 4 : 0);
    }
}

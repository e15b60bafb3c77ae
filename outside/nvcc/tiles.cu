// Tiles narrower than a warp: shuffles, votes, ranks and reductions of each.
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

template <int Width>
__global__ void tiles(int* out) {
    auto tile = cg::tiled_partition<Width>(cg::this_thread_block());
    int value = threadIdx.x * threadIdx.x % 37, at = threadIdx.x * 7;
    out[at] = tile.shfl_xor(value, Width / 2);
    out[at + 1] = tile.shfl_down(value, 1);
    out[at + 2] = tile.shfl_up(value, 1);
    out[at + 3] = tile.ballot(value % 3 == 0);
    out[at + 4] = cg::reduce(tile, value, cg::plus<int>());
    out[at + 5] = cg::reduce(tile, value, cg::greater<int>());
    out[at + 6] = cg::exclusive_scan(tile, value, cg::plus<int>());
}

template <int Width>
void check(int* out) {
    const int count = 96;
    tiles<Width><<<1, count>>>(out);
    finish();
    auto value = [](int i) { return i * i % 37; };
    for (int i = 0; i < count; ++i) {
        int first = i / Width * Width, rank = i - first, ballot = 0, sum = 0, largest = 0, before = 0;
        for (int j = 0; j < Width; ++j) {
            ballot |= (value(first + j) % 3 == 0) << j;
            sum += value(first + j);
            largest = value(first + j) > largest ? value(first + j) : largest;
            before += j < rank ? value(first + j) : 0;
        }
        EXPECT_AT(i, out[i * 7], value(first + (rank ^ (Width / 2))));
        EXPECT_AT(i, out[i * 7 + 1], value(rank + 1 < Width ? i + 1 : i));
        EXPECT_AT(i, out[i * 7 + 2], value(rank > 0 ? i - 1 : i));
        EXPECT_AT(i, out[i * 7 + 3], ballot);
        EXPECT_AT(i, out[i * 7 + 4], sum);
        EXPECT_AT(i, out[i * 7 + 5], largest);
        EXPECT_AT(i, out[i * 7 + 6], before);
    }
}

int main() {
    int* out = managed<int>(96 * 7);
    check<2>(out), check<4>(out), check<8>(out), check<16>(out), check<32>(out);
}

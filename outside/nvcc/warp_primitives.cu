// Shuffles, votes, matches and reductions of a warp under member masks of divergent threads.
#include "check.h"

__global__ void use(unsigned* out) {
    unsigned lane = threadIdx.x % 32, *row = out + threadIdx.x * 8;
    row[0] = __match_any_sync(~0u, lane % 7);
    int all;
    row[1] = __match_all_sync(~0u, lane / 64, &all) & -all;
    row[2] = __reduce_add_sync(~0u, lane), row[3] = __reduce_xor_sync(~0u, lane * lane);
    if (lane % 2) row[4] = __shfl_sync(0xaaaaaaaau, lane * 3, (lane + 2) % 32);
    else row[4] = __shfl_down_sync(0x55555555u, lane, 4, 16);
    unsigned mask = __ballot_sync(~0u, lane >= 20);
    if (lane >= 20) row[5] = __reduce_max_sync(mask, lane ^ 5), row[6] = __any_sync(mask, lane == 31) * 2 + __all_sync(mask, lane > 19);
    __syncwarp();
    row[7] = __popc(__activemask());
}

int main() {
    unsigned* out = managed<unsigned>(64 * 8);
    use<<<1, 64>>>(out);
    finish();
    for (unsigned i = 0; i < 64; ++i) {
        unsigned lane = i % 32, *row = out + i * 8, match = 0, exclusive = 0, most = 0;
        for (unsigned j = 0; j < 32; ++j) {
            match |= (j % 7 == lane % 7) << j, exclusive ^= j * j;
            if (j >= 20 && (j ^ 5) > most) most = j ^ 5;
        }
        EXPECT_AT(i, row[0], match);
        EXPECT_AT(i, row[1], ~0u);
        EXPECT_AT(i, row[2], 496u);
        EXPECT_AT(i, row[3], exclusive);
        EXPECT_AT(i, row[4], lane % 2 ? (lane + 2) % 32 * 3 : lane % 16 + 4 < 16 ? lane + 4 : lane);
        EXPECT_AT(i, row[5], lane >= 20 ? most : 0u);
        EXPECT_AT(i, row[6], lane >= 20 ? 3u : 0u);
        EXPECT_AT(i, row[7], 32u);
    }
}

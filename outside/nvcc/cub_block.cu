// CUB within a block and a warp: reduction, scan, radix sort, exchange.
#include "check.h"
#include <cub/cub.cuh>

__global__ void collective(const int* in, int* out) {
    using Reduce = cub::BlockReduce<int, 128>;
    using Scan = cub::BlockScan<int, 128>;
    using Sort = cub::BlockRadixSort<int, 128, 4>;
    using WarpScan = cub::WarpScan<int>;
    __shared__ union {
        Reduce::TempStorage reduce;
        Scan::TempStorage scan;
        Sort::TempStorage sort;
        WarpScan::TempStorage warp[4];
    } place;
    int items[4], total = 0;
    for (int k = 0; k < 4; ++k) items[k] = in[threadIdx.x * 4 + k], total += items[k];
    int sum = Reduce(place.reduce).Sum(total);
    if (threadIdx.x == 0) out[0] = sum;
    __syncthreads();
    int before;
    Scan(place.scan).ExclusiveSum(total, before);
    out[1 + threadIdx.x] = before;
    __syncthreads();
    WarpScan(place.warp[threadIdx.x / 32]).InclusiveScan(total, before, cuda::maximum<int>());
    out[129 + threadIdx.x] = before;
    __syncthreads();
    Sort(place.sort).Sort(items);
    for (int k = 0; k < 4; ++k) out[257 + threadIdx.x * 4 + k] = items[k];
}

int main() {
    int *in = managed<int>(512), *out = managed<int>(257 + 512), before = 0, largest = 0;
    for (int i = 0; i < 512; ++i) in[i] = i * 7919 % 1021 - 300;
    collective<<<1, 128>>>(in, out);
    finish();
    for (int i = 0; i < 128; ++i) {
        int total = in[i * 4] + in[i * 4 + 1] + in[i * 4 + 2] + in[i * 4 + 3];
        EXPECT_AT(i, out[1 + i], before);
        before += total;
        largest = i % 32 == 0 || total > largest ? total : largest;
        EXPECT_AT(i, out[129 + i], largest);
    }
    EXPECT_AT(0, out[0], before);
    long long sum = out[257];
    for (int i = 1; i < 512; ++i) {
        EXPECT(out[257 + i - 1] <= out[257 + i]);
        sum += out[257 + i];
    }
    EXPECT(sum == before);
}

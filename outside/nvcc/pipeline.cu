// Asynchronous copies to shared memory: a pipeline of two stages and a barrier that counts bytes.
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;

__global__ void sums(const int* in, int* out, int batches) {
    constexpr int Size = 128;
    __shared__ int stages[2][Size];
    auto pipe = cuda::make_pipeline();
    auto fetch = [&](int batch) {
        pipe.producer_acquire();
        cuda::memcpy_async(&stages[batch % 2][threadIdx.x], &in[batch * Size + threadIdx.x], sizeof(int), pipe);
        pipe.producer_commit();
    };
    fetch(0);
    int sum = 0;
    for (int batch = 0; batch < batches; ++batch) {
        if (batch + 1 < batches) fetch(batch + 1);
        if (batch + 1 < batches) cuda::pipeline_consumer_wait_prior<1>(pipe);
        else cuda::pipeline_consumer_wait_prior<0>(pipe);
        __syncthreads();
        sum += stages[batch % 2][Size - 1 - threadIdx.x];
        __syncthreads();
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}

__global__ void arrive(const int* in, int* out) {
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ Barrier barrier;
    __shared__ alignas(16) int part[128];
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&barrier, block.size());
    block.sync();
    cuda::memcpy_async(block, part, in, cuda::aligned_size_t<16>(sizeof part), barrier);
    barrier.arrive_and_wait();
    out[threadIdx.x] = part[(threadIdx.x * 5 + 1) % 128];
}

int main() {
    const int batches = 9;
    int *in = managed<int>(batches * 128), *out = managed<int>(128);
    for (int i = 0; i < batches * 128; ++i) in[i] = i * 31 % 1000;
    sums<<<1, 128>>>(in, out, batches);
    finish();
    for (int i = 0; i < 128; ++i) {
        int sum = 0;
        for (int batch = 0; batch < batches; ++batch) sum += in[batch * 128 + 127 - i];
        EXPECT_AT(i, out[i], sum);
    }
    arrive<<<1, 128>>>(in, out);
    finish();
    for (int i = 0; i < 128; ++i) EXPECT_AT(i, out[i], in[(i * 5 + 1) % 128]);
}

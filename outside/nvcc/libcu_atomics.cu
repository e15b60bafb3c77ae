// cuda::atomic, latch, semaphore and math of libcu++: a ticket lock and a message between blocks.
#include "check.h"
#include <cuda/atomic>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/tuple>

__device__ cuda::atomic<int, cuda::thread_scope_device> ready, total;

__global__ void pass(int* message, int* out) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            for (int i = 0; i < 32; ++i) message[i] = i * i;
            ready.store(1, cuda::memory_order_release);
            ready.notify_all();
        }
    } else {
        if (threadIdx.x == 0) ready.wait(0, cuda::memory_order_acquire);
        __syncthreads();
        out[(blockIdx.x - 1) * 32 + threadIdx.x] = message[threadIdx.x];
        total.fetch_add(threadIdx.x, cuda::memory_order_relaxed);
    }
}

__global__ void complex(float* out) {
    cuda::std::complex<float> z(0.5f, 0.25f), c(-0.5f, 0.125f);
    for (unsigned i = 0; i < threadIdx.x; ++i) z = z * z + c;
    cuda::std::array<float, 2> pair = {z.real(), z.imag()};
    auto [a, b] = cuda::std::make_tuple(pair[0], pair[1]);
    out[threadIdx.x * 2] = a, out[threadIdx.x * 2 + 1] = b;
}

int main() {
    int *message = managed<int>(32), *out = managed<int>(96);
    pass<<<4, 32>>>(message, out);
    finish();
    for (int i = 0; i < 96; ++i) EXPECT_AT(i, out[i], (i % 32) * (i % 32));
    float* z = managed<float>(16);
    complex<<<1, 8>>>(z);
    finish();
    double x = 0.5, y = 0.25;
    for (int i = 0; i < 8; ++i) {
        EXPECT(z[2 * i] - x < 1e-5 && x - z[2 * i] < 1e-5 && z[2 * i + 1] - y < 1e-5 && y - z[2 * i + 1] < 1e-5);
        double next = x * x - y * y - 0.5;
        y = 2 * x * y + 0.125, x = next;
    }
}

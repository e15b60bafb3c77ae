// A cooperative launch whose blocks wait for each other twice in each of several steps.
#include "check.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void steps(int* a, int* b, int count) {
    auto grid = cg::this_grid();
    for (int step = 0; step < 6; ++step) {
        for (unsigned i = grid.thread_rank(); i < count; i += grid.size()) b[i] = a[(i + 1) % count] + a[i];
        grid.sync();
        for (unsigned i = grid.thread_rank(); i < count; i += grid.size()) a[i] = b[(i + count - 1) % count] % 1009;
        grid.sync();
    }
}

int main() {
    int count = 1000, *a = managed<int>(count), *b = managed<int>(count);
    int x[1000], y[1000];
    for (int i = 0; i < count; ++i) a[i] = x[i] = i * 31 % 101;
    void* values[] = {&a, &b, &count};
    CALL(cudaLaunchCooperativeKernel((void*)steps, dim3(7), dim3(64), values, 0, 0));
    finish();
    for (int step = 0; step < 6; ++step) {
        for (int i = 0; i < count; ++i) y[i] = x[(i + 1) % count] + x[i];
        for (int i = 0; i < count; ++i) x[i] = y[(i + count - 1) % count] % 1009;
    }
    for (int i = 0; i < count; ++i) EXPECT_AT(i, a[i], x[i]);
}

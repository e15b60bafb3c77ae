// Allocations that are nodes of a captured graph.
#include "check.h"

__global__ void fill(int* x) { x[threadIdx.x] = threadIdx.x * 3; }
__global__ void add(const int* x, int* y) { y[threadIdx.x] += x[threadIdx.x]; }

int main() {
    int *temporary, *out = managed<int>(128);
    cudaStream_t stream;
    CALL(cudaStreamCreate(&stream)), CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CALL(cudaMallocAsync(&temporary, 512, stream));
    fill<<<1, 128, 0, stream>>>(temporary);
    add<<<1, 128, 0, stream>>>(temporary, out);
    CALL(cudaFreeAsync(temporary, stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CALL(cudaStreamEndCapture(stream, &graph)), CALL(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; ++i) CALL(cudaGraphLaunch(exec, stream));
    CALL(cudaStreamSynchronize(stream));
    for (int i = 0; i < 128; ++i) EXPECT_AT(i, out[i], 9 * i);
    size_t used = 1;
    CALL(cudaGraphExecDestroy(exec)), CALL(cudaGraphDestroy(graph)), CALL(cudaDeviceGraphMemTrim(0));
    CALL(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
    EXPECT(used == 0);
}

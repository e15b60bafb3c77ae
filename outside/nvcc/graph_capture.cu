// A graph captured from two streams, launched many times.
#include "check.h"

__global__ void add(int* x, int y) { x[threadIdx.x] += y; }
__global__ void join(const int* a, const int* b, int* c) { c[threadIdx.x] += a[threadIdx.x] * 1000 + b[threadIdx.x]; }

int main() {
    int *a = managed<int>(64), *b = managed<int>(64), *c = managed<int>(64);
    cudaStream_t first, second;
    cudaEvent_t fork, end;
    CALL(cudaStreamCreate(&first)), CALL(cudaStreamCreate(&second));
    CALL(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming)), CALL(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
    CALL(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    CALL(cudaEventRecord(fork, first)), CALL(cudaStreamWaitEvent(second, fork));
    add<<<1, 64, 0, first>>>(a, 1);
    add<<<1, 64, 0, second>>>(b, 2);
    CALL(cudaEventRecord(end, second)), CALL(cudaStreamWaitEvent(first, end));
    join<<<1, 64, 0, first>>>(a, b, c);
    cudaGraph_t graph;
    CALL(cudaStreamEndCapture(first, &graph));
    size_t count = 0;
    CALL(cudaGraphGetNodes(graph, nullptr, &count));
    EXPECT(count == 3);
    cudaGraphExec_t exec;
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    int wanted = 0;
    for (int i = 1; i <= 50; ++i) {
        CALL(cudaGraphLaunch(exec, first));
        wanted += i * 1000 + 2 * i;
    }
    CALL(cudaStreamSynchronize(first));
    for (int i = 0; i < 64; ++i) EXPECT_AT(i, c[i], wanted);
    CALL(cudaGraphExecDestroy(exec)), CALL(cudaGraphDestroy(graph));
}

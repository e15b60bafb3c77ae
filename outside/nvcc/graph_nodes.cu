// A graph built from nodes: fill, copy, kernel, host function, child graph, and parameters that change between launches.
#include "check.h"

__global__ void scale(int* x, int factor) { x[threadIdx.x] *= factor; }
static int called = 0;

int main() {
    int *a, *b, factor = 3, host[64];
    CALL(cudaMalloc(&a, 256)), CALL(cudaMalloc(&b, 256));
    cudaGraph_t graph, child;
    CALL(cudaGraphCreate(&graph, 0)), CALL(cudaGraphCreate(&child, 0));
    cudaGraphNode_t fill, copy, kernel, notify, nested, back;
    cudaMemsetParams filling = {};
    filling.dst = a, filling.value = 7, filling.elementSize = 4, filling.width = 64, filling.height = 1;
    CALL(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &filling));
    CALL(cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, b, a, 256, cudaMemcpyDeviceToDevice));
    void* values[] = {&b, &factor};
    cudaKernelNodeParams params = {};
    params.func = (void*)scale, params.gridDim = dim3(1), params.blockDim = dim3(64), params.kernelParams = values;
    CALL(cudaGraphAddKernelNode(&kernel, graph, &copy, 1, &params));
    cudaGraphNode_t inner;
    CALL(cudaGraphAddKernelNode(&inner, child, nullptr, 0, &params));
    CALL(cudaGraphAddChildGraphNode(&nested, graph, &kernel, 1, child));
    CALL(cudaGraphAddMemcpyNode1D(&back, graph, &nested, 1, host, b, 256, cudaMemcpyDeviceToHost));
    cudaHostNodeParams function = {};
    function.fn = [](void* count) { ++*(int*)count; }, function.userData = &called;
    CALL(cudaGraphAddHostNode(&notify, graph, &back, 1, &function));
    cudaGraphExec_t exec;
    CALL(cudaGraphInstantiate(&exec, graph, 0));
    CALL(cudaGraphLaunch(exec, 0)), CALL(cudaDeviceSynchronize());
    for (int i = 0; i < 64; ++i) EXPECT_AT(i, host[i], 7 * 3 * 3);
    factor = 5;
    CALL(cudaGraphExecKernelNodeSetParams(exec, kernel, &params));
    CALL(cudaGraphLaunch(exec, 0)), CALL(cudaDeviceSynchronize());
    for (int i = 0; i < 64; ++i) EXPECT_AT(i, host[i], 7 * 5 * 3);
    EXPECT(called == 2);
}

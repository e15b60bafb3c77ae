// Streams that wait for each other's events, host functions between them, and priorities.
#include "check.h"

__global__ void step(long long* x, int add) { *x = *x * 3 + add; }
static int order[4], calls = 0;

int main() {
    long long* x = managed<long long>(1);
    int least, greatest;
    CALL(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(greatest < least);
    cudaStream_t streams[4];
    cudaEvent_t events[4];
    for (int i = 0; i < 4; ++i) {
        CALL(cudaStreamCreateWithPriority(&streams[i], cudaStreamNonBlocking, i % 2 ? least : greatest));
        CALL(cudaEventCreate(&events[i]));
    }
    long long wanted = 0;
    for (int round = 0; round < 40; ++round) {
        int i = round * 7 % 4, before = (round + 3) * 7 % 4;
        if (round > 0) CALL(cudaStreamWaitEvent(streams[i], events[before]));
        step<<<1, 1, 0, streams[i]>>>(x, round);
        CALL(cudaEventRecord(events[i], streams[i]));
        wanted = wanted * 3 + round;
    }
    int last = 39 * 7 % 4;
    CALL(cudaLaunchHostFunc(streams[last], [](void*) { order[calls++] = 1; }, nullptr));
    CALL(cudaLaunchHostFunc(streams[last], [](void*) { order[calls++] = 2; }, nullptr));
    CALL(cudaStreamSynchronize(streams[last]));
    EXPECT(*x == wanted && calls == 2 && order[0] == 1 && order[1] == 2);
    float time = -1;
    CALL(cudaEventElapsedTime(&time, events[38 * 7 % 4], events[last]));
    EXPECT(time >= 0);
}

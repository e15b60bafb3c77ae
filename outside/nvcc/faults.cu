// A trap and an address of nothing, each in a process of its own, are the errors that the runtime documents.
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

__global__ void trap() { __trap(); }
__global__ void write(int* x) { *x = 1; }
__global__ void misaligned(char* x) { *(int*)(x + 1) = 1; }

template <class F>
int outcome(F launch) {
    std::fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
        freopen("/dev/null", "w", stderr);
        launch();
        _exit(cudaDeviceSynchronize() % 256);
    }
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main() {
    EXPECT(outcome([] { trap<<<1, 1>>>(); }) == cudaErrorLaunchFailure % 256);
    EXPECT(outcome([] { write<<<1, 1>>>((int*)16); }) == cudaErrorIllegalAddress % 256);
    EXPECT(outcome([] {
               char* x;
               cudaMalloc(&x, 16);
               misaligned<<<1, 1>>>(x);
           })
           == cudaErrorMisalignedAddress % 256);
}

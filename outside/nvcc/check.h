// Shared by the programs: calls that have to succeed, results that have to be right, and managed arrays.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <type_traits>

inline void call(cudaError_t code, const char* text, const char* file, int line) {
    if (code != cudaSuccess) {
        std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, text, cudaGetErrorString(code));
        std::exit(1);
    }
}

template <class T>
void expect_at(long long index, T found, T wanted, const char* file, int line) {
    if (!(found == wanted)) {
        std::fprintf(stderr, "%s:%d: at %lld: %g, not %g\n", file, line, index, (double)found, (double)wanted);
        std::exit(1);
    }
}

#define CALL(...) call((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define EXPECT_AT(index, found, wanted) expect_at<std::decay_t<decltype(found)>>(index, found, wanted, __FILE__, __LINE__)

#define EXPECT(...) \
    do { \
        if (!(__VA_ARGS__)) { \
            std::fprintf(stderr, "%s:%d: is not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
            std::exit(1); \
        } \
    } while (0)

template <class T>
T* managed(size_t count) {
    T* memory = nullptr;
    CALL(cudaMallocManaged(&memory, count * sizeof(T)));
    for (size_t i = 0; i < count * sizeof(T); ++i) reinterpret_cast<unsigned char*>(memory)[i] = 0;
    return memory;
}

inline void finish() {
    CALL(cudaGetLastError());
    CALL(cudaDeviceSynchronize());
}

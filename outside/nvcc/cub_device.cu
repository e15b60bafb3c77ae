// CUB over the device: reduction, scan, radix sort of pairs, selection, histogram, run lengths.
#include "check.h"
#include <algorithm>
#include <cub/cub.cuh>
#include <numeric>
#include <vector>

struct IsOdd {
    __device__ bool operator()(int x) const { return x & 1; }
};

template <class F>
void with_storage(F f) {
    void* storage = nullptr;
    size_t size = 0;
    CALL(f(storage, size));
    CALL(cudaMalloc(&storage, size));
    CALL(f(storage, size));
    finish();
    CALL(cudaFree(storage));
}

int main() {
    const int count = 20000;
    int *in = managed<int>(count), *out = managed<int>(count), *more = managed<int>(count), *place = managed<int>(count);
    int* number = managed<int>(1);
    for (int i = 0; i < count; ++i) in[i] = (unsigned)i * 2654435761u >> 20, place[i] = i;
    std::vector<int> host(in, in + count);
    with_storage([&](void* s, size_t& n) { return cub::DeviceReduce::Sum(s, n, in, number, count); });
    EXPECT(*number == std::accumulate(host.begin(), host.end(), 0));
    with_storage([&](void* s, size_t& n) { return cub::DeviceReduce::Max(s, n, in, number, count); });
    EXPECT(*number == *std::max_element(host.begin(), host.end()));
    with_storage([&](void* s, size_t& n) { return cub::DeviceScan::InclusiveSum(s, n, in, out, count); });
    for (int i = 0, sum = 0; i < count; ++i) EXPECT_AT(i, out[i], sum += host[i]);
    with_storage([&](void* s, size_t& n) { return cub::DeviceSelect::If(s, n, in, out, number, count, IsOdd()); });
    int odd = 0;
    for (int x : host)
        if (x & 1) EXPECT_AT(odd, out[odd], x), ++odd;
    EXPECT(*number == odd);
    with_storage([&](void* s, size_t& n) { return cub::DeviceRadixSort::SortPairs(s, n, in, out, place, more, count); });
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return host[a] < host[b]; });
    for (int i = 0; i < count; ++i) EXPECT_AT(i, out[i], host[order[i]]), EXPECT_AT(i, more[i], order[i]);
    int *lengths = managed<int>(count), *unique = managed<int>(count);
    with_storage([&](void* s, size_t& n) { return cub::DeviceRunLengthEncode::Encode(s, n, out, unique, lengths, number, count); });
    int runs = 0;
    for (int i = 0; i < count; ++runs) {
        int end = i;
        while (end < count && out[end] == out[i]) ++end;
        EXPECT_AT(runs, unique[runs], out[i]), EXPECT_AT(runs, lengths[runs], end - i);
        i = end;
    }
    EXPECT(*number == runs);
    with_storage([&](void* s, size_t& n) { return cub::DeviceHistogram::HistogramEven(s, n, in, out, 17, 0, 4096, count); });
    int bins[16] = {};
    for (int x : host) ++bins[x / 256];
    for (int i = 0; i < 16; ++i) EXPECT_AT(i, out[i], bins[i]);
}

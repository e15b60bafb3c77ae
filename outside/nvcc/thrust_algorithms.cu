// Thrust: transformations, reductions, scans, sorts by keys, sets and searches.
#include "check.h"
#include <algorithm>
#include <thrust/binary_search.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

struct Square {
    __host__ __device__ long long operator()(int x) const { return (long long)x * x; }
};

int main() {
    const int count = 5000;
    thrust::host_vector<int> host(count);
    for (int i = 0; i < count; ++i) host[i] = i * 7919 % 613;
    thrust::device_vector<int> device = host;
    long long sum = thrust::transform_reduce(device.begin(), device.end(), Square(), 0LL, thrust::plus<long long>());
    long long wanted = 0;
    for (int x : host) wanted += (long long)x * x;
    EXPECT(sum == wanted);
    thrust::device_vector<int> scanned(count);
    thrust::exclusive_scan(device.begin(), device.end(), scanned.begin(), 5, thrust::maximum<int>());
    thrust::host_vector<int> found = scanned;
    for (int i = 0, largest = 5; i < count; largest = std::max(largest, host[i++])) EXPECT_AT(i, found[i], largest);
    thrust::device_vector<int> index(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(count));
    thrust::device_vector<int> keys = device;
    thrust::stable_sort_by_key(keys.begin(), keys.end(), index.begin(), thrust::greater<int>());
    thrust::host_vector<int> places = index;
    for (int i = 1; i < count; ++i) {
        int a = host[places[i - 1]], b = host[places[i]];
        EXPECT(a > b || (a == b && places[i - 1] < places[i]));
    }
    thrust::device_vector<int> ones(count, 1), unique(count), sums(count);
    auto ends = thrust::reduce_by_key(keys.begin(), keys.end(), ones.begin(), unique.begin(), sums.begin());
    EXPECT(ends.first - unique.begin() == 613);
    EXPECT(thrust::reduce(sums.begin(), ends.second) == count);
    EXPECT(thrust::unique(keys.begin(), keys.end()) - keys.begin() == 613);
    EXPECT(thrust::binary_search(unique.begin(), ends.first, 612, thrust::greater<int>()));
    EXPECT(thrust::count_if(device.begin(), device.end(), [] __device__(int x) { return x % 2 == 0; })
           == std::count_if(host.begin(), host.end(), [](int x) { return x % 2 == 0; }));
}

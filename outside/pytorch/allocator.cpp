// What PyTorch's caching allocator takes for what `curium bench allocate` measures: the same ids, sizes, order of calls and
// random numbers. `run.sh` beside this file builds it against an installed PyTorch and runs it.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
using Clock = std::chrono::steady_clock;

constexpr int rounds = 101;
constexpr int pairs = 20'000;

double nanoseconds_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

std::uint64_t random_number(std::uint64_t& seed) {
    seed += 0x9e37'79b9'7f4a'7c15;
    const std::uint64_t mixed = (seed ^ (seed >> 30)) * 0xbf58'476d'1ce4'e5b9;
    return (mixed ^ (mixed >> 31)) >> 1;
}

// A size from 512 B to 128 KiB, of which each doubling is as likely.
std::size_t mixed_size(std::uint64_t& seed) {
    const std::uint64_t number = random_number(seed);
    const std::uint64_t base = std::uint64_t{512} << (number % 8);
    return base + (number >> 8) % base;
}

void print(const std::string& id, std::vector<double> samples, const std::string& note) {
    std::sort(samples.begin(), samples.end());
    const auto at = [&](double part) { return samples[static_cast<std::size_t>(part * (samples.size() - 1))]; };
    std::printf("%-24s %9.1f ns [%.1f %.1f] %s\n", id.c_str(), at(0.5), at(0.25), at(0.75), note.c_str());
    std::fflush(stdout);
}

std::string use() {
    const auto statistics = allocator::getDeviceStats(0);
    const auto mebibytes = [](const auto& of) { return std::to_string(of[0].current >> 20); };
    return mebibytes(statistics.allocated_bytes) + " of " + mebibytes(statistics.reserved_bytes) + " MiB in use";
}

double allocate_and_free(std::size_t bytes, int count) {
    const auto begin = Clock::now();
    for (int index = 0; index < count; ++index) {
        allocator::raw_delete(allocator::raw_alloc(bytes));
    }
    return nanoseconds_since(begin) / count;
}

void by_size(std::size_t bytes) {
    allocate_and_free(bytes, 10);
    std::vector<double> samples;
    for (int round = 0; round < rounds; ++round) {
        samples.push_back(allocate_and_free(bytes, pairs));
    }
    print("allocate/bytes/" + std::to_string(bytes), samples, "");
}

// Nanoseconds for a pair, of all threads together, each on a stream of its own.
void by_threads(int threads) {
    std::vector<double> samples;
    for (int round = 0; round < rounds / 3; ++round) {
        std::atomic<int> waiting{threads};
        std::vector<double> times(threads);
        std::vector<std::thread> workers;
        for (int index = 0; index < threads; ++index) {
            workers.emplace_back([&, index] {
                c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(false, 0));
                allocate_and_free(1 << 20, pairs / 20);
                --waiting;
                while (waiting > 0) {
                }
                times[index] = allocate_and_free(1 << 20, pairs);
            });
        }
        for (auto& worker : workers) {
            worker.join();
        }
        samples.push_back(*std::max_element(times.begin(), times.end()) / threads);
    }
    print("allocate/threads/" + std::to_string(threads), samples, "");
}

// Nanoseconds for a free and an allocation in the midst of `live` blocks of mixed sizes.
void by_live_blocks(std::size_t live) {
    std::uint64_t seed = 1;
    std::vector<void*> blocks;
    blocks.reserve(live);
    while (blocks.size() < live) {
        blocks.push_back(allocator::raw_alloc(mixed_size(seed)));
    }
    std::vector<double> samples;
    for (int round = 0; round < rounds; ++round) {
        const auto begin = Clock::now();
        for (int index = 0; index < pairs; ++index) {
            std::swap(blocks[random_number(seed) % live], blocks.back());
            allocator::raw_delete(blocks.back());
            blocks.back() = allocator::raw_alloc(mixed_size(seed));
        }
        samples.push_back(nanoseconds_since(begin) / pairs);
    }
    print("allocate/live/" + std::to_string(live), samples, use());
    for (void* block : blocks) {
        allocator::raw_delete(block);
    }
    allocator::emptyCache();
}

}  // namespace

int main() {
    if (cudaFree(nullptr) != cudaSuccess) {
        std::fputs("CUDA does not work here\n", stderr);
        return 1;
    }
    allocator::init(1);
    for (const std::size_t bytes : {std::size_t{1} << 10, std::size_t{1} << 20, std::size_t{64} << 20, std::size_t{4} << 30}) {
        by_size(bytes);
    }
    for (const int threads : {1, 2, 4, 8}) {
        by_threads(threads);
    }
    for (const std::size_t live : {1, 1'000, 10'000, 100'000, 1'000'000}) {
        by_live_blocks(live);
    }
}

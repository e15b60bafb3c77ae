// The kernels of src/sorting.rs, as a programmer of CUDA C++ writes them.

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

KERNEL(256) radix_count(const unsigned* __restrict__ keys, size_t count, unsigned shift, unsigned* __restrict__ counts) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  size_t start = (size_t)blockIdx.x * 4096 + threadIdx.x;
  if ((size_t)blockIdx.x * 4096 + 4096 <= count) {
    unsigned own[16];
#pragma unroll
    for (int j = 0; j < 16; j++) own[j] = keys[start + 256 * j];
#pragma unroll
    for (int j = 0; j < 16; j++) atomicAdd(&bins[own[j] >> shift & 255], 1u);
  } else {
    for (int j = 0; j < 16; j++)
      if (start + 256 * j < count) atomicAdd(&bins[keys[start + 256 * j] >> shift & 255], 1u);
  }
  __syncthreads();
  counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

__device__ __forceinline__ unsigned inclusive_scan(unsigned v, unsigned lane) {
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    unsigned other = __shfl_up_sync(~0u, v, d);
    if (lane >= d) v += other;
  }
  return v;
}

KERNEL(256) radix_scatter(const unsigned* __restrict__ keys, size_t count, unsigned shift, const unsigned* __restrict__ positions,
                          unsigned* __restrict__ sorted) {
  __shared__ unsigned counters[8][256], first_of_digit[256], part_sorted[4096], scratch[8];
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  size_t start = (size_t)blockIdx.x * 4096;
  unsigned len = count - start < 4096 ? count - start : 4096;
#pragma unroll
  for (int w = 0; w < 8; w++) counters[w][threadIdx.x] = 0;
  __syncthreads();
  unsigned own[16], ranks[16], first = 512 * warp + lane;
  if (len == 4096) {
#pragma unroll
    for (int j = 0; j < 16; j++) own[j] = keys[start + first + 32 * j];
  } else {
#pragma unroll
    for (int j = 0; j < 16; j++) own[j] = first + 32 * j < len ? keys[start + first + 32 * j] : ~0u;
  }
#pragma unroll
  for (int j = 0; j < 16; j++) {
    unsigned digit = own[j] >> shift & 255, equal = ~0u, before = 0;
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
      bool is_set = digit >> bit & 1;
      unsigned lanes = __ballot_sync(~0u, is_set);
      equal &= is_set ? lanes : ~lanes;
    }
    unsigned leader = __ffs(equal) - 1;
    if (leader == lane) before = atomicAdd(&counters[warp][digit], __popc(equal));
    ranks[j] = __shfl_sync(~0u, before, leader) + __popc(equal & ((1u << lane) - 1));
  }
  __syncthreads();
  unsigned c[8], total = 0;
#pragma unroll
  for (int w = 0; w < 8; w++) {
    c[w] = total;
    total += counters[w][threadIdx.x];
  }
  unsigned inclusive = inclusive_scan(total, lane);
  if (lane == 31) scratch[warp] = inclusive;
  __syncthreads();
  unsigned before = inclusive - total;
#pragma unroll
  for (int w = 0; w < 8; w++) before += w < warp ? scratch[w] : 0;
#pragma unroll
  for (int w = 0; w < 8; w++) counters[w][threadIdx.x] = c[w] + before;
  first_of_digit[threadIdx.x] = positions[threadIdx.x * gridDim.x + blockIdx.x] - before;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 16; j++) part_sorted[counters[warp][own[j] >> shift & 255] + ranks[j]] = own[j];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 16; j++) {
    unsigned i = 256 * j + threadIdx.x;
    if (i < len) {
      unsigned key = part_sorted[i];
      sorted[first_of_digit[key >> shift & 255] + i] = key;
    }
  }
}

typedef unsigned long long u64;

__device__ __forceinline__ u64 entry(float value, unsigned column) {
  unsigned bits = __float_as_uint(value), ordered = bits >> 31 ? ~bits : bits | 1u << 31;
  return (u64)ordered << 32 | (unsigned)~column;
}

__device__ __forceinline__ u64 exchange(u64 own, int stride, bool is_descending, unsigned lane) {
  u64 other = __shfl_xor_sync(~0u, own, stride);
  bool is_lower = !(lane & stride);
  return is_lower == is_descending ? max(own, other) : min(own, other);
}

__device__ __forceinline__ u64 merge(u64 sorted, u64 batch, unsigned lane) {
#pragma unroll
  for (int size = 2; size <= 32; size *= 2)
#pragma unroll
    for (int stride = size / 2; stride; stride /= 2) batch = exchange(batch, stride, lane & size, lane);
  u64 result = max(sorted, batch);
#pragma unroll
  for (int stride = 16; stride; stride /= 2) result = exchange(result, stride, true, lane);
  return result;
}

KERNEL(256) top_k(const float* __restrict__ x, unsigned rows, unsigned columns, float* __restrict__ values, unsigned* __restrict__ indices) {
  __shared__ u64 all_waiting[8][64];
  unsigned lane = threadIdx.x % 32, row = blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  u64* waiting = all_waiting[threadIdx.x / 32];
  x += (size_t)row * columns;
  const u64 nothing = (u64)0x007fffffu << 32;
  u64 selected = nothing, least = nothing;
  unsigned count = 0;
  for (unsigned first = 0; first < columns; first += 128) {
    const float minus_infinity = __uint_as_float(0xff800000u);
    float v[4];
    if (first + 128 <= columns) {
#pragma unroll
      for (int j = 0; j < 4; j++) v[j] = x[first + 32 * j + lane];
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++) v[j] = first + 32 * j + lane < columns ? x[first + 32 * j + lane] : minus_infinity;
    }
    unsigned bits = (unsigned)(least >> 32);
    float bound = __uint_as_float(bits >> 31 ? bits & 0x7fffffff : ~bits);
    if (!__any_sync(~0u, !(v[0] < bound && v[1] < bound && v[2] < bound && v[3] < bound))) continue;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned column = first + 32 * j + lane;
      u64 candidate = column < columns ? entry(v[j], column) : nothing;
      unsigned larger = __ballot_sync(~0u, candidate > least);
      if (candidate > least) waiting[count + __popc(larger & ((1u << lane) - 1))] = candidate;
      count += __popc(larger);
      if (count >= 32) {
        __syncwarp();
        count -= 32;
        selected = merge(selected, waiting[count + lane], lane);
        least = __shfl_sync(~0u, selected, 31);
        __syncwarp();
      }
    }
  }
  __syncwarp();
  selected = merge(selected, lane < count ? waiting[lane] : nothing, lane);
  unsigned ordered = (unsigned)(selected >> 32);
  values[(size_t)row * 32 + lane] = __uint_as_float(ordered >> 31 ? ordered & 0x7fffffff : ~ordered);
  indices[(size_t)row * 32 + lane] = ~(unsigned)selected;
}

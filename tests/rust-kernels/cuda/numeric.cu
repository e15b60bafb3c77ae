// The kernels of src/numeric.rs, as a programmer of CUDA C++ writes them.

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

template <class T> __device__ __forceinline__ T block_sum(T v, T* scratch) {
#pragma unroll
  for (int m = 16; m; m /= 2) v += __shfl_xor_sync(~0u, v, m);
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) scratch[warp] = v;
  __syncthreads();
  v = scratch[lane % 8];
#pragma unroll
  for (int m = 4; m; m /= 2) v += __shfl_xor_sync(~0u, v, m);
  __syncthreads();
  return v;
}

KERNEL(256) sum_f64(const double2* __restrict__ pairs, size_t count, const double* __restrict__ rest, size_t rest_count, double* sums,
                    unsigned* finished, double* total) {
  __shared__ double scratch[8];
  double2 s[4] = {};
  size_t parts = count / 1024;
  for (size_t part = blockIdx.x; part < parts; part += gridDim.x) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      double2 v = pairs[part * 1024 + threadIdx.x + 256 * j];
      s[j].x += v.x;
      s[j].y += v.y;
    }
  }
  size_t thread = blockIdx.x * 256 + threadIdx.x, threads = gridDim.x * 256;
  for (size_t i = parts * 1024 + thread; i < count; i += threads) {
    s[0].x += pairs[i].x;
    s[0].y += pairs[i].y;
  }
  for (size_t i = thread; i < rest_count; i += threads) s[0].x += rest[i];
  double own = ((s[0].x + s[1].x) + (s[2].x + s[3].x)) + ((s[0].y + s[1].y) + (s[2].y + s[3].y));
  own = block_sum(own, scratch);
  bool is_last = false;
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = own;
    __threadfence();
    is_last = atomicAdd(finished, 1u) == gridDim.x - 1;
    __threadfence();
  }
  if (!__syncthreads_or(is_last)) return;
  double v = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += 256) v += __ldcg(&sums[i]);
  v = block_sum(v, scratch);
  if (threadIdx.x == 0) {
    *total = v;
    *finished = 0;
  }
}

__device__ __forceinline__ unsigned inclusive_scan(unsigned v, unsigned lane) {
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    unsigned other = __shfl_up_sync(~0u, v, d);
    if (lane >= d) v += other;
  }
  return v;
}

typedef unsigned long long u64;

__device__ __forceinline__ u64 load_state(const u64* p) {
  u64 v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}

__device__ __forceinline__ void store_state(u64* p, u64 v) { asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }

KERNEL(256) prefix_sum(const uint4* __restrict__ x, size_t count, u64* states, uint4* __restrict__ y) {
  __shared__ unsigned sums[33];
  const u64 SUM = 1ull << 32, PREFIX = 2ull << 32;
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = blockIdx.x;
  size_t start = (size_t)part * 1024 + threadIdx.x;
  uint4 v[4];
  if ((size_t)part * 1024 + 1024 <= count) {
#pragma unroll
    for (int r = 0; r < 4; r++) v[r] = x[start + 256 * r];
  } else {
#pragma unroll
    for (int r = 0; r < 4; r++) v[r] = start + 256 * r < count ? x[start + 256 * r] : make_uint4(0, 0, 0, 0);
  }
  unsigned before[4];
#pragma unroll
  for (int r = 0; r < 4; r++) {
    unsigned own = v[r].x + v[r].y + (v[r].z + v[r].w), inclusive = inclusive_scan(own, lane);
    if (lane == 31) sums[8 * r + warp] = inclusive;
    before[r] = inclusive - own;
  }
  __syncthreads();
  unsigned of_warp = sums[lane], inclusive = inclusive_scan(of_warp, lane), exclusive = inclusive - of_warp;
  if (warp == 0) {
    unsigned sum = __shfl_sync(~0u, inclusive, 31), prefix = 0;
    if (part == 0) {
      if (lane == 0) store_state(&states[0], PREFIX | sum);
    } else {
      if (lane == 0) store_state(&states[part], SUM | sum);
      for (int end = part;; end -= 32) {
        int i = end - 1 - (int)lane;
        u64 state = PREFIX;
        if (i >= 0)
          do state = load_state(&states[i]);
          while (state < SUM);
        unsigned prefixes = __ballot_sync(~0u, state >= PREFIX);
        unsigned nearest = prefixes ? __ffs(prefixes) - 1 : 32;
        prefix += __reduce_add_sync(~0u, lane <= nearest ? (unsigned)state : 0);
        if (prefixes) break;
      }
      if (lane == 0) store_state(&states[part], PREFIX | (prefix + sum));
    }
    if (lane == 0) sums[32] = prefix;
  }
#pragma unroll
  for (int r = 0; r < 4; r++) before[r] += __shfl_sync(~0u, exclusive, 8 * r + warp);
  __syncthreads();
  unsigned prefix = sums[32];
#pragma unroll
  for (int r = 0; r < 4; r++) {
    uint4 s;
    s.x = prefix + before[r];
    s.y = s.x + v[r].x;
    s.z = s.y + v[r].y;
    s.w = s.z + v[r].z;
    if (start + 256 * r < count) y[start + 256 * r] = s;
  }
}

__device__ __forceinline__ uint4 philox(u64 seed, u64 index) {
  uint4 n = make_uint4((unsigned)index, (unsigned)(index >> 32), 0, 0);
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    u64 first = (u64)0xd2511f53u * n.x, second = (u64)0xcd9e8d57u * n.z;
    n = make_uint4((unsigned)(second >> 32) ^ n.y ^ k0, (unsigned)second, (unsigned)(first >> 32) ^ n.w ^ k1, (unsigned)first);
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return n;
}

KERNEL(256) random_uniform(u64 seed, float4* __restrict__ y, size_t count) {
  size_t threads = (size_t)gridDim.x * 256;
  for (size_t i = (size_t)blockIdx.x * 256 + threadIdx.x; i < count; i += threads) {
    uint4 n = philox(seed, i);
    const float scale = 1.0f / 16777216.0f;
    y[i] = make_float4((n.x >> 8) * scale, (n.y >> 8) * scale, (n.z >> 8) * scale, (n.w >> 8) * scale);
  }
}

__device__ __forceinline__ float2 box_muller(unsigned a, unsigned b) {
  float u = ((a >> 8) + 1) * (1.0f / 16777216.0f), angle = (b >> 8) * (6.283185307f / 16777216.0f);
  float radius = sqrtf(-2.0f * __logf(u));
  return make_float2(radius * __cosf(angle), radius * __sinf(angle));
}

KERNEL(256) random_normal(u64 seed, float4* __restrict__ y, size_t count) {
  size_t threads = (size_t)gridDim.x * 256;
  for (size_t i = (size_t)blockIdx.x * 256 + threadIdx.x; i < count; i += threads) {
    uint4 n = philox(seed, i);
    float2 first = box_muller(n.x, n.y), second = box_muller(n.z, n.w);
    y[i] = make_float4(first.x, first.y, second.x, second.y);
  }
}

__device__ __forceinline__ void add_product(float a, float4 b, float4& sum) {
  sum.x = fmaf(a, b.x, sum.x);
  sum.y = fmaf(a, b.y, sum.y);
  sum.z = fmaf(a, b.z, sum.z);
  sum.w = fmaf(a, b.w, sum.w);
}

KERNEL(256) small_matmul(const float4* __restrict__ a, size_t count, const float4* __restrict__ b, float4* __restrict__ c) {
  __shared__ float4 a_tile[512], b_tile[512];
  size_t first = (size_t)blockIdx.x * 512;
#pragma unroll
  for (int j = 0; j < 2; j++) {
    size_t i = first + threadIdx.x + 256 * j;
    a_tile[threadIdx.x + 256 * j] = i < count ? a[i] : make_float4(0, 0, 0, 0);
    b_tile[threadIdx.x + 256 * j] = i < count ? b[i] : make_float4(0, 0, 0, 0);
  }
  __syncthreads();
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, column = lane % 4;
  const float4 *am = &a_tile[64 * warp], *bm = &b_tile[64 * warp];
  float4 sums[2] = {};
#pragma unroll
  for (int k = 0; k < 4; k++) {
    float4 bv[4];
#pragma unroll
    for (int i = 0; i < 4; i++) bv[i] = bm[4 * (4 * k + i) + column];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float4 av = am[4 * (row + 8 * half) + k];
      add_product(av.x, bv[0], sums[half]);
      add_product(av.y, bv[1], sums[half]);
      add_product(av.z, bv[2], sums[half]);
      add_product(av.w, bv[3], sums[half]);
    }
  }
  size_t out = first + 64 * warp + lane;
#pragma unroll
  for (int half = 0; half < 2; half++)
    if (out + 32 * half < count) c[out + 32 * half] = sums[half];
}

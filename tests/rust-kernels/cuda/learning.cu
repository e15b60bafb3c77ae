// The kernels of src/learning.rs, as a programmer of CUDA C++ writes them.

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

__device__ __forceinline__ float warp_sum(float v, int lanes) {
#pragma unroll
  for (int m = lanes / 2; m; m /= 2) v += __shfl_xor_sync(~0u, v, m);
  return v;
}

__device__ __forceinline__ float block_sum(float v, float* scratch) {
  v = warp_sum(v, 32);
  unsigned lane = threadIdx.x % 32;
  if (lane == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  v = warp_sum(scratch[lane % 8], 8);
  __syncthreads();
  return v;
}

__device__ __forceinline__ float block_max(float v, float* scratch) {
#pragma unroll
  for (int m = 16; m; m /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, m));
  unsigned lane = threadIdx.x % 32;
  if (lane == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  v = scratch[lane % 8];
#pragma unroll
  for (int m = 4; m; m /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, m));
  __syncthreads();
  return v;
}

// `columns` counts vectors of four.
KERNEL(256) cross_entropy(const float4* __restrict__ x, unsigned columns, const unsigned* __restrict__ labels, float* __restrict__ loss,
                          float4* __restrict__ gradient) {
  __shared__ float scratch[8];
  x += (size_t)blockIdx.x * columns;
  gradient += (size_t)blockIdx.x * columns;
  unsigned label = labels[blockIdx.x];
  float own_max = -3.402823466e38f, own_sum = 0;
  for (unsigned i = threadIdx.x; i < columns; i += 256) {
    float4 v = x[i];
    float new_max = fmaxf(own_max, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    float e = (__expf(v.x - new_max) + __expf(v.y - new_max)) + (__expf(v.z - new_max) + __expf(v.w - new_max));
    own_sum = fmaf(own_sum, __expf(own_max - new_max), e);
    own_max = new_max;
  }
  float max = block_max(own_max, scratch);
  float sum = block_sum(own_sum * __expf(own_max - max), scratch);
  if (label / 4 >= columns) {
    if (threadIdx.x == 0) loss[blockIdx.x] = 0;
    for (unsigned i = threadIdx.x; i < columns; i += 256) gradient[i] = make_float4(0, 0, 0, 0);
    return;
  }
  if (threadIdx.x == 0) loss[blockIdx.x] = __logf(sum) + max - ((const float*)x)[label];
  float scale = 1.0f / sum;
  for (unsigned i = threadIdx.x; i < columns; i += 256) {
    float4 v = x[i];
    v.x = __expf(v.x - max) * scale;
    v.y = __expf(v.y - max) * scale;
    v.z = __expf(v.z - max) * scale;
    v.w = __expf(v.w - max) * scale;
    if (i == label / 4) {
      v.x -= label % 4 == 0;
      v.y -= label % 4 == 1;
      v.z -= label % 4 == 2;
      v.w -= label % 4 == 3;
    }
    gradient[i] = v;
  }
}

__device__ __forceinline__ float4 operator*(float4 a, float4 b) { return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }

__device__ __forceinline__ void operator+=(float4& a, float4 b) {
  a.x += b.x;
  a.y += b.y;
  a.z += b.z;
  a.w += b.w;
}

__device__ __forceinline__ float sum(float4 a) { return (a.x + a.y) + (a.z + a.w); }

// `columns` counts vectors of four, at most 1024.
KERNEL(256) layer_norm_backward(const float4* __restrict__ x, unsigned rows, unsigned columns, const float4* __restrict__ gain,
                                const float2* __restrict__ statistics, const float4* __restrict__ gradient, float4* __restrict__ dx,
                                float4* __restrict__ gain_gradients, float4* __restrict__ bias_gradients) {
  __shared__ float2 scratch[8];
  const float4 zero = make_float4(0, 0, 0, 0);
  const float scale = 1.0f / (4 * columns);
  unsigned lane = threadIdx.x % 32;
  float4 gains[4], gain_sums[4] = {}, bias_sums[4] = {};
#pragma unroll
  for (int j = 0; j < 4; j++) gains[j] = threadIdx.x + 256 * j < columns ? gain[threadIdx.x + 256 * j] : zero;
  for (unsigned row = blockIdx.x; row < rows; row += gridDim.x) {
    size_t start = (size_t)row * columns + threadIdx.x;
    float2 s = statistics[row];
    float4 n[4], g[4];
    float2 own = make_float2(0, 0);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      bool is_inside = threadIdx.x + 256 * j < columns;
      n[j] = is_inside ? x[start + 256 * j] : zero;
      g[j] = is_inside ? gradient[start + 256 * j] : zero;
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      n[j] = make_float4((n[j].x - s.x) * s.y, (n[j].y - s.x) * s.y, (n[j].z - s.x) * s.y, (n[j].w - s.x) * s.y);
      float4 h = g[j] * gains[j];
      own.x += sum(h);
      own.y = fmaf(h.x, n[j].x, fmaf(h.y, n[j].y, fmaf(h.z, n[j].z, fmaf(h.w, n[j].w, own.y))));
    }
    own.x = warp_sum(own.x, 32);
    own.y = warp_sum(own.y, 32);
    if (lane == 0) scratch[threadIdx.x / 32] = own;
    __syncthreads();
    own = scratch[lane % 8];
    own.x = warp_sum(own.x, 8) * scale;
    own.y = warp_sum(own.y, 8) * scale;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (threadIdx.x + 256 * j < columns) {
        float4 h = g[j] * gains[j];
        dx[start + 256 * j] = make_float4(fmaf(own.y, -n[j].x, h.x - own.x) * s.y, fmaf(own.y, -n[j].y, h.y - own.x) * s.y,
                                          fmaf(own.y, -n[j].z, h.z - own.x) * s.y, fmaf(own.y, -n[j].w, h.w - own.x) * s.y);
      }
      gain_sums[j] += g[j] * n[j];
      bias_sums[j] += g[j];
    }
  }
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if (threadIdx.x + 256 * j < columns) {
      gain_gradients[(size_t)blockIdx.x * columns + threadIdx.x + 256 * j] = gain_sums[j];
      bias_gradients[(size_t)blockIdx.x * columns + threadIdx.x + 256 * j] = bias_sums[j];
    }
  }
}

KERNEL(256) column_sums(const float4* __restrict__ x, unsigned rows, unsigned columns, float4* __restrict__ y) {
  __shared__ float4 tile[8][32];
  unsigned column = blockIdx.x * 32 + threadIdx.x;
  float4 sum = make_float4(0, 0, 0, 0);
  if (column < columns)
    for (unsigned row = threadIdx.y; row < rows; row += 8) sum += x[(size_t)row * columns + column];
  tile[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < columns) {
    sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int row = 0; row < 8; row++) sum += tile[row][threadIdx.x];
    y[column] = sum;
  }
}

KERNEL(256) embedding(const float4* __restrict__ table, unsigned rows, unsigned columns, const unsigned* __restrict__ ids, float4* __restrict__ out) {
  unsigned id = ids[blockIdx.x];
  out += (size_t)blockIdx.x * columns;
  const float4* row = table + (size_t)id * columns;
  for (unsigned i = threadIdx.x; i < columns; i += 256) out[i] = id < rows ? row[i] : make_float4(0, 0, 0, 0);
}

KERNEL(256) embedding_backward(const float* __restrict__ gradient, unsigned columns, const unsigned* __restrict__ ids, float* table_gradient,
                               unsigned rows) {
  unsigned id = ids[blockIdx.x];
  if (id >= rows) return;
  gradient += (size_t)blockIdx.x * columns;
  float* row = table_gradient + (size_t)id * columns;
  for (unsigned i = threadIdx.x; i < columns; i += 256) atomicAdd(&row[i], gradient[i]);
}

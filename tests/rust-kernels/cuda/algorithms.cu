// The kernels of src/algorithms.rs in CUDA C++, for nvcc and NVRTC: the same algorithms, with the pragmas that make them fastest.
#define EXTERN extern "C" __global__ void
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

EXTERN saxpy(float a, const float* __restrict__ x, float* __restrict__ y, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

template <class Op> __device__ float block_reduce(float v, float* scratch, Op op) {
#pragma unroll
  for (int m = 16; m; m /= 2) v = op(v, __shfl_xor_sync(~0u, v, m));
  unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) scratch[warp] = v;
  __syncthreads();
  v = scratch[lane % 8];
#pragma unroll
  for (int m = 4; m; m /= 2) v = op(v, __shfl_xor_sync(~0u, v, m));
  __syncthreads();
  return v;
}
struct Add { __device__ float operator()(float a, float b) const { return a + b; } };
struct Max { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };

EXTERN __launch_bounds__(256) block_sum(const float* __restrict__ x, unsigned n, float* total) {
  __shared__ float scratch[32];
  float sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  sum = block_reduce(sum, scratch, Add());
  if (threadIdx.x == 0) atomicAdd(total, sum);
}

EXTERN __launch_bounds__(256) matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, unsigned rows, unsigned columns, unsigned k) {
  __shared__ float a_tile[64][17];
  __shared__ float b_tile[16][64];
  unsigned row0 = blockIdx.y * 64, column0 = blockIdx.x * 64, tid = threadIdx.y * 16 + threadIdx.x;
  float sums[4][4] = {};
  for (unsigned k0 = 0; k0 < k; k0 += 16) {
#pragma unroll
    for (unsigned round = 0; round < 4; round++) {
      unsigned i = tid + 256 * round, r = i / 16, cc = i % 16;
      a_tile[r][cc] = row0 + r < rows && k0 + cc < k ? a[(row0 + r) * k + k0 + cc] : 0.0f;
    }
#pragma unroll
    for (unsigned round = 0; round < 4; round++) {
      unsigned i = tid + 256 * round, r = i / 64, cc = i % 64;
      b_tile[r][cc] = k0 + r < k && column0 + cc < columns ? b[(k0 + r) * columns + column0 + cc] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 16; kk++) {
      float av[4], bv[4];
#pragma unroll
      for (int i = 0; i < 4; i++) av[i] = a_tile[threadIdx.y + 16 * i][kk];
#pragma unroll
      for (int j = 0; j < 4; j++) bv[j] = b_tile[kk][threadIdx.x + 16 * j];
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i][j] += av[i] * bv[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned row = row0 + threadIdx.y + 16 * i, column = column0 + threadIdx.x + 16 * j;
      if (row < rows && column < columns) c[(size_t)row * columns + column] = sums[i][j];
    }
}

// Copies 4 bytes, or sets them to zero.
__device__ inline void copy_async(float* target, const float* source, bool is_inside) {
  asm volatile("{ .reg .u64 to, from; cvta.to.shared.u64 to, %0; cvta.to.global.u64 from, %1; cp.async.ca.shared.global [to], [from], 4, %2; }"
      :: "l"(target), "l"(source), "r"(is_inside ? 4 : 0) : "memory");
}

EXTERN __launch_bounds__(256) matmul_async(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, unsigned rows, unsigned columns, unsigned k) {
  __shared__ float a_tile[2][64][17];
  __shared__ float b_tile[2][16][64];
  unsigned row0 = blockIdx.y * 64, column0 = blockIdx.x * 64, tid = threadIdx.y * 16 + threadIdx.x;
  float sums[4][4] = {};
  auto copy = [&](unsigned stage, unsigned k0) {
#pragma unroll
    for (unsigned round = 0; round < 4; round++) {
      unsigned i = tid + 256 * round, r = i / 16, cc = i % 16;
      bool is_inside = row0 + r < rows && k0 + cc < k;
      copy_async(&a_tile[stage][r][cc], is_inside ? &a[(row0 + r) * k + k0 + cc] : a, is_inside);
    }
#pragma unroll
    for (unsigned round = 0; round < 4; round++) {
      unsigned i = tid + 256 * round, r = i / 64, cc = i % 64;
      bool is_inside = k0 + r < k && column0 + cc < columns;
      copy_async(&b_tile[stage][r][cc], is_inside ? &b[(k0 + r) * columns + column0 + cc] : b, is_inside);
    }
  };
  copy(0, 0);
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (unsigned k0 = 0, stage = 0; k0 < k; k0 += 16, stage ^= 1) {
    copy(stage ^ 1, k0 + 16);
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 16; kk++) {
      float av[4], bv[4];
#pragma unroll
      for (int i = 0; i < 4; i++) av[i] = a_tile[stage][threadIdx.y + 16 * i][kk];
#pragma unroll
      for (int j = 0; j < 4; j++) bv[j] = b_tile[stage][kk][threadIdx.x + 16 * j];
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i][j] += av[i] * bv[j];
    }
    __syncthreads();
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned row = row0 + threadIdx.y + 16 * i, column = column0 + threadIdx.x + 16 * j;
      if (row < rows && column < columns) c[(size_t)row * columns + column] = sums[i][j];
    }
}

EXTERN __launch_bounds__(256) histogram(const unsigned char* __restrict__ data, unsigned n, unsigned* total) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[data[i]], 1u);
  __syncthreads();
  atomicAdd(&total[threadIdx.x], bins[threadIdx.x]);
}

EXTERN __launch_bounds__(256) softmax(const float* __restrict__ x, float* __restrict__ y, unsigned rows, unsigned columns) {
  __shared__ float scratch[32];
  if (blockIdx.x >= rows) return;
  x += (size_t)blockIdx.x * columns;
  y += (size_t)blockIdx.x * columns;
  float max = -INFINITY, sum = 0;
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < columns; i += 256) max = fmaxf(max, x[i]);
  max = block_reduce(max, scratch, Max());
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < columns; i += 256) {
    float e = expf(x[i] - max);
    y[i] = e;
    sum += e;
  }
  float scale = 1.0f / block_reduce(sum, scratch, Add());
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < columns; i += 256) y[i] *= scale;
}

EXTERN __launch_bounds__(256) layer_norm(const float* __restrict__ x, const float* __restrict__ gain, const float* __restrict__ bias, float epsilon,
                                        float* __restrict__ y, unsigned rows, unsigned columns) {
  __shared__ float scratch[32];
  if (blockIdx.x >= rows) return;
  x += (size_t)blockIdx.x * columns;
  y += (size_t)blockIdx.x * columns;
  float sum = 0, squares = 0;
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < columns; i += 256) sum += x[i];
  float mean = block_reduce(sum, scratch, Add()) / columns;
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < columns; i += 256) squares += (x[i] - mean) * (x[i] - mean);
  float scale = rsqrtf(block_reduce(squares, scratch, Add()) / columns + epsilon);
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < columns; i += 256) y[i] = (x[i] - mean) * scale * gain[i] + bias[i];
}

EXTERN __launch_bounds__(256) scan(const unsigned* __restrict__ x, unsigned n, unsigned* __restrict__ sums, unsigned* __restrict__ totals) {
  __shared__ unsigned scratch[32];
  unsigned start = blockIdx.x * 1024 + threadIdx.x * 4, own[4], sum = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) { own[i] = start + i < n ? x[start + i] : 0; sum += own[i]; }
  unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, inclusive = sum;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    unsigned other = __shfl_up_sync(~0u, inclusive, d);
    if (lane >= d) inclusive += other;
  }
  if (lane == 31) scratch[warp] = inclusive;
  __syncthreads();
  unsigned before = 0, total = 0;
#pragma unroll
  for (unsigned w = 0; w < 8; w++) { if (w == warp) before = total; total += scratch[w]; }
  unsigned previous = __shfl_up_sync(~0u, inclusive, 1);
  before += lane == 0 ? 0 : previous;
#pragma unroll
  for (int i = 0; i < 4; i++) { if (start + i < n) sums[start + i] = before; before += own[i]; }
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

EXTERN __launch_bounds__(512) sort(const unsigned* __restrict__ x, unsigned n, unsigned* __restrict__ y) {
  __shared__ unsigned tile[1024];
  unsigned start = blockIdx.x * 1024;
#pragma unroll
  for (unsigned round = 0; round < 2; round++) {
    unsigned i = threadIdx.x + 512 * round;
    tile[i] = start + i < n ? x[start + i] : ~0u;
  }
  __syncthreads();
#pragma unroll
  for (unsigned size = 2; size <= 1024; size *= 2)
#pragma unroll
    for (unsigned stride = size / 2; stride; stride /= 2) {
      unsigned low = 2 * threadIdx.x - (threadIdx.x & (stride - 1)), high = low + stride;
      unsigned a = tile[low], b = tile[high];
      if ((a > b) == ((low & size) == 0)) { tile[low] = b; tile[high] = a; }
      __syncthreads();
    }
#pragma unroll
  for (unsigned round = 0; round < 2; round++) y[start + threadIdx.x + 512 * round] = tile[threadIdx.x + 512 * round];
}

EXTERN __launch_bounds__(256) n_body(const float4* __restrict__ bodies, unsigned n, float softening, float4* __restrict__ accelerations) {
  __shared__ float4 tile[256];
  unsigned index = blockIdx.x * 256 + threadIdx.x;
  float4 own = index < n ? bodies[index] : make_float4(0, 0, 0, 0), sum = make_float4(0, 0, 0, 0);
  for (unsigned start = 0; start < n; start += 256) {
    tile[threadIdx.x] = start + threadIdx.x < n ? bodies[start + threadIdx.x] : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < 256; j++) {
      float4 o = tile[j];
      float dx = o.x - own.x, dy = o.y - own.y, dz = o.z - own.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      float f = o.w * inverse * inverse * inverse;
      sum.x += dx * f; sum.y += dy * f; sum.z += dz * f;
    }
    __syncthreads();
  }
  if (index < n) accelerations[index] = sum;
}

EXTERN __launch_bounds__(256) mandelbrot(float left, float top, float step, unsigned limit, unsigned* __restrict__ image, unsigned rows, unsigned columns) {
  unsigned row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  if (row >= rows || column >= columns) return;
  float cx = left + column * step, cy = top + row * step, x = 0, y = 0;
  unsigned count = 0;
  while (count < limit && x * x + y * y <= 4.0f) {
    float t = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = t;
    count++;
  }
  image[(size_t)row * columns + column] = count;
}

EXTERN __launch_bounds__(256) stencil(const float* __restrict__ x, float rate, float* __restrict__ y, unsigned rows, unsigned columns) {
  unsigned row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  if (row >= rows || column >= columns) return;
  size_t i = (size_t)row * columns + column;
  bool inside = row > 0 && row + 1 < rows && column > 0 && column + 1 < columns;
  y[i] = inside ? x[i] + rate * (x[i - columns] + x[i + columns] + x[i - 1] + x[i + 1] - 4.0f * x[i]) : x[i];
}

EXTERN __launch_bounds__(256) transpose(const float* __restrict__ x, float* __restrict__ y, unsigned rows, unsigned columns) {
  __shared__ float tile[32][33];
  // y has `rows` rows; x has `columns` rows and `rows` columns
  unsigned row0 = blockIdx.x * 32, column0 = blockIdx.y * 32;
#pragma unroll
  for (unsigned round = 0; round < 4; round++) {
    unsigned r = threadIdx.y + 8 * round;
    unsigned row = row0 + r, column = column0 + threadIdx.x;
    if (row < columns && column < rows) tile[r][threadIdx.x] = x[(size_t)row * rows + column];
  }
  __syncthreads();
#pragma unroll
  for (unsigned round = 0; round < 4; round++) {
    unsigned r = threadIdx.y + 8 * round;
    unsigned row = column0 + r, column = row0 + threadIdx.x;
    if (row < rows && column < columns) y[(size_t)row * columns + column] = tile[threadIdx.x][r];
  }
}

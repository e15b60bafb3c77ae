// Kernels of src/features.rs in CUDA C++, for nvcc and NVRTC: the same algorithms, with the pragmas that make them fastest.
#define EXTERN extern "C" __global__ void

__device__ __forceinline__ void copy_async_16(float* target, const float* source, bool is_inside) {
  unsigned address = (unsigned)__cvta_generic_to_shared(target);
  int bytes = is_inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(source), "r"(bytes) : "memory");
}

// The sizes are multiples of 4.
EXTERN __launch_bounds__(256) matmul_stages(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, unsigned rows, unsigned columns, unsigned k) {
  __shared__ __align__(16) float a_tile[3][64][20];
  __shared__ __align__(16) float b_tile[3][16][64];
  unsigned row0 = blockIdx.y * 64, column0 = blockIdx.x * 64, tid = threadIdx.y * 16 + threadIdx.x;
  float sums[4][4] = {};
  auto copy = [&](unsigned stage, unsigned k0) {
    unsigned ar = tid / 4, ac = tid % 4 * 4;
    bool is_inside = row0 + ar < rows && k0 + ac < k;
    copy_async_16(&a_tile[stage][ar][ac], is_inside ? &a[(size_t)(row0 + ar) * k + k0 + ac] : a, is_inside);
    unsigned br = tid / 16, bc = tid % 16 * 4;
    is_inside = k0 + br < k && column0 + bc < columns;
    copy_async_16(&b_tile[stage][br][bc], is_inside ? &b[(size_t)(k0 + br) * columns + column0 + bc] : b, is_inside);
  };
  unsigned steps = (k + 15) / 16;
  for (unsigned step = 0; step < 2; step++) {
    if (step < steps) copy(step, step * 16);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  unsigned stage = 0, next = 2;
  for (unsigned step = 0; step < steps; step++) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    if (step + 2 < steps) copy(next, (step + 2) * 16);
    asm volatile("cp.async.commit_group;" ::: "memory");
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
    stage = stage == 2 ? 0 : stage + 1;
    next = next == 2 ? 0 : next + 1;
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned row = row0 + threadIdx.y + 16 * i, column = column0 + threadIdx.x + 16 * j;
      if (row < rows && column < columns) c[(size_t)row * columns + column] = sums[i][j];
    }
}

struct Weights { float w[25]; };

EXTERN __launch_bounds__(256) filter_5x5(const float* __restrict__ x, Weights weights, float* __restrict__ y, unsigned rows, unsigned columns) {
  __shared__ float tile[36][36];
  int row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
  unsigned tid = threadIdx.y * 32 + threadIdx.x;
#pragma unroll
  for (unsigned i = tid; i < 36 * 36; i += 256) {
    int row = row0 + (int)(i / 36) - 2, column = column0 + (int)(i % 36) - 2;
    row = min(max(row, 0), (int)rows - 1);
    column = min(max(column, 0), (int)columns - 1);
    tile[i / 36][i % 36] = x[(size_t)row * columns + column];
  }
  __syncthreads();
#pragma unroll
  for (unsigned r = 0; r < 32; r += 8) {
    unsigned row = row0 + r + threadIdx.y, column = column0 + threadIdx.x;
    if (row >= rows || column >= columns) continue;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 5; i++)
#pragma unroll
      for (int j = 0; j < 5; j++) sum += tile[r + threadIdx.y + i][threadIdx.x + j] * weights.w[5 * i + j];
    y[(size_t)row * columns + column] = sum;
  }
}

EXTERN __launch_bounds__(256) special_functions(const float* __restrict__ x, float* __restrict__ y, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i], square = v * v;
  y[i] = sinf(v) * expf(v) + logf(square + 1.0f) + erff(v) + tanhf(v) + powf(square, 1.3f) + atanf(v);
}

EXTERN __launch_bounds__(256) streaming(const float4* __restrict__ x, float4* __restrict__ y, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = __ldcs(x + i);
  __stcs(y + i, make_float4(2 * v.x + 1, 2 * v.y + 1, 2 * v.z + 1, 2 * v.w + 1));
}

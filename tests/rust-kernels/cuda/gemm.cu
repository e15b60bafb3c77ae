// The kernel of src/gemm.rs, as a programmer of CUDA C++ writes it.

__device__ __forceinline__ void copy_async(unsigned to, const uint4* from, bool is_inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_inside ? 16 : 0) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void load_transposed(unsigned (&m)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Groups of eight columns in a and b; pairs of columns in c.
extern "C" __global__ void __launch_bounds__(256) gemm_bf16(const uint4* __restrict__ a, unsigned rows, unsigned a_columns, const uint4* __restrict__ b,
                                                            unsigned b_columns, float2* __restrict__ c, unsigned c_columns) {
  __shared__ uint4 a_tile[2][128][5], b_tile[2][32][17];
  unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  unsigned first_row = blockIdx.y * 128, first_column = blockIdx.x * 16, inner = 8 * a_columns;
  unsigned a_shared = (unsigned)__cvta_generic_to_shared(a_tile), b_shared = (unsigned)__cvta_generic_to_shared(b_tile);
  const unsigned A = 128 * 5 * 16, B = 32 * 17 * 16;
  auto copy = [&](unsigned stage, unsigned k) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      unsigned row = thread / 4 + 64 * i, column = thread % 4;
      bool is_inside = first_row + row < rows && k + column < a_columns;
      copy_async(a_shared + stage * A + (row * 5 + column) * 16, is_inside ? a + (size_t)(first_row + row) * a_columns + k + column : a, is_inside);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      unsigned row = thread / 16 + 16 * i, column = thread % 16;
      bool is_inside = 8 * k + row < inner && first_column + column < b_columns;
      copy_async(b_shared + stage * B + (row * 17 + column) * 16, is_inside ? b + (size_t)(8 * k + row) * b_columns + first_column + column : b, is_inside);
    }
  };
  float sums[4][4][4] = {};
  unsigned a_lane = a_shared + ((warp / 4 * 64 + lane % 16) * 5 + lane / 16) * 16;
  unsigned b_lane = b_shared + (lane % 16 * 17 + warp % 4 * 4 + lane / 16) * 16;
  copy(0, 0);
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  for (unsigned k = 0, stage = 0; k < a_columns; k += 4, stage ^= 1) {
    if (k + 4 < a_columns) copy(stage ^ 1, k + 4);
#pragma unroll
    for (int step = 0; step < 2; step++) {
      unsigned am[4][4], bm[2][4];
#pragma unroll
      for (int m = 0; m < 4; m++) load_matrices(am[m], a_lane + stage * A + (16 * m * 5 + 2 * step) * 16);
#pragma unroll
      for (int n = 0; n < 2; n++) load_transposed(bm[n], b_lane + stage * B + (16 * step * 17 + 2 * n) * 16);
#pragma unroll
      for (int m = 0; m < 4; m++)
#pragma unroll
        for (int n = 0; n < 4; n++) mma(sums[m][n], am[m], bm[n / 2][2 * (n % 2)], bm[n / 2][2 * (n % 2) + 1]);
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
  }
#pragma unroll
  for (int m = 0; m < 4; m++)
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        unsigned row = first_row + warp / 4 * 64 + 16 * m + 8 * half + lane / 4, column = blockIdx.x * 64 + warp % 4 * 16 + 4 * n + lane % 4;
        if (row < rows && column < c_columns) c[(size_t)row * c_columns + column] = make_float2(sums[m][n][2 * half], sums[m][n][2 * half + 1]);
      }
}

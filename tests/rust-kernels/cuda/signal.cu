// The kernels of src/signal.rs, as a programmer of CUDA C++ writes them.

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

struct Filter {
  float at[5][5];
};

KERNEL(128) convolution(const float* __restrict__ x, Filter filter, float* __restrict__ y, unsigned rows, unsigned columns) {
  __shared__ float tile[20][132];
  int first_row = blockIdx.y * 16 - 2, first_column = blockIdx.x * 128 - 2;
#pragma unroll
  for (int i = threadIdx.x; i < 20 * 132; i += 128) {
    int row = i / 132, column = i % 132;
    unsigned r = first_row + row, c = first_column + column;
    tile[row][column] = r < rows && c < columns ? x[(size_t)r * columns + c] : 0.0f;
  }
  __syncthreads();
  float sums[16] = {};
#pragma unroll
  for (int row = 0; row < 20; row++) {
    float v[5];
#pragma unroll
    for (int j = 0; j < 5; j++) v[j] = tile[row][threadIdx.x + j];
#pragma unroll
    for (int i = 0; i < 5; i++)
      if (row - i >= 0 && row - i < 16)
#pragma unroll
        for (int j = 0; j < 5; j++) sums[row - i] = fmaf(filter.at[i][j], v[j], sums[row - i]);
  }
  unsigned column = blockIdx.x * 128 + threadIdx.x;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    unsigned row = blockIdx.y * 16 + i;
    if (row < rows && column < columns) y[(size_t)row * columns + column] = sums[i];
  }
}

__device__ __forceinline__ float2 product(float2 a, float2 b) { return make_float2(fmaf(a.x, b.x, -(a.y * b.y)), fmaf(a.x, b.y, a.y * b.x)); }

__device__ __forceinline__ void butterfly(float2 v[4]) {
  float2 s = make_float2(v[0].x + v[2].x, v[0].y + v[2].y), d = make_float2(v[0].x - v[2].x, v[0].y - v[2].y);
  float2 t = make_float2(v[1].x + v[3].x, v[1].y + v[3].y), e = make_float2(v[1].y - v[3].y, v[3].x - v[1].x);
  v[0] = make_float2(s.x + t.x, s.y + t.y);
  v[1] = make_float2(d.x + e.x, d.y + e.y);
  v[2] = make_float2(s.x - t.x, s.y - t.y);
  v[3] = make_float2(d.x - e.x, d.y - e.y);
}

KERNEL(256) fft_rows(const float2* __restrict__ x, const float2* __restrict__ roots, float2* __restrict__ y) {
  __shared__ float2 tile[4][260];
  unsigned thread = threadIdx.x;
  x += (size_t)blockIdx.x * 1024;
  y += (size_t)blockIdx.x * 1024;
  float2 v[4];
#pragma unroll
  for (int r = 0; r < 4; r++) v[r] = x[256 * r + thread];
  butterfly(v);
#pragma unroll
  for (int bits = 2; bits <= 8; bits += 2) {
    const unsigned size = 1 << bits, previous = size / 4;
    if (bits > 2) __syncthreads();
#pragma unroll
    for (int r = 0; r < 4; r++) tile[r][thread] = v[r];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 4; r++) {
      unsigned position = 256 * r + thread;
      v[r] = tile[position / previous % 4][position / size * previous + position % previous];
    }
    float2 root = roots[thread % size * (256 / size)], square = product(root, root);
    v[1] = product(v[1], root);
    v[2] = product(v[2], square);
    v[3] = product(v[3], product(square, root));
    butterfly(v);
  }
#pragma unroll
  for (int r = 0; r < 4; r++) y[256 * r + thread] = v[r];
}

KERNEL(256) transpose_complex(const float2* __restrict__ x, unsigned rows, unsigned columns, float2* __restrict__ y) {
  __shared__ float2 tile[32][33];
  unsigned first_row = blockIdx.x * 32, first_column = blockIdx.y * 32;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    unsigned row = first_row + threadIdx.y + 8 * i, column = first_column + threadIdx.x;
    if (row < rows && column < columns) tile[threadIdx.y + 8 * i][threadIdx.x] = x[(size_t)row * columns + column];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; i++) {
    unsigned row = first_column + threadIdx.y + 8 * i, column = first_row + threadIdx.x;
    if (row < columns && column < rows) y[(size_t)row * rows + column] = tile[threadIdx.x][threadIdx.y + 8 * i];
  }
}

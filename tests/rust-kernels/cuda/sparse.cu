// The kernels of src/sparse.rs, as a programmer of CUDA C++ writes them.

extern "C" __global__ void __launch_bounds__(256) spmv(const unsigned* __restrict__ row_starts, unsigned rows, const unsigned* __restrict__ columns,
                                                       const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y) {
  unsigned row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  unsigned end = row_starts[row + 1];
  float sum = 0;
  for (unsigned i = row_starts[row] + lane; i < end; i += 32) sum = fmaf(values[i], x[columns[i]], sum);
#pragma unroll
  for (int m = 16; m; m /= 2) sum += __shfl_xor_sync(~0u, sum, m);
  if (lane == 0) y[row] = sum;
}

// Attention on tensor cores in CUDA C++, for nvcc and NVRTC.
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif


__device__ inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline unsigned pack(float lo, float hi) { unsigned r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
// 64 dimensions, 16 rows of q for each warp; the algorithm of src/tensor_cores.rs.
extern "C" __global__ void __launch_bounds__(128) attention(const unsigned* __restrict__ q, const unsigned* __restrict__ k, const unsigned short* __restrict__ v,
                                                            float scale, float* __restrict__ out, unsigned queries, unsigned keys) {
  unsigned lane = threadIdx.x & 31, row = (blockIdx.x * 4 + threadIdx.x / 32) * 16, g = lane / 4, t = lane % 4;
  unsigned qf[4][4];
#pragma unroll
  for (int s = 0; s < 4; s++)
#pragma unroll
    for (int i = 0; i < 4; i++) { unsigned r = row + g + 8 * (i % 2); qf[s][i] = r < queries ? q[r * 32 + 8 * s + t + 4 * (i / 2)] : 0; }
  float sums[8][4] = {}, mx[2] = {-INFINITY, -INFINITY}, total[2] = {};
  for (unsigned key = 0; key < keys; key += 16) {
    float s[2][4] = {};
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
      for (int step = 0; step < 4; step++) {
        unsigned b[2];
#pragma unroll
        for (int i = 0; i < 2; i++) b[i] = k[(key + 8 * n + g) * 32 + 8 * step + t + 4 * i];
        mma(s[n], qf[step], b);
      }
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float m = fmaxf(fmaxf(s[0][2 * h], s[0][2 * h + 1]), fmaxf(s[1][2 * h], s[1][2 * h + 1])) * scale;
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 1)); m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
      m = fmaxf(mx[h], m);
      factor[h] = expf(mx[h] - m); mx[h] = m;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < 2; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) { s[n][2 * h + i] = expf(s[n][2 * h + i] * scale - m); sum += s[n][2 * h + i]; }
      sum += __shfl_xor_sync(~0u, sum, 1); sum += __shfl_xor_sync(~0u, sum, 2);
      total[h] = total[h] * factor[h] + sum;
    }
    unsigned p[4] = {pack(s[0][0], s[0][1]), pack(s[0][2], s[0][3]), pack(s[1][0], s[1][1]), pack(s[1][2], s[1][3])};
#pragma unroll
    for (int n = 0; n < 8; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) sums[n][i] *= factor[i / 2];
      unsigned b[2];
#pragma unroll
      for (int i = 0; i < 2; i++) b[i] = v[(key + 2 * t + 8 * i) * 64 + 8 * n + g] | (unsigned)v[(key + 2 * t + 8 * i + 1) * 64 + 8 * n + g] << 16;
      mma(sums[n], p, b);
    }
  }
#pragma unroll
  for (int n = 0; n < 8; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) { unsigned r = row + g + 8 * (i / 2); if (r < queries) out[r * 64 + 8 * n + 2 * t + i % 2] = sums[n][i] / total[i / 2]; }
}

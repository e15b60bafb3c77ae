// Arithmetic of half and bfloat16, single and in pairs, beside float that is rounded once.
#include "check.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void halves(const float* x, const float* y, float* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    __half a = __float2half(x[i]), b = __float2half(y[i]);
    __nv_bfloat16 c = __float2bfloat16(x[i]), d = __float2bfloat16(y[i]);
    __half2 pair = __hfma2(__halves2half2(a, b), __halves2half2(b, b), __halves2half2(a, a));
    float results[] = {__half2float(__hadd(a, b)), __half2float(__hmul(a, b)), __half2float(__hfma(a, b, a)),
                       __low2float(pair), __high2float(pair), __bfloat162float(__hadd(c, d)), __bfloat162float(__hmul(c, d)),
                       __half2float(__hmax(a, b)), (float)__hlt(a, b), (float)__half2int_rn(__hmul(a, __float2half(10.f)))};
    for (int k = 0; k < 10; ++k) out[i * 10 + k] = results[k];
}

int main() {
    const int count = 512;
    float *x = managed<float>(count), *y = managed<float>(count), *out = managed<float>(count * 10);
    for (int i = 0; i < count; ++i) x[i] = (i * 37 % 501 - 250) / 16.0f, y[i] = (i * 91 % 255 - 127) / 32.0f;
    halves<<<4, 128>>>(x, y, out, count);
    finish();
    auto h = [](float v) { return __half2float(__float2half(v)); };
    auto b = [](float v) { return __bfloat162float(__float2bfloat16(v)); };
    for (int i = 0; i < count; ++i) {
        float a = h(x[i]), c = h(y[i]), p = b(x[i]), q = b(y[i]), *r = out + i * 10;
        EXPECT_AT(i, r[0], h(a + c));
        EXPECT_AT(i, r[1], h(a * c));
        EXPECT_AT(i, r[2], h(a * c + a));
        EXPECT_AT(i, r[3], h(a * c + a));
        EXPECT_AT(i, r[4], h(c * c + a));
        EXPECT_AT(i, r[5], b(p + q));
        EXPECT_AT(i, r[6], b(p * q));
        EXPECT_AT(i, r[7], a > c ? a : c);
        EXPECT_AT(i, r[8], (float)(a < c));
        EXPECT_AT(i, r[9], __builtin_rintf(h(a * 10)));
    }
}

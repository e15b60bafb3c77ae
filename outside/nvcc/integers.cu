// Integer intrinsics: bits, wide products, video instructions, division by values of run time.
#include "check.h"

__global__ void use(const unsigned* x, unsigned long long* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned a = x[i], b = x[(i + 1) % count] | 1;
    unsigned long long* row = out + i * 10;
    row[0] = __brev(a), row[1] = __clz(a), row[2] = __ffs(a), row[3] = __umulhi(a, b), row[4] = (unsigned)__mulhi((int)a, (int)b);
    row[5] = __vaddus4(a, b), row[6] = __vabsdiffu4(a, b), row[7] = a / b * 7 + a % b;
    row[8] = __umul64hi((unsigned long long)a << 20, (unsigned long long)b << 25), row[9] = (unsigned)((int)a / (int)b);
}

int main() {
    const int count = 256;
    unsigned* x = managed<unsigned>(count);
    auto* out = managed<unsigned long long>(count * 10);
    for (int i = 0; i < count; ++i) x[i] = (unsigned)i * 2654435761u >> (i % 20);
    use<<<2, 128>>>(x, out, count);
    finish();
    for (int i = 0; i < count; ++i) {
        unsigned a = x[i], b = x[(i + 1) % count] | 1, reversed = 0, sum = 0, difference = 0;
        for (int k = 0; k < 32; ++k) reversed |= (a >> k & 1) << (31 - k);
        for (int k = 0; k < 32; k += 8) {
            unsigned p = a >> k & 255, q = b >> k & 255;
            sum |= (p + q > 255 ? 255 : p + q) << k, difference |= (p > q ? p - q : q - p) << k;
        }
        unsigned long long* row = out + i * 10;
        EXPECT(row[0] == reversed && row[1] == (unsigned long long)(a ? __builtin_clz(a) : 32) && row[2] == (unsigned long long)__builtin_ffs(a));
        EXPECT(row[3] == (unsigned long long)a * b >> 32 && row[4] == (unsigned)((long long)(int)a * (int)b >> 32));
        EXPECT(row[5] == sum && row[6] == difference && row[7] == a / b * 7 + a % b);
        EXPECT(row[8] == (unsigned long long)((unsigned __int128)((unsigned long long)a << 20) * ((unsigned long long)b << 25) >> 64));
        EXPECT(row[9] == (unsigned)((int)a / (int)b));
    }
}

// Inline PTX: carries, special registers, predicates, vector loads, byte permutation and labels of its own.
#include "check.h"

__global__ void use(unsigned* out, const uint4* in) {
    unsigned low, high, lane, permuted, funnel, a, b, c, d, found = 0, looped = 0;
    asm("add.cc.u32 %0, %2, %3;\n\taddc.u32 %1, %4, 0;" : "=r"(low), "=r"(high) : "r"(0xffffffffu), "r"(2u + threadIdx.x), "r"(5u));
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("prmt.b32 %0, %1, %2, 0x6420;" : "=r"(permuted) : "r"(0x33221100u), "r"(0x77665544u));
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(funnel) : "r"(0x80000001u), "r"(0x1u), "r"(4u));
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in + threadIdx.x));
    asm("{\n\t.reg .pred p;\n\tsetp.gt.u32 p, %1, 15;\n\tselp.u32 %0, 1, 2, p;\n\t}" : "=r"(found) : "r"(threadIdx.x));
    asm("{\n\t.reg .u32 n;\n\t.reg .pred p;\n\tmov.u32 n, %1;\n\tmov.u32 %0, 0;\n"
        "again:\n\tadd.u32 %0, %0, n;\n\tsub.u32 n, n, 1;\n\tsetp.ne.u32 p, n, 0;\n\t@p bra again;\n\t}"
        : "+r"(looped) : "r"(threadIdx.x + 1));
    unsigned* row = out + threadIdx.x * 8;
    row[0] = low, row[1] = high, row[2] = lane, row[3] = permuted, row[4] = funnel, row[5] = a + b * 3 + c * 5 + d * 7, row[6] = found;
    row[7] = looped;
}

int main() {
    unsigned* out = managed<unsigned>(32 * 8);
    uint4* in = managed<uint4>(32);
    for (unsigned i = 0; i < 32; ++i) in[i] = make_uint4(i, i + 1, i + 2, i + 3);
    use<<<1, 32>>>(out, in);
    finish();
    for (unsigned i = 0; i < 32; ++i) {
        unsigned* row = out + i * 8;
        EXPECT_AT(i, row[0], 1 + i);
        EXPECT_AT(i, row[1], 6u);
        EXPECT_AT(i, row[2], i);
        EXPECT_AT(i, row[3], 0x66442200u);
        EXPECT_AT(i, row[4], 0x18u);
        EXPECT_AT(i, row[5], 16 * i + 3 + 10 + 21);
        EXPECT_AT(i, row[6], i > 15 ? 1u : 2u);
        EXPECT_AT(i, row[7], (i + 1) * (i + 2) / 2);
    }
}

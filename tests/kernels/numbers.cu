// Integers: hashes, random numbers, and arithmetic wider than a register.

__device__ unsigned int rotate(unsigned int value, unsigned int count) { return value >> count | value << (32 - count); }

__constant__ unsigned int rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// One block of SHA-256 per thread: 16 words each, in the order of the message, to 8 words.
extern "C" __global__ void sha256(const unsigned int* messages, unsigned int* digests, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned int w[64];
    for (unsigned int at = 0; at < 16; ++at) {
        w[at] = messages[index * 16 + at];
    }
    for (unsigned int at = 16; at < 64; ++at) {
        unsigned int low = rotate(w[at - 15], 7) ^ rotate(w[at - 15], 18) ^ w[at - 15] >> 3;
        unsigned int high = rotate(w[at - 2], 17) ^ rotate(w[at - 2], 19) ^ w[at - 2] >> 10;
        w[at] = w[at - 16] + low + w[at - 7] + high;
    }
    unsigned int initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned int s[8];
    for (unsigned int at = 0; at < 8; ++at) {
        s[at] = initial[at];
    }
    for (unsigned int at = 0; at < 64; ++at) {
        unsigned int first = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + rounds[at] + w[at];
        unsigned int second = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        for (unsigned int place = 7; place > 0; --place) {
            s[place] = s[place - 1];
        }
        s[4] += first;
        s[0] = first + second;
    }
    for (unsigned int at = 0; at < 8; ++at) {
        digests[index * 8 + at] = initial[at] + s[at];
    }
}

// `count` numbers of each thread's own Philox sequence: ten rounds on a counter, keyed by the thread.
extern "C" __global__ void philox(uint4* output, unsigned int seed, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    uint4 counter = make_uint4(index, 0, 0, 0);
    uint2 key = make_uint2(seed, ~seed);
    for (unsigned int round = 0; round < 10; ++round) {
        unsigned int high0 = __umulhi(0xD2511F53u, counter.x);
        unsigned int low0 = 0xD2511F53u * counter.x;
        unsigned int high1 = __umulhi(0xCD9E8D57u, counter.z);
        unsigned int low1 = 0xCD9E8D57u * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    output[index] = counter;
}

// The product of two 128-bit numbers, 256 bits, by carries from word to word.
extern "C" __global__ void wide_product(const uint4* left, const uint4* right, unsigned int* products, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned int a[4] = {left[index].x, left[index].y, left[index].z, left[index].w};
    unsigned int b[4] = {right[index].x, right[index].y, right[index].z, right[index].w};
    unsigned int sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (unsigned int row = 0; row < 4; ++row) {
        unsigned int* s = sum + row;
        asm("mad.lo.cc.u32 %0, %5, %9, %0;\n\t"
            "madc.lo.cc.u32 %1, %6, %9, %1;\n\t"
            "madc.lo.cc.u32 %2, %7, %9, %2;\n\t"
            "madc.lo.cc.u32 %3, %8, %9, %3;\n\t"
            "addc.u32 %4, %4, 0;\n\t"
            "mad.hi.cc.u32 %1, %5, %9, %1;\n\t"
            "madc.hi.cc.u32 %2, %6, %9, %2;\n\t"
            "madc.hi.cc.u32 %3, %7, %9, %3;\n\t"
            "madc.hi.u32 %4, %8, %9, %4;"
            : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3]), "+r"(s[4])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[row]));
    }
    for (unsigned int at = 0; at < 8; ++at) {
        products[index * 8 + at] = sum[at];
    }
}

// Every operation that counts or moves bits, on pairs of numbers: 12 results each.
extern "C" __global__ void bit_operations(const uint2* input, unsigned int* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned int a = input[index].x;
    unsigned int b = input[index].y;
    unsigned long long both = (unsigned long long)a << 32 | b;
    unsigned int* out = output + 12 * index;
    out[0] = __popc(a);
    out[1] = __clz(a);
    out[2] = __brev(a);
    out[3] = __ffs(b);
    out[4] = __byte_perm(a, b, 0x5140);
    out[5] = __funnelshift_l(a, b, b);
    out[6] = __funnelshift_rc(a, b, b % 64);
    out[7] = __popcll(both);
    out[8] = __clzll(both);
    out[9] = __sad(a, b, 3);
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(out[10]) : "r"(a), "r"(b), "r"(7));
    out[11] = __mulhi((int)a, (int)b);
}

// 64-bit quotients and remainders, signed and unsigned: 4 results each.
extern "C" __global__ void divide(const long long* left, const long long* right, long long* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    long long a = left[index];
    long long b = right[index];
    output[4 * index] = a / b;
    output[4 * index + 1] = a % b;
    output[4 * index + 2] = (long long)((unsigned long long)a / (unsigned long long)b);
    output[4 * index + 3] = (long long)((unsigned long long)a % (unsigned long long)b);
}

// The check sum of CRC-32 of rows of `length` bytes, a thread each.
extern "C" __global__ void crc32(const unsigned char* rows, unsigned int* sums, unsigned int length, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned int crc = 0xffffffffu;
    for (unsigned int at = 0; at < length; ++at) {
        crc ^= rows[index * length + at];
        for (unsigned int bit = 0; bit < 8; ++bit) {
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
        }
    }
    sums[index] = ~crc;
}

// How often `pattern` occurs in `text`.
extern "C" __global__ void find_text(const char* text, unsigned int length, const char* pattern, unsigned int size, unsigned int* count)
{
    for (unsigned int start = blockIdx.x * blockDim.x + threadIdx.x; start + size <= length; start += gridDim.x * blockDim.x) {
        unsigned int at = 0;
        while (at < size && text[start + at] == pattern[at]) {
            ++at;
        }
        if (at == size) {
            atomicAdd(count, 1);
        }
    }
}

// The steps from each number to 1 by halving and tripling: as divergent as a warp gets.
extern "C" __global__ void collatz(unsigned int* steps, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned long long value = index + 1;
    unsigned int count = 0;
    while (value != 1) {
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
        ++count;
    }
    steps[index] = count;
}

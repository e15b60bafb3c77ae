// nvrtc: --gpu-architecture=compute_80 --std=c++17
//
// Products of matrices by tensor cores, and copies that go on while threads work.

// A 16 by 8 product of 16 by 16 and 16 by 8 halves, by one warp: A by rows, B by columns.
extern "C" __global__ void tensor_product(const unsigned int* a, const unsigned int* b, float* c)
{
    unsigned int group = threadIdx.x / 4;
    unsigned int place = threadIdx.x % 4;
    unsigned int a0 = a[group * 8 + place];
    unsigned int a1 = a[(group + 8) * 8 + place];
    unsigned int a2 = a[group * 8 + place + 4];
    unsigned int a3 = a[(group + 8) * 8 + place + 4];
    unsigned int b0 = b[group * 8 + place];
    unsigned int b1 = b[group * 8 + place + 4];
    float d0, d1, d2, d3;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(0.0f));
    c[group * 8 + 2 * place] = d0;
    c[group * 8 + 2 * place + 1] = d1;
    c[(group + 8) * 8 + 2 * place] = d2;
    c[(group + 8) * 8 + 2 * place + 1] = d3;
}

// The 16 by 8 product of single precision with fewer digits: a is 16 by 8 by rows, b 8 by 8 by columns.
extern "C" __global__ void tensor_product_tf32(const unsigned int* a, const unsigned int* b, float* c)
{
    unsigned int group = threadIdx.x / 4;
    unsigned int place = threadIdx.x % 4;
    float d0, d1, d2, d3;
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
        : "r"(a[group * 8 + place]), "r"(a[(group + 8) * 8 + place]), "r"(a[group * 8 + place + 4]), "r"(a[(group + 8) * 8 + place + 4]),
          "r"(b[group * 8 + place]), "r"(b[group * 8 + place + 4]), "f"(0.0f));
    c[group * 8 + 2 * place] = d0;
    c[group * 8 + 2 * place + 1] = d1;
    c[(group + 8) * 8 + 2 * place] = d2;
    c[(group + 8) * 8 + 2 * place + 1] = d3;
}

// The 8 by 8 product of doubles: a is 8 by 4 by rows, b 4 by 8 by columns, and the product is added to c.
extern "C" __global__ void tensor_product_f64(const double* a, const double* b, double* c)
{
    unsigned int group = threadIdx.x / 4;
    unsigned int place = threadIdx.x % 4;
    double* out = c + group * 8 + 2 * place;
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(out[0]), "+d"(out[1])
        : "d"(a[group * 4 + place]), "d"(b[group * 4 + place]));
}

// The 16 by 8 product of signed bytes: a is 16 by 32 by rows, b 32 by 8 by columns, four to a word.
extern "C" __global__ void tensor_product_i8(const unsigned int* a, const unsigned int* b, int* c)
{
    unsigned int group = threadIdx.x / 4;
    unsigned int place = threadIdx.x % 4;
    int d0, d1, d2, d3;
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)
        : "r"(a[group * 8 + place]), "r"(a[(group + 8) * 8 + place]), "r"(a[group * 8 + place + 4]), "r"(a[(group + 8) * 8 + place + 4]),
          "r"(b[group * 8 + place]), "r"(b[group * 8 + place + 4]), "r"(0));
    c[group * 8 + 2 * place] = d0;
    c[group * 8 + 2 * place + 1] = d1;
    c[(group + 8) * 8 + 2 * place] = d2;
    c[(group + 8) * 8 + 2 * place + 1] = d3;
}

// The sum of each tile of 128 words, copied to shared memory one tile ahead, by one block of 32 threads.
extern "C" __global__ void copied_ahead(const unsigned int* input, unsigned int* sums, unsigned int tiles)
{
    __shared__ __align__(16) unsigned int buffer[2][128];
    auto fetch = [&](unsigned int tile) {
        unsigned int to = (unsigned int)__cvta_generic_to_shared(&buffer[tile % 2][4 * threadIdx.x]);
        if (tile < tiles) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(input + tile * 128 + 4 * threadIdx.x));
        }
        asm volatile("cp.async.commit_group;");
    };
    fetch(0);
    for (unsigned int tile = 0; tile < tiles; ++tile) {
        fetch(tile + 1);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncwarp();
        unsigned int sum = 0;
        for (unsigned int at = threadIdx.x; at < 128; at += 32) {
            sum += buffer[tile % 2][at];
        }
        sum = __reduce_add_sync(0xffffffffu, sum);
        if (threadIdx.x == 0) {
            sums[tile] = sum;
        }
        __syncwarp();
    }
}

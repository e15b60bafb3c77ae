// Products of matrices, row-major, of other types than single precision; in tiles of 16 by 16 threads.
//
// Each element is the sum over `depth` in ascending order, each step one fused multiply-add.
#define TILE 16

struct Half {
    unsigned short bits;
};

__device__ float widen(Half half)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half.bits));
    return value;
}

// How a type of elements is multiplied and added to a sum, and how the sum is kept.
struct Doubles {
    typedef double Element;
    typedef double Sum;
    static __device__ double add(double sum, double a, double b) { return fma(a, b, sum); }
    static __device__ double keep(double sum) { return sum; }
};

struct HalvesInSingle {
    typedef Half Element;
    typedef float Sum;
    static __device__ float add(float sum, Half a, Half b) { return fmaf(widen(a), widen(b), sum); }
    static __device__ Half keep(float sum)
    {
        Half half;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(sum));
        return half;
    }
};

struct HalvesInHalf {
    typedef Half Element;
    typedef Half Sum;
    static __device__ Half add(Half sum, Half a, Half b)
    {
        asm("fma.rn.f16 %0, %1, %2, %0;" : "+h"(sum.bits) : "h"(a.bits), "h"(b.bits));
        return sum;
    }
    static __device__ Half keep(Half sum) { return sum; }
};

// Four bytes at once.
struct Bytes {
    typedef int Element;
    typedef int Sum;
    static __device__ int add(int sum, int a, int b)
    {
        asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
        return sum;
    }
    static __device__ int keep(int sum) { return sum; }
};

template <typename Rule>
__device__ void product_of(const typename Rule::Element* left, const typename Rule::Element* right, typename Rule::Element* product,
                           unsigned int rows, unsigned int depth, unsigned int columns)
{
    __shared__ typename Rule::Element left_tile[TILE][TILE];
    __shared__ typename Rule::Element right_tile[TILE][TILE];
    unsigned int row = blockIdx.y * TILE + threadIdx.y;
    unsigned int column = blockIdx.x * TILE + threadIdx.x;
    typename Rule::Element zero = typename Rule::Element();
    typename Rule::Sum sum = typename Rule::Sum();
    for (unsigned int start = 0; start < depth; start += TILE) {
        unsigned int across = start + threadIdx.x;
        unsigned int down = start + threadIdx.y;
        left_tile[threadIdx.y][threadIdx.x] = row < rows && across < depth ? left[row * depth + across] : zero;
        right_tile[threadIdx.y][threadIdx.x] = down < depth && column < columns ? right[down * columns + column] : zero;
        __syncthreads();
        for (unsigned int k = 0; k < TILE && start + k < depth; ++k) {
            sum = Rule::add(sum, left_tile[threadIdx.y][k], right_tile[k][threadIdx.x]);
        }
        __syncthreads();
    }
    if (row < rows && column < columns) {
        product[row * columns + column] = Rule::keep(sum);
    }
}

extern "C" __global__ void matmul_f64(const double* left, const double* right, double* product, unsigned int rows, unsigned int depth,
                                      unsigned int columns)
{
    product_of<Doubles>(left, right, product, rows, depth, columns);
}

// Halves, summed in single precision and rounded at the end.
extern "C" __global__ void matmul_f16(const Half* left, const Half* right, Half* product, unsigned int rows, unsigned int depth,
                                      unsigned int columns)
{
    product_of<HalvesInSingle>(left, right, product, rows, depth, columns);
}

// Halves, rounded to a half at each step.
extern "C" __global__ void matmul_f16_steps(const Half* left, const Half* right, Half* product, unsigned int rows, unsigned int depth,
                                            unsigned int columns)
{
    product_of<HalvesInHalf>(left, right, product, rows, depth, columns);
}

// Signed bytes, four of the depth to a word in both matrices.
extern "C" __global__ void matmul_i8(const int* left, const int* right, int* product, unsigned int rows, unsigned int depth,
                                     unsigned int columns)
{
    product_of<Bytes>(left, right, product, rows, depth, columns);
}

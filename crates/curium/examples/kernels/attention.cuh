// The parts that the kernels of the fused attention share.
//
// Queries, keys and values of a head lie side by side (3 * HEAD elements), those of all heads of all samples make a row, and a position has
// a row. Grids have a block for each head and each tile of rows. A block keeps its tile in registers and streams tiles of the other
// operands through two stages of shared memory: cp.async fills one stage while the block computes with the other. A warp has BANDS bands
// of 16 rows, and its products lie in registers as the operand of the next product, so that scores are never stored.

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using i32 = int;

constexpr u32 LANES = 32;
constexpr u32 WARPS = 4;
constexpr u32 THREADS = LANES * WARPS;
// The rows and columns of a matrix operand.
constexpr u32 SIDE = 16;
constexpr float LOG2_E = 1.44269504f;

// The sizes for a width of a head.
template <u32 HEAD>
struct Sizes {
    static constexpr u32 BANDS = HEAD <= 64 ? 2 : 1;
    static constexpr u32 ROWS_OF_WARP = BANDS * SIDE;
    static constexpr u32 ROWS = WARPS * ROWS_OF_WARP;
    // The rows of a streamed tile. A stage has two.
    static constexpr u32 STREAMED = ROWS / 2;
    static constexpr u32 ROW_BYTES = HEAD * sizeof(u16);
    static constexpr u32 TILE_BYTES = ROWS * ROW_BYTES;
    static constexpr u32 STREAMED_BYTES = STREAMED * ROW_BYTES;
    // The operands of a row, and its groups of 8 elements.
    static constexpr u32 STEPS = HEAD / SIDE;
    static constexpr u32 GROUPS = HEAD / 8;
};

// The operands of the rows of a warp.
template <u32 HEAD>
struct Rows {
    u32 of[Sizes<HEAD>::BANDS][Sizes<HEAD>::STEPS][4];
};

// The products of the rows of a warp with columns. A lane has two adjacent columns of each group of 8, in two rows of each band.
template <u32 HEAD, u32 COLUMNS>
struct Sums {
    float of[Sizes<HEAD>::BANDS][COLUMNS / 8][4];
};

// Two stages, and the tiles that stay.
extern __shared__ __align__(1024) u8 shared_memory[];

__device__ u32 lane()
{
    return threadIdx.x % LANES;
}

// Returns the row in the tile of the block of a lane's products.
template <u32 HEAD>
__device__ u32 row_of(u32 band, u32 half)
{
    return threadIdx.x / LANES * Sizes<HEAD>::ROWS_OF_WARP + band * SIDE + half * 8 + lane() / 4;
}

// Returns the first column in a group of 8 of a lane's products.
__device__ u32 column_of_lane()
{
    return lane() % 4 * 2;
}

// Returns the place in bytes of a group of 8 elements in a tile. It depends on the row, so that 8 rows of a column of groups are in
// different banks.
template <u32 HEAD>
__device__ u32 place(u32 row, u32 group)
{
    constexpr u32 GROUPS = Sizes<HEAD>::GROUPS;
    constexpr u32 ROWS_OF_LINE = GROUPS < 8 ? 8 / GROUPS : 1;
    constexpr u32 MASK = (GROUPS < 8 ? GROUPS : 8) - 1;
    return (row * GROUPS + (group ^ (row / ROWS_OF_LINE & MASK))) * 16;
}

// Returns the place that a lane names to load the first operand of a tile. The others are at `place ^ step * 32`.
template <u32 HEAD>
__device__ u32 place_of_lane()
{
    return place<HEAD>(lane() % SIDE, lane() / SIDE);
}

__device__ u32 address_of_shared()
{
    return static_cast<u32>(__cvta_generic_to_shared(shared_memory));
}

// Copies 16 bytes, or stores zeros.
__device__ void copy_async(u32 to, const void* from, bool exists)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0) : "memory");
}

// Copies a number, or stores zero.
__device__ void copy_async(u32 to, const float* from, bool exists)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(exists ? 4 : 0) : "memory");
}

// Copies rows of a head from the first on to a tile. Rows after the end of the sequence become zeros.
template <u32 HEAD, u32 ROWS>
__device__ void copy_rows(u32 tile, const u16* from, size_t stride, u32 first, u32 length)
{
    constexpr u32 GROUPS = Sizes<HEAD>::GROUPS, ROWS_AT_A_TIME = THREADS / GROUPS;
    u32 row = first + threadIdx.x / GROUPS, group = threadIdx.x % GROUPS;
    const u16* source = from + row * stride + group * 8;
    tile += place<HEAD>(threadIdx.x / GROUPS, group);
    #pragma unroll
    for (u32 part = 0; part < ROWS / ROWS_AT_A_TIME; part++) {
        bool exists = row + part * ROWS_AT_A_TIME < length;
        const u16* existing = exists ? source + part * ROWS_AT_A_TIME * stride : from;
        copy_async(tile + part * THREADS * 16, static_cast<const void*>(existing), exists);
    }
}

// Waits for the copies of all threads of the block.
__device__ void wait_for_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
}

// Loads an operand: in order, the 8 x 8 parts of rows 0 and 8 of the left columns, and those of the right columns.
__device__ void load(u32 (&to)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}

__device__ void load_transposed(u32 (&to)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}

// Loads the rows of a warp.
template <u32 HEAD>
__device__ void load_rows(Rows<HEAD>& rows, u32 tile)
{
    tile += threadIdx.x / LANES * Sizes<HEAD>::ROWS_OF_WARP * Sizes<HEAD>::ROW_BYTES;
    #pragma unroll
    for (u32 band = 0; band < Sizes<HEAD>::BANDS; band++) {
        #pragma unroll
        for (u32 step = 0; step < Sizes<HEAD>::STEPS; step++) {
            load(rows.of[band][step], tile + band * SIDE * Sizes<HEAD>::ROW_BYTES + (place_of_lane<HEAD>() ^ step * 32));
        }
    }
}

__device__ void multiply(float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Adds the products of rows and the transposed rows of a tile.
template <u32 HEAD, u32 COLUMNS>
__device__ void add_products(Sums<HEAD, COLUMNS>& sums, const Rows<HEAD>& rows, u32 tile)
{
    #pragma unroll
    for (u32 step = 0; step < Sizes<HEAD>::STEPS; step++) {
        #pragma unroll
        for (u32 column = 0; column < COLUMNS / SIDE; column++) {
            u32 b[4];
            load(b, tile + column * SIDE * Sizes<HEAD>::ROW_BYTES + (place_of_lane<HEAD>() ^ step * 32));
            #pragma unroll
            for (u32 band = 0; band < Sizes<HEAD>::BANDS; band++) {
                multiply(sums.of[band][2 * column], rows.of[band][step], b[0], b[2]);
                multiply(sums.of[band][2 * column + 1], rows.of[band][step], b[1], b[3]);
            }
        }
    }
}

// Adds the products of 16 columns of weights and 16 rows of a tile.
template <u32 HEAD>
__device__ void add_weighted(Sums<HEAD, HEAD>& sums, const u32 (&weights)[Sizes<HEAD>::BANDS][4], u32 tile)
{
    #pragma unroll
    for (u32 step = 0; step < Sizes<HEAD>::STEPS; step++) {
        u32 b[4];
        load_transposed(b, tile + (place_of_lane<HEAD>() ^ step * 32));
        #pragma unroll
        for (u32 band = 0; band < Sizes<HEAD>::BANDS; band++) {
            multiply(sums.of[band][2 * step], weights[band], b[0], b[1]);
            multiply(sums.of[band][2 * step + 1], weights[band], b[2], b[3]);
        }
    }
}

__device__ u32 rounded(float low, float high)
{
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// Converts the products of 16 columns to an operand.
__device__ void to_operand(u32 (&operand)[4], const float (&left)[4], const float (&right)[4])
{
    operand[0] = rounded(left[0], left[1]);
    operand[1] = rounded(left[2], left[3]);
    operand[2] = rounded(right[0], right[1]);
    operand[3] = rounded(right[2], right[3]);
}

// Stores the products of a warp with a factor for each row, with 16-byte accesses: through its rows of a tile, which nothing else reads.
template <u32 HEAD>
__device__ void store_rows(const Sums<HEAD, HEAD>& sums, const float (&factors)[Sizes<HEAD>::BANDS][2], u8* tile, u16* to, size_t stride,
    u32 first, u32 length)
{
    constexpr u32 GROUPS = Sizes<HEAD>::GROUPS;
    __syncwarp();
    #pragma unroll
    for (u32 band = 0; band < Sizes<HEAD>::BANDS; band++) {
        #pragma unroll
        for (u32 index = 0; index < 2 * GROUPS; index++) {
            u32 group = index / 2, half = index % 2;
            float factor = factors[band][half];
            u32 pair = rounded(sums.of[band][group][2 * half] * factor, sums.of[band][group][2 * half + 1] * factor);
            *reinterpret_cast<u32*>(tile + place<HEAD>(row_of<HEAD>(band, half), group) + column_of_lane() * sizeof(u16)) = pair;
        }
    }
    __syncwarp();
    u32 first_of_warp = threadIdx.x / LANES * Sizes<HEAD>::ROWS_OF_WARP;
    #pragma unroll
    for (u32 part = 0; part < Sizes<HEAD>::ROWS_OF_WARP * GROUPS / LANES; part++) {
        u32 index = part * LANES + lane(), row = first_of_warp + index / GROUPS, group = index % GROUPS;
        if (first + row < length) {
            uint4 packed = *reinterpret_cast<const uint4*>(tile + place<HEAD>(row, group));
            *reinterpret_cast<uint4*>(to + (first + row) * stride + group * 8) = packed;
        }
    }
}

__device__ float power_of_two(float exponent)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
    return power;
}

// Returns the sum of the four lanes that have the products of a row.
__device__ float sum_of_row(float value)
{
    value += __shfl_xor_sync(0xffffffff, value, 1);
    return value + __shfl_xor_sync(0xffffffff, value, 2);
}

__device__ float maximum_of_row(float value)
{
    value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffff, value, 2));
}

// Returns the number of keys that a query may see: those up to its own position if the mask is causal.
__device__ u32 visible(u32 query, u32 length, u32 is_causal)
{
    return is_causal ? min(query + 1, length) : length;
}

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS, 2)

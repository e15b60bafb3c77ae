// nvrtc: --gpu-architecture=compute_80 --std=c++17
//
// Fused attention: the forward pass of FlashAttention-2.

#include "attention.cuh"

#define LEAST __uint_as_float(0xff800000)

// The softmax of the scores that were seen until now: the maximum of each row, and each lane's part of the sum of its exponentials.
template <u32 HEAD>
struct Softmax {
    float maxima[Sizes<HEAD>::BANDS][2];
    float totals[Sizes<HEAD>::BANDS][2];
};

// Replaces the scores of keys that queries may not see.
template <u32 HEAD, u32 KEYS>
__device__ void mask(Sums<HEAD, KEYS>& scores, u32 first, u32 key, u32 length, u32 is_causal)
{
    #pragma unroll
    for (u32 band = 0; band < Sizes<HEAD>::BANDS; band++) {
        #pragma unroll
        for (u32 half = 0; half < 2; half++) {
            i32 end = i32(visible(first + row_of<HEAD>(band, half), length, is_causal)) - i32(key + column_of_lane());
            #pragma unroll
            for (u32 index = 0; index < KEYS / 4; index++) {
                if (i32(index / 2 * 8 + index % 2) >= end) {
                    scores.of[band][index / 2][2 * half + index % 2] = LEAST;
                }
            }
        }
    }
}

// Replaces scores by their exponentials relative to the maximum so far, and scales the earlier sums down to it.
template <u32 HEAD, u32 KEYS>
__device__ void update(Softmax<HEAD>& softmax, Sums<HEAD, HEAD>& result, Sums<HEAD, KEYS>& scores, float factor)
{
    #pragma unroll
    for (u32 band = 0; band < Sizes<HEAD>::BANDS; band++) {
        #pragma unroll
        for (u32 half = 0; half < 2; half++) {
            float before = softmax.maxima[band][half], maximum = before, total = 0;
            #pragma unroll
            for (u32 index = 0; index < KEYS / 4; index++) {
                maximum = fmaxf(maximum, scores.of[band][index / 2][2 * half + index % 2]);
            }
            maximum = maximum_of_row(maximum);
            float rescale = power_of_two((before - maximum) * factor), subtrahend = maximum * factor;
            #pragma unroll
            for (u32 index = 0; index < KEYS / 4; index++) {
                float& score = scores.of[band][index / 2][2 * half + index % 2];
                score = power_of_two(score * factor - subtrahend);
                total += score;
            }
            #pragma unroll
            for (u32 index = 0; index < HEAD / 4; index++) {
                result.of[band][index / 2][2 * half + index % 2] *= rescale;
            }
            softmax.maxima[band][half] = maximum;
            softmax.totals[band][half] = softmax.totals[band][half] * rescale + total;
        }
    }
}

// context = softmax(queries * keys^T * scale) * values. Stores the binary logarithm of the sum of the exponentials of each row.
template <u32 HEAD>
__device__ void attention(const u16* qkv, u16* context, float* log_sums, u32 length, float scale, u32 is_causal)
{
    using S = Sizes<HEAD>;
    constexpr u32 KEYS = S::STREAMED;
    u32 of_head = blockIdx.x * HEAD, width = gridDim.x * HEAD, stride = 3 * width;
    const u16* queries = qkv + 3 * of_head;
    // With a causal mask, the last tiles have the most work.
    u32 first = (gridDim.y - 1 - blockIdx.y) * S::ROWS, first_of_warp = first + threadIdx.x / LANES * S::ROWS_OF_WARP;
    u32 end = visible(first + S::ROWS - 1, length, is_causal), end_of_warp = visible(first_of_warp + S::ROWS_OF_WARP - 1, length, is_causal);
    u32 stages = address_of_shared(), resident = stages + 2 * S::TILE_BYTES;

    auto copy = [&](u32 key) {
        u32 stage = stages + key / KEYS % 2 * S::TILE_BYTES;
        copy_rows<HEAD, KEYS>(stage, queries + HEAD, stride, key, length);
        copy_rows<HEAD, KEYS>(stage + S::STREAMED_BYTES, queries + 2 * HEAD, stride, key, length);
    };
    copy_rows<HEAD, S::ROWS>(resident, queries, stride, first, length);
    copy(0);
    wait_for_copies();
    Rows<HEAD> rows;
    load_rows<HEAD>(rows, resident);

    float factor = scale * LOG2_E;
    Sums<HEAD, HEAD> result = {};
    Softmax<HEAD> softmax = {};
    for (u32 row = 0; row < 2 * S::BANDS; row++) {
        softmax.maxima[row / 2][row % 2] = LEAST;
    }
    for (u32 key = 0; key < end; key += KEYS) {
        wait_for_copies();
        if (key + KEYS < end) {
            copy(key + KEYS);
        }
        if (key >= end_of_warp) {
            continue;
        }
        u32 keys = stages + key / KEYS % 2 * S::TILE_BYTES, values = keys + S::STREAMED_BYTES;
        Sums<HEAD, KEYS> scores = {};
        add_products<HEAD, KEYS>(scores, rows, keys);
        if (key + KEYS > visible(first_of_warp, length, is_causal)) {
            mask<HEAD, KEYS>(scores, first, key, length, is_causal);
        }
        update<HEAD, KEYS>(softmax, result, scores, factor);
        #pragma unroll
        for (u32 step = 0; step < KEYS / SIDE; step++) {
            u32 weights[S::BANDS][4];
            #pragma unroll
            for (u32 band = 0; band < S::BANDS; band++) {
                to_operand(weights[band], scores.of[band][2 * step], scores.of[band][2 * step + 1]);
            }
            add_weighted<HEAD>(result, weights, values + step * SIDE * S::ROW_BYTES);
        }
    }

    float reciprocals[S::BANDS][2];
    #pragma unroll
    for (u32 band = 0; band < S::BANDS; band++) {
        #pragma unroll
        for (u32 half = 0; half < 2; half++) {
            float total = sum_of_row(softmax.totals[band][half]);
            u32 row = first + row_of<HEAD>(band, half);
            if (row < length && lane() % 4 == 0) {
                log_sums[size_t(blockIdx.x) * length + row] = softmax.maxima[band][half] * factor + log2f(total);
            }
            reciprocals[band][half] = 1 / total;
        }
    }
    store_rows<HEAD>(result, reciprocals, shared_memory + 2 * S::TILE_BYTES, context + of_head, width, first, length);
}

KERNEL attention_64(const u16* qkv, u16* context, float* log_sums, u32 length, float scale, u32 is_causal)
{
    attention<64>(qkv, context, log_sums, length, scale, is_causal);
}

// nvrtc: --gpu-architecture=compute_80 --std=c++17
//
// Fused attention: the backward pass of FlashAttention-2, in two kernels that need no atomic operation, so that results do not vary. One
// computes the gradients of queries, and the other those of keys and values; each computes the probabilities again.

#include "attention.cuh"

// Returns the sum of the products of two pairs.
__device__ float product_of_pairs(u32 a, u32 b)
{
    float high = __uint_as_float(a & 0xffff0000) * __uint_as_float(b & 0xffff0000);
    return __uint_as_float(a << 16) * __uint_as_float(b << 16) + high;
}

// Returns the product of a row of each of two operands.
template <u32 HEAD>
__device__ float product_of_rows(const Rows<HEAD>& a, const Rows<HEAD>& b, u32 band, u32 half)
{
    float product = 0;
    #pragma unroll
    for (u32 step = 0; step < Sizes<HEAD>::STEPS; step++) {
        product += product_of_pairs(a.of[band][step][half], b.of[band][step][half]);
        product += product_of_pairs(a.of[band][step][2 + half], b.of[band][step][2 + half]);
    }
    return sum_of_row(product);
}

// The gradients of queries, and for each row the product of the context and its gradient, which the gradients of keys depend on too.
template <u32 HEAD>
__device__ void backward_queries(const u16* qkv, const u16* context, const u16* dy, const float* log_sums, float* deltas, u16* gradients,
    u32 length, float scale, u32 is_causal)
{
    using S = Sizes<HEAD>;
    constexpr u32 KEYS = S::STREAMED;
    u32 of_head = blockIdx.x * HEAD, width = gridDim.x * HEAD, stride = 3 * width;
    const u16* queries = qkv + 3 * of_head;
    // With a causal mask, the last tiles have the most work.
    u32 first = (gridDim.y - 1 - blockIdx.y) * S::ROWS, first_of_warp = first + threadIdx.x / LANES * S::ROWS_OF_WARP;
    u32 end = visible(first + S::ROWS - 1, length, is_causal), end_of_warp = visible(first_of_warp + S::ROWS_OF_WARP - 1, length, is_causal);
    u32 stages = address_of_shared(), resident = stages + 2 * S::TILE_BYTES;

    copy_rows<HEAD, S::ROWS>(resident, queries, stride, first, length);
    copy_rows<HEAD, S::ROWS>(stages, dy + of_head, width, first, length);
    copy_rows<HEAD, S::ROWS>(stages + S::TILE_BYTES, context + of_head, width, first, length);
    wait_for_copies();
    Rows<HEAD> rows, of_context;
    load_rows<HEAD>(rows, stages + S::TILE_BYTES);
    load_rows<HEAD>(of_context, stages);
    float logs[S::BANDS][2], means[S::BANDS][2], scales[S::BANDS][2];
    #pragma unroll
    for (u32 band = 0; band < S::BANDS; band++) {
        #pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 row = first + row_of<HEAD>(band, half);
            size_t place = size_t(blockIdx.x) * length + row;
            scales[band][half] = scale;
            means[band][half] = product_of_rows<HEAD>(rows, of_context, band, half);
            logs[band][half] = row < length ? log_sums[place] : 0;
            if (row < length && lane() % 4 == 0) {
                deltas[place] = means[band][half];
            }
        }
    }
    load_rows<HEAD>(rows, resident);
    // All warps have read the stages.
    __syncthreads();

    auto copy = [&](u32 key) {
        u32 stage = stages + key / KEYS % 2 * S::TILE_BYTES;
        copy_rows<HEAD, KEYS>(stage, queries + HEAD, stride, key, length);
        copy_rows<HEAD, KEYS>(stage + S::STREAMED_BYTES, queries + 2 * HEAD, stride, key, length);
    };
    copy(0);
    float factor = scale * LOG2_E;
    Sums<HEAD, HEAD> result = {};
    for (u32 first_key = 0; first_key < end; first_key += KEYS) {
        wait_for_copies();
        if (first_key + KEYS < end) {
            copy(first_key + KEYS);
        }
        #pragma unroll 1
        for (u32 key = first_key; key < min(first_key + KEYS, end_of_warp); key += SIDE) {
            u32 keys = stages + first_key / KEYS % 2 * S::TILE_BYTES + (key - first_key) * S::ROW_BYTES;
            Sums<HEAD, SIDE> scores = {}, slopes = {};
            add_products<HEAD, SIDE>(scores, rows, keys);
            add_products<HEAD, SIDE>(slopes, of_context, keys + S::STREAMED_BYTES);
            bool is_masked = key + SIDE > visible(first_of_warp, length, is_causal);
            u32 weights[S::BANDS][4];
            #pragma unroll
            for (u32 band = 0; band < S::BANDS; band++) {
                #pragma unroll
                for (u32 index = 0; index < 8; index++) {
                    u32 half = index / 4, group = index / 2 % 2, element = 2 * half + index % 2;
                    i32 end_of_row = i32(visible(first + row_of<HEAD>(band, half), length, is_causal)) - i32(key + column_of_lane());
                    float& score = scores.of[band][group][element];
                    score = power_of_two(score * factor - logs[band][half]);
                    if (is_masked && i32(group * 8 + index % 2) >= end_of_row) {
                        score = 0;
                    }
                    score *= slopes.of[band][group][element] - means[band][half];
                }
                to_operand(weights[band], scores.of[band][0], scores.of[band][1]);
            }
            add_weighted<HEAD>(result, weights, keys);
        }
    }
    store_rows<HEAD>(result, scales, shared_memory + 2 * S::TILE_BYTES, gradients + 3 * of_head, stride, first, length);
}

// The gradients of keys and values. Scores are transposed: a row for each key, and a column for each query. Queries after the end of the
// sequence are zeros, as are the gradients of their context, and add nothing.
template <u32 HEAD>
__device__ void backward_keys(const u16* qkv, const u16* dy, const float* log_sums, const float* deltas, u16* gradients, u32 length,
    float scale, u32 is_causal)
{
    using S = Sizes<HEAD>;
    constexpr u32 QUERIES = S::STREAMED;
    u32 of_head = blockIdx.x * HEAD, width = gridDim.x * HEAD, stride = 3 * width;
    const u16* queries = qkv + 3 * of_head;
    u32 first = blockIdx.y * S::ROWS, first_of_warp = first + threadIdx.x / LANES * S::ROWS_OF_WARP;
    u32 stages = address_of_shared(), resident = stages + 2 * S::TILE_BYTES, statistics = resident + 2 * S::TILE_BYTES;

    auto copy = [&](u32 query) {
        u32 index = query / QUERIES % 2, stage = stages + index * S::TILE_BYTES;
        copy_rows<HEAD, QUERIES>(stage, queries, stride, query, length);
        copy_rows<HEAD, QUERIES>(stage + S::STREAMED_BYTES, dy + of_head, width, query, length);
        u32 row = query + threadIdx.x % QUERIES;
        if (threadIdx.x < 2 * QUERIES) {
            const float* from = threadIdx.x < QUERIES ? log_sums : deltas;
            size_t place = size_t(blockIdx.x) * length + (row < length ? row : 0);
            copy_async(statistics + (index * 2 * QUERIES + threadIdx.x) * sizeof(float), from + place, row < length);
        }
    };
    u32 begin = is_causal ? first : 0;
    copy_rows<HEAD, S::ROWS>(resident, queries + HEAD, stride, first, length);
    copy_rows<HEAD, S::ROWS>(resident + S::TILE_BYTES, queries + 2 * HEAD, stride, first, length);
    copy(begin);
    wait_for_copies();
    Rows<HEAD> keys, values;
    load_rows<HEAD>(keys, resident);
    load_rows<HEAD>(values, resident + S::TILE_BYTES);

    float factor = scale * LOG2_E;
    Sums<HEAD, HEAD> key_sums = {}, value_sums = {};
    for (u32 first_query = begin; first_query < length; first_query += QUERIES) {
        wait_for_copies();
        if (first_query + QUERIES < length) {
            copy(first_query + QUERIES);
        }
        u32 index_of_stage = first_query / QUERIES % 2;
        #pragma unroll 1
        for (u32 step = 0; step < QUERIES; step += SIDE) {
            u32 query = first_query + step, tile = stages + index_of_stage * S::TILE_BYTES + step * S::ROW_BYTES;
            if (is_causal && query + SIDE <= first_of_warp) {
                continue;
            }
            Sums<HEAD, SIDE> scores = {}, slopes = {};
            add_products<HEAD, SIDE>(scores, keys, tile);
            add_products<HEAD, SIDE>(slopes, values, tile + S::STREAMED_BYTES);
            bool is_masked = is_causal && query < first_of_warp + S::ROWS_OF_WARP;
            const float* logs = reinterpret_cast<const float*>(shared_memory + 4 * S::TILE_BYTES)
                + index_of_stage * 2 * QUERIES + step + column_of_lane();
            u32 probabilities[S::BANDS][4], weights[S::BANDS][4];
            #pragma unroll
            for (u32 band = 0; band < S::BANDS; band++) {
                #pragma unroll
                for (u32 index = 0; index < 8; index++) {
                    u32 group = index / 4, half = index / 2 % 2, column = group * 8 + index % 2;
                    i32 begin_of_row = i32(first + row_of<HEAD>(band, half)) - i32(query + column_of_lane());
                    float& score = scores.of[band][group][index % 4];
                    float& slope = slopes.of[band][group][index % 4];
                    score = power_of_two(score * factor - logs[column]);
                    if (is_masked && i32(column) < begin_of_row) {
                        score = 0;
                    }
                    slope = score * (slope - logs[QUERIES + column]);
                }
                to_operand(probabilities[band], scores.of[band][0], scores.of[band][1]);
                to_operand(weights[band], slopes.of[band][0], slopes.of[band][1]);
            }
            add_weighted<HEAD>(value_sums, probabilities, tile + S::STREAMED_BYTES);
            add_weighted<HEAD>(key_sums, weights, tile);
        }
    }
    float scales[S::BANDS][2], ones[S::BANDS][2];
    #pragma unroll
    for (u32 row = 0; row < 2 * S::BANDS; row++) {
        scales[row / 2][row % 2] = scale;
        ones[row / 2][row % 2] = 1;
    }
    gradients += 3 * of_head;
    store_rows<HEAD>(key_sums, scales, shared_memory + 2 * S::TILE_BYTES, gradients + HEAD, stride, first, length);
    store_rows<HEAD>(value_sums, ones, shared_memory + 3 * S::TILE_BYTES, gradients + 2 * HEAD, stride, first, length);
}

KERNEL attention_backward_queries_64(const u16* qkv, const u16* context, const u16* dy, const float* log_sums, float* deltas,
    u16* gradients, u32 length, float scale, u32 is_causal)
{
    backward_queries<64>(qkv, context, dy, log_sums, deltas, gradients, length, scale, is_causal);
}

KERNEL attention_backward_keys_64(const u16* qkv, const u16* dy, const float* log_sums, const float* deltas, u16* gradients,
    u32 length, float scale, u32 is_causal)
{
    backward_keys<64>(qkv, dy, log_sums, deltas, gradients, length, scale, is_causal);
}

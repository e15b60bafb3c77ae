//! Conversions of rows of f16, eight at a time, with the F16C instructions of x86.

use std::arch::x86_64::{
    __m128i, __m256, __m256i, _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT, _mm_packus_epi32,
    _mm256_and_si256, _mm256_blendv_ps, _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmp_ps,
    _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_extracti128_si256,
    _mm256_set_m128i, _mm256_set1_epi32,
};
use std::mem::transmute;

use crate::exec::values::lane::LANES;
use crate::exec::values::narrow_rows::NUMBERS;

/// The number of f32 in a vector.
const VECTOR_LANES: usize = 8;

/// Returns the values in the lower halves of a row.
#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn widen(row: &[u32; LANES]) -> [f32; LANES] {
    let mut values = [0.0; LANES];
    for (values, words) in values
        .as_chunks_mut::<VECTOR_LANES>()
        .0
        .iter_mut()
        .zip(row.as_chunks::<VECTOR_LANES>().0)
    {
        let low = _mm256_and_si256(load(words), _mm256_set1_epi32(0xffff));
        let halves = _mm_packus_epi32(
            _mm256_castsi256_si128(low),
            _mm256_extracti128_si256::<1>(low),
        );
        store_values(values, _mm256_cvtph_ps(halves));
    }
    values
}

/// Returns a row with the nearest f16 in its lower halves.
#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn narrow(values: &[f32; LANES]) -> [u32; LANES] {
    let mut row = [0; LANES];
    for (words, values) in row
        .as_chunks_mut::<VECTOR_LANES>()
        .0
        .iter_mut()
        .zip(values.as_chunks::<VECTOR_LANES>().0)
    {
        store(words, _mm256_cvtepu16_epi32(nearest(values)));
    }
    row
}

/// Returns the values of a row of pairs, the lower one of each first.
#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn widen_pairs(row: &[u32; LANES]) -> [f32; NUMBERS] {
    let mut values = [0.0; NUMBERS];
    for (values, words) in values
        .as_chunks_mut::<{ 2 * VECTOR_LANES }>()
        .0
        .iter_mut()
        .zip(row.as_chunks::<VECTOR_LANES>().0)
    {
        let halves = load(words);
        let parts = [
            _mm256_castsi256_si128(halves),
            _mm256_extracti128_si256::<1>(halves),
        ];
        for (values, part) in values
            .as_chunks_mut::<VECTOR_LANES>()
            .0
            .iter_mut()
            .zip(parts)
        {
            store_values(values, _mm256_cvtph_ps(part));
        }
    }
    values
}

/// Returns the values of four pairs, the lower one of each first.
#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn octet(pairs: [u32; VECTOR_LANES / 2]) -> [f32; VECTOR_LANES] {
    // SAFETY: both types are 16 bytes and valid for every bit pattern.
    let halves = unsafe { transmute::<[u32; VECTOR_LANES / 2], __m128i>(pairs) };
    let mut values = [0.0; VECTOR_LANES];
    store_values(&mut values, _mm256_cvtph_ps(halves));
    values
}

/// Returns the row of pairs of the nearest f16.
#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn narrow_pairs(values: &[f32; NUMBERS]) -> [u32; LANES] {
    let mut row = [0; LANES];
    for (words, values) in row
        .as_chunks_mut::<VECTOR_LANES>()
        .0
        .iter_mut()
        .zip(values.as_chunks::<{ 2 * VECTOR_LANES }>().0)
    {
        let [low, high] = values.as_chunks::<VECTOR_LANES>().0 else {
            continue;
        };
        store(words, _mm256_set_m128i(nearest(high), nearest(low)));
    }
    row
}

/// Returns the nearest f16. A NaN becomes the canonical NaN.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn nearest(values: &[f32; VECTOR_LANES]) -> __m128i {
    // SAFETY: both types are 32 bytes and valid for every bit pattern.
    let values = unsafe { transmute::<[f32; VECTOR_LANES], __m256>(*values) };
    let nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fff_ffff));
    let is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(values, values);
    _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_blendv_ps(values, nan, is_nan))
}

#[inline(always)]
fn load(words: &[u32; VECTOR_LANES]) -> __m256i {
    // SAFETY: both types are 32 bytes and valid for every bit pattern.
    unsafe { transmute::<[u32; VECTOR_LANES], __m256i>(*words) }
}

#[inline(always)]
fn store(words: &mut [u32; VECTOR_LANES], vector: __m256i) {
    // SAFETY: both types are 32 bytes and valid for every bit pattern.
    *words = unsafe { transmute::<__m256i, [u32; VECTOR_LANES]>(vector) };
}

#[inline(always)]
fn store_values(values: &mut [f32; VECTOR_LANES], vector: __m256) {
    // SAFETY: both types are 32 bytes and valid for every bit pattern.
    *values = unsafe { transmute::<__m256, [f32; VECTOR_LANES]>(vector) };
}

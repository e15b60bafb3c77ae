//! The loops over the terms of aligned sums, with AVX2: eight neighboring sums at a time.
//!
//! The compiler would vectorize the plain loops over the terms instead of the sums.

use std::arch::x86_64::{
    __m256, __m256i, _mm256_add_epi32, _mm256_cvttps_epi32, _mm256_max_epi32, _mm256_mul_ps, _mm256_set1_epi32,
    _mm256_set1_ps, _mm256_setzero_si256,
};
use std::mem::transmute;

use super::Block;

/// Returns the largest of `tops` and the exponents of the terms.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn highest(left: &[i32], right: &[Block<i32>], tops: Block<i32>) -> Block<i32> {
    let mut highest = integers(tops);
    for (&left, &right) in left.iter().zip(right) {
        highest = _mm256_max_epi32(highest, _mm256_add_epi32(_mm256_set1_epi32(left), integers(right)));
    }
    of_integers(highest)
}

/// Returns the sums of the scaled and truncated products.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn sums(a: &[f32], b: &[Block<f32>], scales: Block<f32>) -> Block<i32> {
    let (scales, mut sums) = (singles(scales), _mm256_setzero_si256());
    for (&a, &b) in a.iter().zip(b) {
        let scaled = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(a), singles(b)), scales);
        sums = _mm256_add_epi32(sums, _mm256_cvttps_epi32(scaled));
    }
    of_integers(sums)
}

#[inline(always)]
fn singles(block: Block<f32>) -> __m256 {
    // SAFETY: both types are 32 bytes of which any are a value.
    unsafe { transmute::<Block<f32>, __m256>(block) }
}

#[inline(always)]
fn integers(block: Block<i32>) -> __m256i {
    // SAFETY: as for `singles`.
    unsafe { transmute::<Block<i32>, __m256i>(block) }
}

#[inline(always)]
fn of_integers(vector: __m256i) -> Block<i32> {
    // SAFETY: as for `singles`.
    unsafe { transmute::<__m256i, Block<i32>>(vector) }
}

//! Aligned sums with AVX2: eight neighboring sums at a time, of several rows.
//!
//! The compiler would vectorize the plain loops over the terms instead of the sums, and load the
//! factors of B for each row.

use std::arch::x86_64::{
    __m256, __m256i, _MM_FROUND_TO_NEAREST_INT, _mm256_abs_epi32, _mm256_add_epi32,
    _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_epi8, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpgt_epi32, _mm256_cvtepi32_ps,
    _mm256_cvtepu16_epi32, _mm256_cvtps_ph, _mm256_cvttps_epi32, _mm256_max_epi32,
    _mm256_max_epu32, _mm256_min_epu32, _mm256_mul_ps, _mm256_or_si256, _mm256_set1_epi32,
    _mm256_set1_ps, _mm256_setzero_si256, _mm256_slli_epi32, _mm256_srli_epi32, _mm256_sub_epi32,
    _mm256_testc_si256,
};
use std::mem::transmute;

use crate::exec::matrix::fixed_point::{
    ADDEND_EXPONENTS, BIAS, Block, LOWEST, MAX_PRODUCT_SUM, Terms, ZERO_EXPONENT,
};
use crate::exec::matrix::rounding::{NEGATIVE_ZERO, Rounding};

/// See [`crate::exec::matrix::fixed_point::add_rows`].
#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn add_rows<const N: usize>(
    a: Terms<'_, f32, i32>,
    b: Terms<'_, Block<f32>, Block<i32>>,
    addends: &[Block<f32>],
    step: usize,
    rounding: Rounding,
    results: &mut [Block<u32>],
) -> bool {
    let inner = b.factors.len();
    // The compiler omits the checks of indices where it knows that lengths are equal.
    let b = b.part(0, inner);
    let mut factors: [&[f32]; N] = [&[]; N];
    let mut exponents: [&[i32]; N] = [&[]; N];
    for row in 0..N {
        let a = a.part(row * inner, inner);
        factors[row] = a.factors;
        exponents[row] = a.exponents;
    }
    // As an unsigned number, the exponent of zeros is above all others.
    let mut lowest = _mm256_set1_epi32(-1);
    let mut highest = _mm256_set1_epi32(ZERO_EXPONENT);
    let mut tops = [_mm256_set1_epi32(LOWEST); N];
    for row in 0..N {
        let exponents = block_exponents(singles(&addends[row * step]), rounding.least[2]);
        lowest = _mm256_min_epu32(lowest, exponents);
        highest = _mm256_max_epi32(highest, exponents);
        tops[row] = _mm256_max_epi32(
            tops[row],
            _mm256_add_epi32(exponents, _mm256_set1_epi32(BIAS)),
        );
    }
    let min = _mm256_set1_epi32(ADDEND_EXPONENTS.start() + BIAS);
    let max = _mm256_set1_epi32(ADDEND_EXPONENTS.end() + BIAS);
    let are_moderate = _mm256_and_si256(
        _mm256_cmpeq_epi32(_mm256_max_epu32(lowest, min), lowest),
        _mm256_cmpeq_epi32(_mm256_max_epi32(highest, max), max),
    );
    for (number, right) in b.exponents.iter().enumerate() {
        let right = integers(right);
        for row in 0..N {
            let exponent = _mm256_add_epi32(_mm256_set1_epi32(exponents[row][number]), right);
            tops[row] = _mm256_max_epi32(tops[row], exponent);
        }
    }
    let mut scales = [_mm256_castsi256_ps(_mm256_setzero_si256()); N];
    for row in 0..N {
        scales[row] = power(_mm256_sub_epi32(
            _mm256_set1_epi32(rounding.fraction + 3 * BIAS),
            tops[row],
        ));
    }
    let mut sums = [_mm256_setzero_si256(); N];
    for (number, right) in b.factors.iter().enumerate() {
        let right = singles(right);
        for row in 0..N {
            let product = _mm256_mul_ps(_mm256_set1_ps(factors[row][number]), right);
            let scaled = _mm256_cvttps_epi32(_mm256_mul_ps(product, scales[row]));
            sums[row] = _mm256_add_epi32(sums[row], scaled);
        }
    }
    let largest = _mm256_set1_epi32(MAX_PRODUCT_SUM);
    let mut sizes = largest;
    for row in 0..N {
        sizes = _mm256_max_epu32(sizes, _mm256_abs_epi32(sums[row]));
        let addend = _mm256_mul_ps(singles(&addends[row * step]), scales[row]);
        sums[row] = _mm256_add_epi32(sums[row], _mm256_cvttps_epi32(addend));
    }
    for row in 0..N {
        let unit = power(_mm256_sub_epi32(
            tops[row],
            _mm256_set1_epi32(rounding.fraction + BIAS),
        ));
        store(&mut results[row * step], rounded(rounding, sums[row], unit));
    }
    let are_usual = _mm256_and_si256(are_moderate, _mm256_cmpeq_epi32(sizes, largest));
    _mm256_testc_si256(are_usual, _mm256_set1_epi32(-1)) == 1
}

/// See [`crate::exec::matrix::fixed_point::exponents`].
#[target_feature(enable = "avx2")]
#[inline]
fn block_exponents(values: __m256, least: i32) -> __m256i {
    let bits = _mm256_slli_epi32::<1>(_mm256_castps_si256(values));
    let exponents = _mm256_max_epi32(
        _mm256_srli_epi32::<24>(bits),
        _mm256_set1_epi32(least + BIAS),
    );
    let are_zeros = _mm256_cmpeq_epi32(bits, _mm256_setzero_si256());
    _mm256_blendv_epi8(exponents, _mm256_set1_epi32(ZERO_EXPONENT), are_zeros)
}

/// See [`Rounding::round_aligned`].
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn rounded(rounding: Rounding, sums: __m256i, units: __m256) -> __m256i {
    let nearest = _mm256_cvtepi32_ps(sums);
    let integers = _mm256_abs_epi32(_mm256_cvttps_epi32(nearest));
    let sizes = _mm256_abs_epi32(sums);
    let truncated = _mm256_add_epi32(
        _mm256_castps_si256(nearest),
        _mm256_cmpgt_epi32(integers, sizes),
    );
    let cut = if rounding.is_half {
        let is_exact = _mm256_cmpeq_epi32(integers, sizes);
        _mm256_or_si256(
            truncated,
            _mm256_andnot_si256(is_exact, _mm256_set1_epi32(1)),
        )
    } else {
        _mm256_and_si256(truncated, _mm256_set1_epi32(!rounding.discarded_bits()))
    };
    let singles = _mm256_mul_ps(_mm256_castsi256_ps(cut), units);
    if !rounding.is_half {
        return _mm256_castps_si256(singles);
    }
    let halves = _mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(singles));
    let is_zero = _mm256_cmpeq_epi32(halves, _mm256_set1_epi32(NEGATIVE_ZERO.cast_signed()));
    _mm256_andnot_si256(is_zero, halves)
}

/// Returns powers of two from the bits of their exponents.
#[target_feature(enable = "avx2")]
#[inline]
fn power(exponents: __m256i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponents))
}

#[inline(always)]
fn singles(block: &Block<f32>) -> __m256 {
    // SAFETY: both types are 32 bytes and valid for every bit pattern.
    unsafe { transmute::<Block<f32>, __m256>(*block) }
}

#[inline(always)]
fn integers(block: &Block<i32>) -> __m256i {
    // SAFETY: both types are 32 bytes and valid for every bit pattern.
    unsafe { transmute::<Block<i32>, __m256i>(*block) }
}

#[inline(always)]
fn store(block: &mut Block<u32>, vector: __m256i) {
    // SAFETY: both types are 32 bytes and valid for every bit pattern.
    *block = unsafe { transmute::<__m256i, Block<u32>>(vector) };
}

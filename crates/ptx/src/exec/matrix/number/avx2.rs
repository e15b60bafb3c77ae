//! Transposition with AVX2.

use std::arch::x86_64::{
    __m128, __m256, _mm256_castpd_ps, _mm256_castps_pd, _mm256_set_m128, _mm256_unpackhi_pd,
    _mm256_unpackhi_ps, _mm256_unpacklo_pd, _mm256_unpacklo_ps,
};
use std::mem::transmute;

use crate::exec::matrix::{OCTET, QUAD};

/// Transposes eight rows of four numbers.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn transpose(rows: &[[f32; QUAD]; OCTET]) -> [[f32; OCTET]; QUAD] {
    let a = _mm256_set_m128(load(&rows[4]), load(&rows[0]));
    let b = _mm256_set_m128(load(&rows[5]), load(&rows[1]));
    let c = _mm256_set_m128(load(&rows[6]), load(&rows[2]));
    let d = _mm256_set_m128(load(&rows[7]), load(&rows[3]));
    // Two neighboring columns of the rows in `a` and `b`, and of those in `c` and `d`.
    let low_ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
    let low_cd = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
    let high_ab = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
    let high_cd = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
    store([
        _mm256_castpd_ps(_mm256_unpacklo_pd(low_ab, low_cd)),
        _mm256_castpd_ps(_mm256_unpackhi_pd(low_ab, low_cd)),
        _mm256_castpd_ps(_mm256_unpacklo_pd(high_ab, high_cd)),
        _mm256_castpd_ps(_mm256_unpackhi_pd(high_ab, high_cd)),
    ])
}

#[inline(always)]
fn load(row: &[f32; QUAD]) -> __m128 {
    // SAFETY: both types are 16 bytes and valid for every bit pattern.
    unsafe { transmute::<[f32; QUAD], __m128>(*row) }
}

#[inline(always)]
fn store(columns: [__m256; QUAD]) -> [[f32; OCTET]; QUAD] {
    // SAFETY: both types are 128 bytes and valid for every bit pattern.
    unsafe { transmute::<[__m256; QUAD], [[f32; OCTET]; QUAD]>(columns) }
}

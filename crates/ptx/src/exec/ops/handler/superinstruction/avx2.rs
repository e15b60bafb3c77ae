//! The values of a register of f32, in vectors of AVX2.

use std::arch::x86_64::{
    __m256, _CMP_UNORD_Q, _mm256_add_ps, _mm256_blendv_ps, _mm256_castsi256_ps, _mm256_cmp_ps,
    _mm256_fmadd_ps, _mm256_i32gather_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_mullo_epi32,
    _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_epi32, _mm256_setzero_ps, _mm256_sub_ps,
};
use std::mem::transmute;

use crate::exec::values::lane::LANES;

/// The number of values in a vector.
const VECTOR_LANES: usize = 8;
/// The number of vectors.
const VECTORS: usize = LANES / VECTOR_LANES;

/// A value for each lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values([__m256; VECTORS]);

impl Values {
    /// Returns zero for each lane.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn zero() -> Self {
        Self([_mm256_setzero_ps(); VECTORS])
    }

    /// Returns the values of a row.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn from_row(row: &[u32; LANES]) -> Self {
        // SAFETY: both types have the same size, and any bytes are a value.
        Self(unsafe { transmute::<[u32; LANES], [__m256; VECTORS]>(*row) })
    }

    /// Writes the values to a row.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn write_to(self, row: &mut [u32; LANES]) {
        // SAFETY: both types have the same size, and any bytes are a value.
        *row = unsafe { transmute::<[__m256; VECTORS], [u32; LANES]>(self.0) };
    }

    /// Reads the values of both halves of a warp, whose lanes are `stride` bytes apart.
    ///
    /// # Safety
    ///
    /// The pointers are valid for reads at the distances of their lanes.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) unsafe fn load(starts: [*const f32; 2], stride: u64) -> Self {
        match stride {
            0 => {
                // SAFETY: the caller guarantees the value of each half.
                let [low, high] = starts.map(|start| unsafe { start.read() });
                let low = _mm256_set1_ps(low);
                let high = _mm256_set1_ps(high);
                Self([low, low, high, high])
            }
            4 => {
                let [low, high] = starts;
                let vectors = [
                    low,
                    low.wrapping_add(VECTOR_LANES),
                    high,
                    high.wrapping_add(VECTOR_LANES),
                ];
                // SAFETY: the caller guarantees the values of all lanes.
                Self(vectors.map(|start| unsafe { _mm256_loadu_ps(start) }))
            }
            stride => {
                let lanes = _mm256_mullo_epi32(
                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                    _mm256_set1_epi32(stride as i32),
                );
                let half = VECTOR_LANES * stride as usize;
                let [low, high] = starts;
                let vectors = [
                    low,
                    low.wrapping_byte_add(half),
                    high,
                    high.wrapping_byte_add(half),
                ];
                // SAFETY: the caller guarantees the values of all lanes; the lanes of a vector are
                // `stride` bytes apart.
                Self(vectors.map(|start| unsafe { _mm256_i32gather_ps::<1>(start, lanes) }))
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|index| {
            _mm256_add_ps(self.0[index], other.0[index])
        }))
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn subtract(self, other: Self) -> Self {
        Self(std::array::from_fn(|index| {
            _mm256_sub_ps(self.0[index], other.0[index])
        }))
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn multiply(self, other: Self) -> Self {
        Self(std::array::from_fn(|index| {
            _mm256_mul_ps(self.0[index], other.0[index])
        }))
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn multiply_add(self, factor: Self, addend: Self) -> Self {
        Self(std::array::from_fn(|index| {
            _mm256_fmadd_ps(self.0[index], factor.0[index], addend.0[index])
        }))
    }

    /// Replaces each NaN by the canonical one.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn canonical(self) -> Self {
        let nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fff_ffff));
        Self(self.0.map(|values| {
            _mm256_blendv_ps(values, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(values, values))
        }))
    }
}

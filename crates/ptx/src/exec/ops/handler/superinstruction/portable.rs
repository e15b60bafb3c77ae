//! The values of a register of f32, in an array.

use std::array::from_fn;

use crate::exec::values::float::canonical;
use crate::exec::values::fused::Fused as _;
use crate::exec::values::lane::{HALF, LANES};

/// A value for each lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values([f32; LANES]);

impl Values {
    /// Returns zero for each lane.
    #[inline(always)]
    pub(super) fn zero() -> Self {
        Self([0.0; LANES])
    }

    /// Returns the values of a row.
    #[inline(always)]
    pub(super) fn from_row(row: &[u32; LANES]) -> Self {
        Self(row.map(f32::from_bits))
    }

    /// Writes the values to a row.
    #[inline(always)]
    pub(super) fn write_to(self, row: &mut [u32; LANES]) {
        *row = self.0.map(f32::to_bits);
    }

    /// Reads the values of both halves of a warp, whose lanes are `stride` bytes apart.
    ///
    /// # Safety
    ///
    /// The pointers are valid for reads at the distances of their lanes.
    #[inline(always)]
    pub(super) unsafe fn load(starts: [*const f32; 2], stride: u64) -> Self {
        Self(from_fn(|lane| {
            let pointer = starts[lane / HALF].wrapping_byte_add(lane % HALF * stride as usize);
            // SAFETY: the caller guarantees that the pointers of all lanes are valid for reads.
            unsafe { pointer.read() }
        }))
    }

    #[inline(always)]
    pub(super) fn add(self, other: Self) -> Self {
        Self(from_fn(|lane| self.0[lane] + other.0[lane]))
    }

    #[inline(always)]
    pub(super) fn subtract(self, other: Self) -> Self {
        Self(from_fn(|lane| self.0[lane] - other.0[lane]))
    }

    #[inline(always)]
    pub(super) fn multiply(self, other: Self) -> Self {
        Self(from_fn(|lane| self.0[lane] * other.0[lane]))
    }

    #[inline(always)]
    pub(super) fn multiply_add(self, factor: Self, addend: Self) -> Self {
        Self(from_fn(|lane| {
            self.0[lane].fused(factor.0[lane], addend.0[lane])
        }))
    }

    /// Replaces each NaN by the canonical one.
    #[inline(always)]
    pub(super) fn canonical(self) -> Self {
        Self(self.0.map(canonical))
    }
}

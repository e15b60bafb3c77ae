//! Matrix products of warps on tensor cores.

use crate::intrinsics as device;
use crate::ptx;
use crate::warp::{ALL, Lanes, WHOLE_WARP, Warp};

/// Declares products of matrices whose elements have 16 bits.
macro_rules! products {
    ($($(#[$attribute:meta])* $name:ident = $instruction:literal;)*) => {
        impl Warp {
            $(
                $(#[$attribute])*
                #[doc(alias = "mma.sync")]
                #[inline(always)]
                pub fn $name(
                    &self,
                    a: &Lanes<[u32; 4]>,
                    b: &Lanes<[u32; 2]>,
                    accumulators: &mut Lanes<[f32; 4]>,
                ) {
                    let [a0, a1, a2, a3] = a.0;
                    let [b0, b1] = b.0;
                    let [c0, c1, c2, c3] = accumulators.0;
                    let [mut d0, mut d1, mut d2, mut d3] = [0.0_f32; 4];
                    // SAFETY: all lanes of the warp get here.
                    unsafe {
                        ptx!(
                            $instruction,
                            out(f) d0, out(f) d1, out(f) d2, out(f) d3,
                            in(r) a0, in(r) a1, in(r) a2, in(r) a3, in(r) b0, in(r) b1, in(f) c0, in(f) c1, in(f) c2, in(f) c3
                        );
                    }
                    accumulators.0 = [d0, d1, d2, d3];
                }
            )*
        }
    };
}

products! {
    /// Adds the product of two bfloat16 matrices of 16 × 16 and 16 × 8 elements to `accumulators`,
    /// in the fragments of `mma.m16n8k16`. Needs compute capability 8.0.
    mma_bf16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}}}, {{{8}, {9}}}, {{{10}, {11}, {12}, {13}}};";
    /// Adds the product of two binary16 matrices of 16 × 16 and 16 × 8 elements to `accumulators`,
    /// in the fragments of `mma.m16n8k16`. Needs compute capability 8.0.
    mma_f16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}}}, {{{8}, {9}}}, {{{10}, {11}, {12}, {13}}};";
}

impl Warp {
    /// Combines the values of the four lanes that have the same rows of a fragment of accumulators.
    /// The four can combine in different orders, so their results can differ in rounding.
    #[inline(always)]
    pub fn reduce_fragment_rows(
        &self,
        values: &Lanes<[f32; 2]>,
        combine: impl Fn(f32, f32) -> f32 + Sync,
    ) -> Lanes<[f32; 2]> {
        let mut result = values.0;
        for mask in [1, 2] {
            for value in &mut result {
                // SAFETY: all lanes get here.
                let other = unsafe { device::shuffle_xor(ALL, value.to_bits(), mask, WHOLE_WARP) };
                *value = combine(*value, f32::from_bits(other));
            }
        }
        Lanes(result)
    }
}

/// Packs two numbers, rounded to bfloat16, with `low` in the low bits. Needs compute capability
/// 8.0.
#[inline(always)]
#[must_use]
pub fn pack_bf16(low: f32, high: f32) -> u32 {
    let mut pair = 0_u32;
    // SAFETY: the result depends on the operands only.
    unsafe { ptx!("cvt.rn.bf16x2.f32 {0}, {1}, {2};", out(r) pair, in(f) high, in(f) low, pure) };
    pair
}

/// Packs two numbers, rounded to binary16, with `low` in the low bits. Needs compute capability
/// 8.0.
#[inline(always)]
#[must_use]
pub fn pack_f16(low: f32, high: f32) -> u32 {
    let mut pair = 0_u32;
    // SAFETY: the result depends on the operands only.
    unsafe { ptx!("cvt.rn.f16x2.f32 {0}, {1}, {2};", out(r) pair, in(f) high, in(f) low, pure) };
    pair
}

/// Returns the two bfloat16 numbers of a pair, the low bits first.
#[inline(always)]
#[must_use]
pub fn unpack_bf16(pair: u32) -> [f32; 2] {
    [
        f32::from_bits(pair << 16),
        f32::from_bits(pair & 0xffff_0000),
    ]
}

/// Returns the two binary16 numbers of a pair, the low bits first.
#[inline(always)]
#[must_use]
pub fn unpack_f16(pair: u32) -> [f32; 2] {
    let low_bits = pair as u16;
    let high_bits = (pair >> 16) as u16;
    let mut low = 0.0_f32;
    let mut high = 0.0_f32;
    // SAFETY: the result depends on the operand only.
    unsafe { ptx!("cvt.f32.f16 {0}, {1};", out(f) low, in(h) low_bits, pure) };
    // SAFETY: the result depends on the operand only.
    unsafe { ptx!("cvt.f32.f16 {0}, {1};", out(f) high, in(h) high_bits, pure) };
    [low, high]
}

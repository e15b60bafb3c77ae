//! FP8, and functions of pairs of bfloat16.

use curium_kernel::prelude::*;
use curium_kernel::{Bf16x2, E4m3x2, E5m2x2, F16x2};

/// Conversions by instructions: to FP8, to FP8 from binary16, and back.
#[kernel]
pub fn fp8(
    t: Thread,
    x: &[F32x2],
    mut codes: PerThreadChunk<u16, 4>,
    mut back: PerThreadChunk<u32, 2>,
) {
    let Some(x) = x.get(t.index()) else { return };
    let half = F16x2::new(x.x, x.y);
    let e4m3 = E4m3x2::new_sm89(x.x, x.y);
    let e5m2 = E5m2x2::new_sm89(x.x, x.y);
    codes.get(&t).copy_from_slice(&[
        e4m3.to_bits(),
        e5m2.to_bits(),
        E4m3x2::from_f16x2_sm89(half).to_bits(),
        E5m2x2::from_f16x2_sm89(half).to_bits(),
    ]);
    back.get(&t).copy_from_slice(&[
        e4m3.to_f16x2_sm89().to_bits(),
        e5m2.to_f16x2_sm89().to_bits(),
    ]);
}

/// Approximate functions of pairs of bfloat16.
#[kernel]
pub fn bf16_functions(t: Thread, x: &[F32x2], mut y: PerThreadChunk<u32, 2>) {
    let Some(x) = x.get(t.index()) else { return };
    let pair = Bf16x2::new(x.x, x.y);
    y.get(&t)
        .copy_from_slice(&[pair.fast_exp2().to_bits(), pair.fast_tanh().to_bits()]);
}

//! The elements of tensors, and the conversions of copies.

/// An element type, numbered as in the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F64,
    Bf16,
    /// F32 whose subnormals are flushed in sums, and only there.
    FlushedF32,
    Tf32,
    FlushedTf32,
}

/// The bits of an NaN in TF32.
const NAN: u32 = 0x7fff_e000;
/// The bits of an F32 that TF32 discards.
const LOST: u32 = 0x1fff;

impl Element {
    const ALL: [Self; 13] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::S32,
        Self::U64,
        Self::S64,
        Self::F16,
        Self::F32,
        Self::F64,
        Self::Bf16,
        Self::FlushedF32,
        Self::Tf32,
        Self::FlushedTf32,
    ];

    /// Returns the element type with a number, if its elements are whole bytes.
    pub(super) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the number of bytes of an element.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32
            | Self::S32
            | Self::F32
            | Self::FlushedF32
            | Self::Tf32
            | Self::FlushedTf32 => 4,
            Self::U64 | Self::S64 | Self::F64 => 8,
        }
    }

    /// Converts eight bytes of the tensor as a load does.
    pub(super) fn loaded(self, bits: u64) -> u64 {
        if !matches!(self, Self::Tf32 | Self::FlushedTf32) {
            return bits;
        }
        u64::from(rounded((bits >> 32) as u32)) << 32 | u64::from(rounded(bits as u32))
    }
}

/// Rounds to the nearest TF32 number.
fn rounded(bits: u32) -> u32 {
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        return NAN;
    }
    // Ties go to the even number.
    let odd = bits >> LOST.count_ones() & 1;
    bits.wrapping_add(LOST / 2 + odd) & !LOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tf32_is_rounded_to_the_nearest_and_has_one_nan() {
        for (bits, expected) in [
            (0x2326_e55f, 0x2326_e000),
            (0x9333_9e26, 0x9333_a000),
            (0x7f7f_ffff, 0x7f80_0000),
            (0x7f80_0001, NAN),
            (0xff94_6314, NAN),
            (0xff80_0000, 0xff80_0000),
            (0x005f_ef84, 0x005f_e000),
            (0x3f80_1000, 0x3f80_0000),
            (0x3f80_3000, 0x3f80_4000),
            (0x8000_0001, 0x8000_0000),
        ] {
            assert_eq!(rounded(bits), expected, "{bits:#x}");
        }
        assert_eq!(
            Element::Tf32.loaded(0x2326_e55f_9333_9e26),
            0x2326_e000_9333_a000
        );
        assert_eq!(
            Element::F32.loaded(0x2326_e55f_9333_9e26),
            0x2326_e55f_9333_9e26
        );
    }
}

//! Lanes: the thirty-two values of a register, and their typed views.

use std::hint::black_box;

/// The number of threads in a warp.
pub(crate) const LANES: usize = 32;
/// The number of lanes in half a warp.
pub(crate) const HALF: usize = LANES / 2;
/// The mask of all lanes.
pub(crate) const FULL: u32 = u32::MAX;

/// One register of a warp: one value per lane.
///
/// The alignment keeps vector loads of a row within cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Row<T>(pub(crate) [T; LANES]);

impl<T: Raw> Row<T> {
    /// Creates a row with the same value in every lane.
    pub(crate) fn splat(value: T) -> Self {
        Self([value; LANES])
    }

    /// Replaces the values of the lanes in `mask`.
    #[inline(always)]
    pub(crate) fn merge(&mut self, values: &[T; LANES], mask: u32) {
        if mask == FULL {
            self.0 = *values;
            return;
        }
        let bytes = mask.to_le_bytes();
        let mut merged = [T::default(); LANES];
        for lane in 0..LANES {
            let chosen = &CHOSEN[usize::from(bytes[lane / 8])];
            merged[lane] = self.0[lane].or_if(values[lane], chosen[lane % 8]);
        }
        self.0 = merged;
    }
}

/// For each mask of eight lanes, all ones in the lanes of the mask.
///
/// A table is several times as fast as shifts, for which the compiler emits masked stores.
static CHOSEN: [[u32; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let mut lane = 0;
        while lane < 8 {
            table[mask][lane] = if mask >> lane & 1 == 1 { u32::MAX } else { 0 };
            lane += 1;
        }
        mask += 1;
    }
    table
};

/// The mask of each single lane.
static BITS: [u32; LANES] = {
    let mut bits = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

/// Returns the mask of the lanes for which a condition holds.
#[inline(always)]
pub(crate) fn lanes_where(holds: impl Fn(usize) -> bool) -> u32 {
    // `black_box` hides the contents of the table: with them the compiler would treat the first and
    // the last lane specially, and not vectorize the loop.
    let bits = black_box(&BITS);
    let mut mask = 0;
    for (lane, bit) in bits.iter().enumerate() {
        mask |= if holds(lane) { *bit } else { 0 };
    }
    mask
}

/// The lanes of a mask, lowest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes(pub(crate) u32);

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// The contents of a register lane: 32 or 64 untyped bits.
pub(crate) trait Raw: Copy + Default + Send + Sync + 'static {
    /// Keeps the low bits of a 64-bit value.
    fn truncate(bits: u64) -> Self;
    /// Returns the zero-extended value.
    fn extend(self) -> u64;
    /// Returns `other` if `chosen` is all ones, and `self` if it is zero.
    fn or_if(self, other: Self, chosen: u32) -> Self;
}

impl Raw for u32 {
    #[inline(always)]
    fn truncate(bits: u64) -> Self {
        bits as u32
    }
    #[inline(always)]
    fn extend(self) -> u64 {
        u64::from(self)
    }
    #[inline(always)]
    fn or_if(self, other: Self, chosen: u32) -> Self {
        self ^ ((self ^ other) & chosen)
    }
}

impl Raw for u64 {
    #[inline(always)]
    fn truncate(bits: u64) -> Self {
        bits
    }
    #[inline(always)]
    fn extend(self) -> u64 {
        self
    }
    #[inline(always)]
    fn or_if(self, other: Self, chosen: u32) -> Self {
        self ^ ((self ^ other) & i64::from(chosen.cast_signed()).cast_unsigned())
    }
}

/// A typed view of one lane of a register.
///
/// Types narrower than the register read its low bits. Writes extend the value as PTX requires: by
/// the sign for signed integers, by zeros otherwise.
pub(crate) trait Lane: Copy + 'static {
    /// The register that holds the type.
    type Raw: Raw;
    /// Reads the value from a register's lane.
    fn from_raw(raw: Self::Raw) -> Self;
    /// Returns the register's lane with this value.
    fn into_raw(self) -> Self::Raw;
}

macro_rules! integer_lanes {
    ($($ty:ty => $raw:ty),*) => {$(
        impl Lane for $ty {
            type Raw = $raw;
            #[inline(always)]
            fn from_raw(raw: $raw) -> Self {
                raw as $ty
            }
            #[inline(always)]
            fn into_raw(self) -> $raw {
                self as $raw
            }
        }
    )*};
}

integer_lanes!(u8 => u32, i8 => u32, u16 => u32, i16 => u32, u32 => u32, i32 => u32, u64 => u64, i64 => u64);

impl Lane for f32 {
    type Raw = u32;
    #[inline(always)]
    fn from_raw(raw: u32) -> Self {
        Self::from_bits(raw)
    }
    #[inline(always)]
    fn into_raw(self) -> u32 {
        self.to_bits()
    }
}

impl Lane for f64 {
    type Raw = u64;
    #[inline(always)]
    fn from_raw(raw: u64) -> Self {
        Self::from_bits(raw)
    }
    #[inline(always)]
    fn into_raw(self) -> u64 {
        self.to_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_signed_values_are_sign_extended() {
        assert_eq!((-1i8).into_raw(), u32::MAX);
        assert_eq!(0xffu8.into_raw(), 0xff);
        assert_eq!(i16::from_raw(0x0001_8000), i16::MIN);
    }

    #[test]
    fn merge_changes_masked_lanes_only() {
        let mut row = Row::splat(7u32);
        row.merge(&[1; LANES], 0x8000_0001);
        assert_eq!((row.0[0], row.0[1], row.0[31]), (1, 7, 1));
        let mut row = Row::splat(7u64 << 32);
        row.merge(&[u64::MAX; LANES], 0x0000_8100);
        let changed: Vec<usize> = (0..LANES).filter(|&lane| row.0[lane] != 7 << 32).collect();
        assert_eq!((changed, row.0[15]), (vec![8, 15], u64::MAX));
        assert_eq!(lanes_where(|lane| lane % 8 == 7), 0x8080_8080);
        assert_eq!(Lanes(0x8000_0001).collect::<Vec<_>>(), [0, 31]);
    }
}

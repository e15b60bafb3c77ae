//! The simulator's layout of tensor maps: 16 words, which the driver encodes and kernels modify.

/// The first word of a map, above its kind.
pub const MAGIC: u64 = u64::from_le_bytes(*b"\0tensor\0");
/// The kind of a tiled map.
pub const TILED: u64 = 1;
/// The kind of an im2col map.
pub const IM2COL: u64 = 2;

/// The position of a field in a map.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Field {
    /// The index of the word, below 16.
    word: usize,
    shift: u32,
    bits: u32,
}

impl Field {
    /// The device address of the tensor.
    pub const ADDRESS: Self = Self::whole(1);
    /// The data type, as the driver numbers it.
    pub const DATA_TYPE: Self = Self::nibble(0);
    /// The number of dimensions.
    pub const RANK: Self = Self::nibble(1);
    /// The interleaving, as the driver numbers it.
    pub const INTERLEAVE: Self = Self::nibble(2);
    /// The swizzle, as the driver numbers it, without its atomicity.
    pub const SWIZZLE: Self = Self::nibble(3);
    /// The promotion of L2 accesses, as the driver numbers it.
    pub const PROMOTION: Self = Self::nibble(4);
    /// The kind of value outside of the tensor, as the driver numbers it.
    pub const FILL: Self = Self::nibble(5);
    /// The atomicity of a 128-byte swizzle: 16 bytes, 32, 32 with exchanged halves, 64.
    pub const ATOMICITY: Self = Self::nibble(6);
    /// The box of a tiled map, or the pixels and corners of an im2col map.
    pub const TAKEN: Self = Self::whole(3);
    /// The number of pixels.
    pub(crate) const PIXELS: Self = Self {
        word: 3,
        shift: 0,
        bits: 16,
    };
    /// The number of channels per pixel, less one.
    pub(crate) const CHANNELS: Self = Self {
        word: 3,
        shift: 16,
        bits: 8,
    };

    /// Returns the field of the box size along a dimension, less one.
    pub(crate) const fn boxed(dimension: u32) -> Self {
        Self {
            word: 3,
            shift: 8 * dimension,
            bits: 8,
        }
    }

    /// Returns the field of the element stride along a dimension, below 5.
    #[must_use]
    pub const fn step(dimension: u32) -> Self {
        Self {
            word: 4,
            shift: 8 * dimension,
            bits: 8,
        }
    }

    /// Returns the field of the tensor size along a dimension, below 5.
    #[must_use]
    pub const fn extent(dimension: u32) -> Self {
        Self::whole(5 + dimension as usize)
    }

    /// Returns the field of the stride in bytes along a dimension, from 1 to 4. The first dimension
    /// has none.
    #[must_use]
    pub const fn stride(dimension: u32) -> Self {
        Self::whole(10 + dimension as usize)
    }

    /// Returns the index of the field's word, below 16.
    #[must_use]
    pub const fn word(self) -> usize {
        self.word
    }

    /// Returns the word with a new value of the field.
    #[must_use]
    pub const fn set(self, word: u64, value: u64) -> u64 {
        let mask = u64::MAX >> (64 - self.bits) << self.shift;
        word & !mask | value << self.shift & mask
    }

    /// Returns the value of the field in a map.
    pub(crate) const fn get(self, words: &[u64; 16]) -> u64 {
        words[self.word] >> self.shift & u64::MAX >> (64 - self.bits)
    }

    /// Returns `true` if the field is the whole word.
    pub(crate) const fn is_whole(self) -> bool {
        self.bits == 64
    }

    /// Returns the field packed into a number, for an instruction.
    pub(crate) const fn pack(self) -> u64 {
        self.word as u64 | (self.shift as u64) << 8 | (self.bits as u64) << 16
    }

    pub(crate) const fn unpack(packed: u64) -> Self {
        Self {
            word: (packed & 0xff) as usize,
            shift: (packed >> 8 & 0xff) as u32,
            bits: (packed >> 16) as u32,
        }
    }

    const fn whole(word: usize) -> Self {
        Self {
            word,
            shift: 0,
            bits: 64,
        }
    }

    const fn nibble(index: u32) -> Self {
        Self {
            word: 2,
            shift: 4 * index,
            bits: 4,
        }
    }
}

/// The position of the im2col corners in their word.
#[derive(Clone, Copy, Debug)]
pub struct Corners {
    dimensions: usize,
    /// The number of bits of a coordinate.
    bits: u32,
}

impl Corners {
    /// The position of the corners, after the pixels and channels.
    const SHIFT: u32 = 24;

    /// Returns the layout for tensors with `rank` dimensions, from 3 to 5, of which two are not
    /// spatial.
    #[must_use]
    pub const fn new(rank: usize) -> Self {
        let bits = match rank {
            3 => 16,
            4 => 8,
            _ => 5,
        };
        Self {
            dimensions: rank - 2,
            bits,
        }
    }

    /// Returns the packed corners, the lower one first.
    #[must_use]
    pub fn pack(self, lower: &[i32], upper: &[i32]) -> u64 {
        let mask = u64::MAX >> (64 - self.bits);
        let values = lower
            .iter()
            .chain(upper)
            .map(|offset| i64::from(*offset).cast_unsigned() & mask);
        let shifts = (Self::SHIFT..).step_by(self.bits as usize);
        values
            .zip(shifts)
            .fold(0, |packed, (value, shift)| packed | value << shift)
    }

    /// Returns the lower and the upper corner.
    pub(crate) fn unpack(self, packed: u64) -> ([i64; 3], [i64; 3]) {
        let mut lower = [0; 3];
        let mut upper = [0; 3];
        for dimension in 0..self.dimensions {
            lower[dimension] = self.offset(packed, dimension);
            upper[dimension] = self.offset(packed, self.dimensions + dimension);
        }
        (lower, upper)
    }

    /// Returns the packed offset with an index, sign-extended.
    fn offset(self, packed: u64, index: usize) -> i64 {
        let above = 64 - Self::SHIFT - (index as u32 + 1) * self.bits;
        (packed << above).cast_signed() >> (64 - self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_survive_packing() {
        for (lower, upper) in [
            (&[-32768][..], &[32767][..]),
            (&[-128, 5], &[127, -1]),
            (&[-16, 15, -1], &[3, -2, -16]),
        ] {
            let corners = Corners::new(lower.len() + 2);
            let (unpacked_lower, unpacked_upper) = corners.unpack(corners.pack(lower, upper));
            for (unpacked, packed) in [(unpacked_lower, lower), (unpacked_upper, upper)] {
                let packed: Vec<i64> = packed.iter().map(|offset| i64::from(*offset)).collect();
                assert_eq!(unpacked[..packed.len()], packed);
            }
        }
    }
}

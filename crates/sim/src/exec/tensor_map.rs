//! Tensor maps as the simulator lays them out: 16 words of its own, which the driver encodes and kernels change.

/// Where a map has one of its values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Field {
    /// Which of the 16 words.
    pub(crate) word: usize,
    shift: u32,
    bits: u32,
}

impl Field {
    pub(crate) const ADDRESS: Self = Self::whole(1);
    /// A type of tensors as the driver numbers them.
    pub(crate) const DATA_TYPE: Self = Self::nibble(0);
    pub(crate) const RANK: Self = Self::nibble(1);
    pub(crate) const INTERLEAVE: Self = Self::nibble(2);
    pub(crate) const SWIZZLE: Self = Self::nibble(3);
    pub(crate) const PROMOTION: Self = Self::nibble(4);
    pub(crate) const FILL: Self = Self::nibble(5);
    /// What a swizzle of 128 bytes moves: 16 bytes, 32, 32 with their halves exchanged, 64.
    pub(crate) const ATOMICITY: Self = Self::nibble(6);
    /// What a map of pixels takes of them.
    pub(crate) const TAKEN: Self = Self::whole(3);

    /// One less than the elements of a box along a dimension.
    pub(crate) const fn boxed(dimension: u32) -> Self {
        Self { word: 3, shift: 8 * dimension, bits: 8 }
    }

    /// The step between elements along a dimension.
    pub(crate) const fn step(dimension: u32) -> Self {
        Self { word: 4, shift: 8 * dimension, bits: 8 }
    }

    /// The elements along a dimension.
    pub(crate) const fn extent(dimension: u32) -> Self {
        Self::whole(5 + dimension as usize)
    }

    /// The bytes from one to the next along a dimension but the first, which is not counted.
    pub(crate) const fn stride(dimension: u32) -> Self {
        Self::whole(10 + dimension as usize)
    }

    /// The word with another value in this place.
    pub(crate) const fn put(self, word: u64, value: u64) -> u64 {
        let mask = u64::MAX >> (64 - self.bits) << self.shift;
        word & !mask | value << self.shift & mask
    }

    /// Whether nothing else is in the word.
    pub(crate) const fn is_whole(self) -> bool {
        self.bits == 64
    }

    /// All of it in a number, for an instruction.
    pub(super) const fn pack(self) -> u64 {
        self.word as u64 | (self.shift as u64) << 8 | (self.bits as u64) << 16
    }

    pub(super) const fn unpack(packed: u64) -> Self {
        Self { word: (packed & 0xff) as usize, shift: (packed >> 8 & 0xff) as u32, bits: (packed >> 16) as u32 }
    }

    const fn whole(word: usize) -> Self {
        Self { word, shift: 0, bits: 64 }
    }

    const fn nibble(index: u32) -> Self {
        Self { word: 2, shift: 4 * index, bits: 4 }
    }
}

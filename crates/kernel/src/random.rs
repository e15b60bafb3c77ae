//! Random numbers.

/// The generator Philox4x32-10 of Salmon, Moraes, Dror and Shaw (2011): a function of a key and a
/// counter.
///
/// Each thread creates its own, with the same seed and its index as the sequence. Sequences do not
/// overlap.
///
/// ```
/// use curium_kernel::Philox;
///
/// let mut random = Philox::new(1, 0);
/// let number = random.next_f32();
/// assert!((0.0..1.0).contains(&number));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Philox {
    key: [u32; 2],
    counter: [u32; 4],
    /// Numbers that were computed and not returned.
    numbers: [u32; 4],
    remaining: u32,
}

/// The number of rounds.
const ROUNDS: u32 = 10;
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

impl Philox {
    /// Creates a generator of one of 2⁶⁴ sequences, each of 2⁶⁶ numbers.
    #[inline(always)]
    #[must_use]
    pub const fn new(seed: u64, sequence: u64) -> Self {
        Self {
            key: [seed as u32, (seed >> 32) as u32],
            counter: [0, 0, sequence as u32, (sequence >> 32) as u32],
            numbers: [0; 4],
            remaining: 0,
        }
    }

    /// Returns the numbers for a counter.
    #[inline(always)]
    #[must_use]
    pub const fn generate(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
        let mut key = key;
        let mut numbers = counter;
        let mut round = 0;
        while round < ROUNDS {
            let first = MULTIPLIERS[0] as u64 * numbers[0] as u64;
            let second = MULTIPLIERS[1] as u64 * numbers[2] as u64;
            numbers = [
                (second >> 32) as u32 ^ numbers[1] ^ key[0],
                second as u32,
                (first >> 32) as u32 ^ numbers[3] ^ key[1],
                first as u32,
            ];
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
            round += 1;
        }
        numbers
    }

    /// Returns the next four numbers. Numbers that single calls left are skipped.
    #[inline(always)]
    pub fn next_u32x4(&mut self) -> [u32; 4] {
        let numbers = Self::generate(self.key, self.counter);
        let low = u64::from(self.counter[0]) | u64::from(self.counter[1]) << 32;
        let next = low.wrapping_add(1);
        self.counter[0] = next as u32;
        self.counter[1] = (next >> 32) as u32;
        self.remaining = 0;
        numbers
    }

    /// Returns the next number.
    #[inline(always)]
    pub fn next_u32(&mut self) -> u32 {
        if self.remaining == 0 {
            self.numbers = self.next_u32x4();
            self.remaining = 4;
        }
        self.remaining -= 1;
        // Selected by comparisons, because an array with a variable index would be in local memory.
        match self.remaining {
            3 => self.numbers[0],
            2 => self.numbers[1],
            1 => self.numbers[2],
            _ => self.numbers[3],
        }
    }

    /// Returns a number from 0 to 1, without 1: a multiple of 2⁻²⁴.
    #[inline(always)]
    pub fn next_f32(&mut self) -> f32 {
        (self.next_u32() >> 8) as f32 * (1.0 / (1 << 24) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of the Random123 library.
    #[test]
    fn known_answers() {
        assert_eq!(
            Philox::generate([0; 2], [0; 4]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            Philox::generate([!0; 2], [!0; 4]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            Philox::generate(
                [0xa409_3822, 0x299f_31d0],
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn single_numbers_are_those_of_the_vectors() {
        let mut vectors = Philox::new(7, 3);
        let mut singles = Philox::new(7, 3);
        for _ in 0..3 {
            let expected = vectors.next_u32x4();
            let numbers: [u32; 4] = core::array::from_fn(|_| singles.next_u32());
            assert_eq!(numbers, expected);
        }
    }
}

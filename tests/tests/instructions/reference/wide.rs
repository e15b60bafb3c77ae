//! Fixed-point numbers wide enough to represent every sum and product of two floating-point numbers
//! exactly.

use std::cmp::Ordering;

/// The number of words before the binary point.
const INTEGER: usize = 35;
/// The number of words after the binary point.
const FRACTION: usize = 35;
const WORDS: usize = INTEGER + FRACTION;

/// A signed fixed-point number; zero is signed too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wide {
    pub(crate) negative: bool,
    /// The words, the least significant first.
    magnitude: [u64; WORDS],
}

impl Wide {
    /// `mantissa * 2^exponent`.
    pub(crate) fn new(negative: bool, mantissa: u128, exponent: i32) -> Self {
        let shift = usize::try_from(exponent + 64 * FRACTION as i32)
            .expect("no format has a smaller exponent");
        let mut magnitude = [0; WORDS];
        let halves = [mantissa as u64, (mantissa >> 64) as u64];
        for (index, half) in halves.into_iter().enumerate() {
            let placed = u128::from(half) << (shift % 64);
            let word = shift / 64 + index;
            magnitude[word] |= placed as u64;
            if placed >> 64 != 0 {
                magnitude[word + 1] |= (placed >> 64) as u64;
            }
        }
        Self {
            negative,
            magnitude,
        }
    }

    /// Creates an integer.
    pub(crate) fn integer(value: i128) -> Self {
        Self::new(value < 0, value.unsigned_abs(), 0)
    }

    /// Compares the magnitudes.
    pub(crate) fn compare_magnitudes(&self, other: &Self) -> Ordering {
        self.magnitude
            .iter()
            .rev()
            .cmp(other.magnitude.iter().rev())
    }

    /// Returns the sum. A zero result of numbers with different signs is negative if
    /// `zero_is_negative`.
    pub(crate) fn plus(self, other: Self, zero_is_negative: bool) -> Self {
        if self.negative == other.negative {
            return Self {
                negative: self.negative,
                magnitude: add(self.magnitude, other.magnitude),
            };
        }
        match self.compare_magnitudes(&other) {
            Ordering::Equal => Self {
                negative: zero_is_negative,
                magnitude: [0; WORDS],
            },
            Ordering::Greater => Self {
                negative: self.negative,
                magnitude: subtract(self.magnitude, other.magnitude),
            },
            Ordering::Less => Self {
                negative: other.negative,
                magnitude: subtract(other.magnitude, self.magnitude),
            },
        }
    }

    /// Returns the exponent of the highest set bit.
    pub(crate) fn top(&self) -> Option<i32> {
        let word = self.magnitude.iter().rposition(|word| *word != 0)?;
        let bit = 63 - self.magnitude[word].leading_zeros() as i32;
        Some(64 * word as i32 + bit - 64 * FRACTION as i32)
    }

    /// Returns the bits starting at 2^`exponent`, and how the lower ones compare to half of the
    /// lowest of them.
    pub(crate) fn split(&self, exponent: i32) -> (u128, Rest) {
        let lowest = (exponent + 64 * FRACTION as i32) as usize;
        let mut bits_above = 0;
        for index in 0..128 {
            bits_above |= u128::from(self.bit(lowest + index)) << index;
        }
        let half = lowest > 0 && self.bit(lowest - 1);
        let below = (0..lowest.saturating_sub(1)).step_by(64).any(|low| {
            let word = self.magnitude[low / 64];
            let bits = (lowest - 1 - low).min(64);
            word << (64 - bits) != 0
        });
        let discarded = match (half, below) {
            (false, false) => Rest::Nothing,
            (false, true) => Rest::Less,
            (true, false) => Rest::Half,
            (true, true) => Rest::More,
        };
        (bits_above, discarded)
    }

    fn bit(&self, place: usize) -> bool {
        self.magnitude
            .get(place / 64)
            .is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

/// The discarded part, compared to half a unit in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    Less,
    Half,
    More,
}

fn add(mut a: [u64; WORDS], b: [u64; WORDS]) -> [u64; WORDS] {
    let mut carry = false;
    for (a, b) in a.iter_mut().zip(b) {
        (*a, carry) = a.carrying_add(b, carry);
    }
    a
}

fn subtract(mut a: [u64; WORDS], b: [u64; WORDS]) -> [u64; WORDS] {
    let mut borrow = false;
    for (a, b) in a.iter_mut().zip(b) {
        (*a, borrow) = a.borrowing_sub(b, borrow);
    }
    a
}

//! Sobol sequences with the direction numbers of Joe and Kuo.

use std::sync::OnceLock;

use sobol::params::JoeKuoD6;
use sobol::{InternalType, LossyFrom, Sobol, SobolType};

use super::algorithm::SplitMix;

/// A Sobol sequence of some dimensions, of 32 or 64 bits. A scrambled one has the bits of each
/// dimension changed at random.
#[derive(Clone)]
pub(super) struct Sequence {
    /// The directions of each dimension, those of 32 bits in the upper halves.
    directions: Vec<Vec<u64>>,
    shifts: Vec<u64>,
    /// The position of the next point.
    pub(super) position: u64,
}

impl Sequence {
    pub(super) fn new(dimensions: usize, is_scrambled: bool, is_64_bit: bool) -> Self {
        let directions = if is_64_bit {
            directions::<u64>(dimensions)
        } else {
            directions::<u32>(dimensions)
                .into_iter()
                .map(|directions| {
                    directions
                        .into_iter()
                        .map(|bits| u64::from(bits) << 32)
                        .collect()
                })
                .collect()
        };
        let shifts = if is_scrambled {
            (0..dimensions as u64)
                .map(|dimension| SplitMix(dimension).next())
                .collect()
        } else {
            vec![0; dimensions]
        };
        Self {
            directions,
            shifts,
            position: 0,
        }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.directions.len()
    }

    /// Returns the next `points` points: those of the first dimension, then those of the next one.
    pub(super) fn next(&mut self, points: usize) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(points * self.directions.len());
        for (directions, shift) in self.directions.iter().zip(&self.shifts) {
            let mut number = number_at(directions, self.position) ^ shift;
            for point in 0..points as u64 {
                numbers.push(number);
                let bit = self.position.wrapping_add(point).trailing_ones() as usize;
                number ^= directions.get(bit).copied().unwrap_or_default();
            }
        }
        self.position = self.position.wrapping_add(points as u64);
        numbers
    }
}

/// Returns the number at a position: the sum of the directions at the bits of its Gray code.
fn number_at(directions: &[u64], position: u64) -> u64 {
    let gray = position ^ (position >> 1);
    let chosen = directions
        .iter()
        .enumerate()
        .filter(|(bit, _)| gray >> bit & 1 == 1);
    chosen.fold(0, |sum, (_, direction)| sum ^ direction)
}

/// Returns the directions of each dimension.
fn directions<T: SobolType>(dimensions: usize) -> Vec<Vec<T::IT>>
where
    T::IT: InternalType + LossyFrom<u32>,
{
    static PARAMETERS: OnceLock<JoeKuoD6> = OnceLock::new();
    let parameters = PARAMETERS.get_or_init(JoeKuoD6::extended);
    Sobol::<T>::init_direction_vals::<u32>(dimensions, T::MAX_RESOLUTION, parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_agree_with_the_sequence() {
        for is_64_bit in [false, true] {
            let mut whole = Sequence::new(5, true, is_64_bit);
            let points = whole.next(100);
            let mut later = Sequence {
                position: 37,
                ..Sequence::new(5, true, is_64_bit)
            };
            let later_points = later.next(63);
            for dimension in 0..5 {
                assert_eq!(
                    points[dimension * 100 + 37..][..63],
                    later_points[dimension * 63..][..63]
                );
            }
        }
    }

    /// Each of the first 2ⁿ points lies in another interval of the length 2⁻ⁿ.
    #[test]
    fn points_fill_the_interval_evenly() {
        let is_scrambled = false;
        let is_64_bit = false;
        for numbers in Sequence::new(200, is_scrambled, is_64_bit)
            .next(256)
            .chunks(256)
        {
            let mut intervals: Vec<_> = numbers.iter().map(|number| number >> 56).collect();
            intervals.sort_unstable();
            assert_eq!(intervals, (0..256).collect::<Vec<_>>());
        }
    }
}

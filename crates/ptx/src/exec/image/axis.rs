//! One direction of a texture: the elements next to a coordinate.

use super::AddressMode;
use crate::exec::values::lane::LANES;

/// One direction of an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) extent: u32,
    pub(super) mode: AddressMode,
    pub(super) is_normalized: bool,
}

/// The elements on both sides of a coordinate, `None` for the border, and the weight of the second
/// one in units of 1 / `WEIGHT_STEPS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) elements: [Option<u32>; 2],
    pub(super) weight: u32,
}

/// The elements on both sides of a warp's coordinates, negative for the border, and the weights of
/// the second ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs {
    pub(super) elements: [[i32; LANES]; 2],
    pub(super) weights: [u32; LANES],
}

/// The resolution of hardware's filter weights.
pub(super) const WEIGHT_STEPS: u32 = 256;
/// Coordinates from here on have few fractional bits, so their remainder is exact.
const FAR: f64 = (1 << 20) as f64;

impl Axis {
    /// Returns the element that contains a coordinate, shifted by `offset` elements.
    #[inline]
    pub(super) fn nearest(self, coordinate: f32, offset: i32) -> Option<u32> {
        self.element(floor(self.scaled(coordinate) + f64::from(offset)) as i64)
    }

    /// Returns the elements whose centers are next to a coordinate, shifted by `offset` elements.
    #[inline]
    pub(super) fn pair(self, coordinate: f32, offset: i32) -> Pair {
        let parts = f64::from(WEIGHT_STEPS);
        let steps = floor((self.scaled(coordinate) + f64::from(offset) - 0.5) * parts + 0.5);
        let first = floor(steps / parts);
        let weight = (steps - first * parts) as u32;
        let first = first as i64;
        // Hardware moves the coordinate to the edge, where the second element has no weight.
        let is_beyond =
            self.mode() == AddressMode::Clamp && !(0..i64::from(self.extent) - 1).contains(&first);
        let weight = if is_beyond { 0 } else { weight };
        Pair {
            elements: [self.element(first), self.element(first.saturating_add(1))],
            weight,
        }
    }

    /// Returns `true` if the image does not repeat.
    pub(super) fn is_single(self) -> bool {
        matches!(self.mode(), AddressMode::Clamp | AddressMode::Border)
    }

    /// Returns the result of [`Axis::pair`], or of [`Axis::nearest`] twice, for a warp. The image
    /// must not repeat.
    #[inline(always)]
    pub(super) fn pairs<const LINEAR: bool>(self, coordinates: &[u32; LANES]) -> Pairs {
        let scale = if self.is_normalized {
            f64::from(self.extent)
        } else {
            1.0
        };
        let parts = f64::from(WEIGHT_STEPS);
        let last = f64::from(self.extent - 1);
        let is_clamped = self.mode() == AddressMode::Clamp;
        let mut pairs = Pairs {
            elements: [[0; LANES]; 2],
            weights: [0; LANES],
        };
        for lane in 0..LANES {
            let coordinate = f32::from_bits(coordinates[lane]);
            let position = if coordinate.is_nan() {
                0.0
            } else {
                f64::from(coordinate) * scale
            };
            let steps = ((position - 0.5) * parts + 0.5).floor();
            let first = if LINEAR {
                (steps / parts).floor()
            } else {
                position.floor()
            };
            let second = if LINEAR { first + 1.0 } else { first };
            let has_weight = LINEAR && (!is_clamped | ((first >= 0.0) & (first < last)));
            pairs.weights[lane] = if has_weight {
                ((steps - first * parts) as i32).cast_unsigned()
            } else {
                0
            };
            for (elements, index) in pairs.elements.iter_mut().zip([first, second]) {
                let is_inside = is_clamped | ((index >= 0.0) & (index <= last));
                elements[lane] = if is_inside {
                    index.max(0.0).min(last) as i32
                } else {
                    -1
                };
            }
        }
        pairs
    }

    /// Returns the effective addressing mode. Images do not repeat with unnormalized coordinates.
    #[inline]
    fn mode(self) -> AddressMode {
        match self.mode {
            AddressMode::Wrap | AddressMode::Mirror if !self.is_normalized => AddressMode::Clamp,
            mode => mode,
        }
    }

    /// Returns the element at an index, which may be beyond the edges.
    #[inline]
    fn element(self, index: i64) -> Option<u32> {
        let extent = i64::from(self.extent);
        let element = match self.mode() {
            AddressMode::Clamp => index.clamp(0, extent - 1),
            AddressMode::Wrap => index.rem_euclid(extent),
            AddressMode::Mirror => {
                let index = index.rem_euclid(2 * extent);
                index.min(2 * extent - 1 - index)
            }
            AddressMode::Border if (0..extent).contains(&index) => index,
            AddressMode::Border => return None,
        };
        Some(element as u32)
    }

    /// Returns the coordinate in elements. NaN becomes 0.
    #[inline]
    fn scaled(self, coordinate: f32) -> f64 {
        let coordinate = if coordinate.is_nan() {
            0.0
        } else {
            f64::from(coordinate)
        };
        // A repeating or mirrored image has a period of at most two lengths, also for coordinates
        // beyond the range of i64.
        let repeats = matches!(self.mode(), AddressMode::Wrap | AddressMode::Mirror);
        let coordinate = match coordinate {
            far if !repeats || far.abs() < FAR => coordinate,
            far if far.is_finite() => far.rem_euclid(2.0),
            _ => 0.0,
        };
        if self.is_normalized {
            coordinate * f64::from(self.extent)
        } else {
            coordinate
        }
    }
}

/// Rounds down without the library call on processors that lack an instruction for it.
#[inline]
fn floor(value: f64) -> f64 {
    // Larger numbers are integers.
    const LARGE: f64 = (1_u64 << 52) as f64;
    if value.abs() >= LARGE || value.is_nan() {
        return value;
    }
    let whole = value as i64 as f64;
    if whole > value { whole - 1.0 } else { whole }
}

#[cfg(test)]
mod tests {
    use crate::exec::image::axis::*;

    fn axis(mode: AddressMode, is_normalized: bool) -> Axis {
        Axis {
            extent: 4,
            mode,
            is_normalized,
        }
    }

    #[test]
    fn warp_finds_the_same_elements_as_single_lanes() {
        let mut numbers = vec![
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -0.0,
            1e30,
            -1e30,
            8_388_607.5,
        ];
        numbers.extend((-300..600).map(|number| number as f32 / 97.0));
        for mode in [AddressMode::Clamp, AddressMode::Border] {
            for is_normalized in [false, true] {
                for extent in [1, 4, 5] {
                    let axis = Axis {
                        extent,
                        mode,
                        is_normalized,
                    };
                    for numbers in numbers.chunks(LANES) {
                        check_pairs(axis, numbers);
                    }
                }
            }
        }
    }

    /// Compares the elements of a warp with those of single coordinates.
    fn check_pairs(axis: Axis, numbers: &[f32]) {
        let mut coordinates = [0; LANES];
        for (bits, number) in coordinates.iter_mut().zip(numbers) {
            *bits = number.to_bits();
        }
        let linear = axis.pairs::<true>(&coordinates);
        let nearest = axis.pairs::<false>(&coordinates);
        for (lane, number) in numbers.iter().enumerate() {
            let pair = Pair {
                elements: linear
                    .elements
                    .map(|elements| u32::try_from(elements[lane]).ok()),
                weight: linear.weights[lane],
            };
            assert_eq!(pair, axis.pair(*number, 0), "{axis:?} {number}");
            let element = u32::try_from(nearest.elements[0][lane]).ok();
            assert_eq!(element, axis.nearest(*number, 0), "{axis:?} {number}");
        }
    }

    #[test]
    fn floor_is_the_integer_below() {
        let numbers = [
            0.0,
            0.5,
            -0.5,
            1.0,
            -1.0,
            -1.5,
            4.5e15,
            -4.5e15 - 0.5,
            1e300,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        for number in numbers {
            assert_eq!(floor(number), number.floor(), "{number}");
        }
        assert!(floor(f64::NAN).is_nan());
    }

    #[test]
    fn out_of_bounds_indices_follow_the_addressing_mode() {
        for (mode, is_normalized, expected) in [
            (AddressMode::Clamp, true, [0, 0, 0, 3, 3, 3, 3].map(Some)),
            (AddressMode::Wrap, true, [3, 3, 0, 3, 0, 3, 0].map(Some)),
            (AddressMode::Mirror, true, [3, 0, 0, 3, 3, 0, 0].map(Some)),
            (AddressMode::Wrap, false, [0, 0, 0, 3, 3, 3, 3].map(Some)),
            (
                AddressMode::Border,
                true,
                [None, None, Some(0), Some(3), None, None, None],
            ),
        ] {
            let axis = axis(mode, is_normalized);
            let elements = [-5, -1, 0, 3, 4, 7, 8].map(|index| axis.element(index));
            assert_eq!(elements, expected, "{axis:?}");
        }
    }

    #[test]
    fn distant_coordinates_wrap_in_repeating_images() {
        for mode in [AddressMode::Wrap, AddressMode::Mirror] {
            let axis = axis(mode, true);
            for exponent in [21, 24, 40, 61, 62, 63, 64, 100, 127] {
                for far in [2_f32.powi(exponent), -2_f32.powi(exponent)] {
                    assert_eq!(axis.nearest(far, 0), axis.nearest(0.0, 0), "{mode:?} {far}");
                    assert_eq!(axis.nearest(far, 2), axis.nearest(0.0, 2), "{mode:?} {far}");
                    assert_eq!(axis.pair(far, 0), axis.pair(0.0, 0), "{mode:?} {far}");
                }
            }
            assert_eq!(
                axis.nearest(4_194_305.5, 0),
                axis.nearest(1.5, 0),
                "{mode:?}"
            );
            assert_eq!(
                axis.nearest(-4_194_304.5, 0),
                axis.nearest(-0.5, 0),
                "{mode:?}"
            );
        }
    }

    #[test]
    fn weights_have_a_resolution_in_256ths() {
        let axis = axis(AddressMode::Clamp, false);
        for (coordinate, offset, elements, weight) in [
            (1.5, 0, [1, 2], 0),
            (2.0, 0, [1, 2], 128),
            (1.5 + 1.0 / 1024.0, 0, [1, 2], 0),
            (1.5 + 2.0 / 1024.0, 0, [1, 2], 1),
            (1.5 + 5.0 / 1024.0, 0, [1, 2], 1),
            (0.25, 0, [0, 0], 0),
            (3.75, 0, [3, 3], 0),
            (1.75, -2, [0, 0], 0),
        ] {
            let expected = Pair {
                elements: elements.map(Some),
                weight,
            };
            assert_eq!(axis.pair(coordinate, offset), expected, "{coordinate}");
        }
        assert_eq!(axis.pair(0.75, 2), axis.pair(2.75, 0));
        assert_eq!(axis.pair(f32::NAN, 0).elements, [Some(0), Some(0)]);
        assert_eq!(axis.pair(f32::INFINITY, 0).elements, [Some(3), Some(3)]);
    }
}

//! The host types in which matrix elements are computed.

use super::Element;
use crate::exec::float::Real;
use crate::exec::lane::LANES;
use crate::exec::narrow::rows::Narrow;
use crate::exec::narrow::{Bfloat, Half};

/// A host type of matrix elements.
pub(crate) trait Number: Copy + Default + 'static {
    /// Converts the bits of an element.
    fn read(element: Element, bits: u64) -> Self;
    /// Converts the bits of a row of elements.
    #[inline(always)]
    fn read_row<const WIDE: bool>(element: Element, bits: &[u32; LANES]) -> [Self; LANES] {
        bits.map(|bits| Self::read(element, bits.into()))
    }
    /// Returns the negated number.
    fn negative(self) -> Self;
}

impl Number for f64 {
    fn read(element: Element, bits: u64) -> Self {
        match element {
            Element::F16 => Self::from(Half(bits as u16).to_f32()),
            Element::Bf16 => Bfloat(bits as u16).to_f64(),
            // The low bits of the fraction are ignored.
            Element::Tf32 => Self::from(f32::from_bits(bits as u32 & !0x1fff)),
            Element::F64 => Self::from_bits(bits),
            Element::E4m3 => of_e4m3(bits as u16),
            // e5m2 is the upper half of an f16.
            Element::E5m2 => Self::from(Half((bits << 8) as u16).to_f32()),
            _ => Self::from(f32::from_bits(bits as u32)),
        }
    }

    /// Vectorizes the formats of 16 bits and more.
    #[inline(always)]
    fn read_row<const WIDE: bool>(element: Element, bits: &[u32; LANES]) -> [Self; LANES] {
        let mut numbers = [0.0; LANES];
        let mask = match element {
            Element::F16 | Element::Bf16 => 0,
            Element::Tf32 => !0x1fff,
            Element::F32 => u32::MAX,
            _ => {
                for lane in 0..LANES {
                    numbers[lane] = Self::read(element, bits[lane].into());
                }
                return numbers;
            }
        };
        let mut singles = match element {
            Element::F16 => Half::widen::<WIDE>(bits),
            _ => Bfloat::widen::<WIDE>(bits),
        };
        if mask != 0 {
            for lane in 0..LANES {
                singles[lane] = f32::from_bits(bits[lane] & mask);
            }
        }
        for lane in 0..LANES {
            numbers[lane] = Self::from(singles[lane]);
        }
        numbers
    }

    fn negative(self) -> Self {
        -self
    }
}

impl Number for i32 {
    fn read(element: Element, bits: u64) -> Self {
        match element {
            Element::S8 => Self::from(bits as i8),
            Element::S4 => (bits as u32).cast_signed() << 28 >> 28,
            _ => bits as Self,
        }
    }

    fn negative(self) -> Self {
        -self
    }
}

/// Converts E4M3: its fields, shifted to those of an f16, represent the value divided by 2^8.
fn of_e4m3(bits: u16) -> f64 {
    if bits & 0x7f == 0x7f {
        return f64::NAN;
    }
    f64::from(Half((bits & 0x80) << 8 | (bits & 0x7f) << 7).to_f32()) * 256.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::small_float::{E4M3, E5M2};

    #[test]
    fn small_numbers_have_the_values_of_their_formats() {
        for bits in 0..256 {
            for (element, format) in [(Element::E4m3, E4M3), (Element::E5m2, E5M2)] {
                let (found, expected) = (f64::read(element, u64::from(bits)), format.widen(bits));
                let alike = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                assert!(alike, "{element:?} {bits:#x}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn integers_have_their_signs() {
        assert_eq!([Element::S8, Element::U8].map(|element| i32::read(element, 0x80)), [-128, 128]);
        assert_eq!([Element::S4, Element::U4].map(|element| i32::read(element, 0x9)), [-7, 9]);
    }
}

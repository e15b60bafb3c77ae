//! The host types in which matrix elements are computed.

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::{Element, OCTET, QUAD};
use crate::exec::values::lane::LANES;
use crate::exec::values::narrow::{Bfloat, Half};
use crate::exec::values::narrow_rows::Narrow;

/// A host type of matrix elements.
pub(crate) trait Number: Copy + Default + 'static {
    /// Returns the value of an element's bits.
    fn read(element: Element, bits: u64) -> Self;
    /// Reads the elements of a register, lane by lane.
    #[inline(always)]
    fn unpack<const WIDE: bool>(element: Element, register: &[u32; LANES], numbers: &mut [Self]) {
        let bits = element.bits();
        let mask = u32::MAX >> (32 - bits);
        for (numbers, &word) in numbers.chunks_exact_mut((32 / bits) as usize).zip(register) {
            for (number, index) in numbers.iter_mut().zip(0..) {
                *number = Self::read(element, u64::from(word >> (index * bits) & mask));
            }
        }
    }
    /// Transposes eight rows of four numbers.
    #[inline(always)]
    fn transpose<const WIDE: bool>(rows: &[[Self; QUAD]; OCTET]) -> [[Self; OCTET]; QUAD] {
        transposed(rows)
    }
    /// Returns the negated number.
    fn negative(self) -> Self;
}

/// Numbers of single precision hold the elements of all floating-point formats but F64.
impl Number for f32 {
    #[inline(always)]
    fn read(element: Element, bits: u64) -> Self {
        match element {
            Element::F16 => Half(bits as u16).to_f32(),
            Element::Bf16 => Bfloat(bits as u16).to_f32(),
            // The low bits of the fraction do not count.
            Element::Tf32 => Self::from_bits(bits as u32 & !0x1fff),
            Element::E4m3 => e4m3_to_f32(bits as u16),
            // The upper half of an f16.
            Element::E5m2 => Half((bits << 8) as u16).to_f32(),
            _ => Self::from_bits(bits as u32),
        }
    }

    #[inline(always)]
    fn unpack<const WIDE: bool>(element: Element, register: &[u32; LANES], numbers: &mut [Self]) {
        match element {
            Element::F16 => numbers.copy_from_slice(&Half::unpack::<WIDE>(register)),
            Element::Bf16 => numbers.copy_from_slice(&Bfloat::unpack::<WIDE>(register)),
            Element::E4m3 | Element::E5m2 => {
                for (numbers, word) in numbers.as_chunks_mut::<4>().0.iter_mut().zip(register) {
                    *numbers = word
                        .to_le_bytes()
                        .map(|bits| Self::read(element, bits.into()));
                }
            }
            Element::Tf32 => {
                for (number, &bits) in numbers.iter_mut().zip(register) {
                    *number = Self::read(Element::Tf32, bits.into());
                }
            }
            _ => {
                for (number, &bits) in numbers.iter_mut().zip(register) {
                    *number = Self::from_bits(bits);
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn transpose<const WIDE: bool>(rows: &[[Self; QUAD]; OCTET]) -> [[Self; OCTET]; QUAD] {
        if WIDE {
            // SAFETY: only handlers selected for AVX2 call it.
            return unsafe { avx2::transpose(rows) };
        }
        transposed(rows)
    }

    fn negative(self) -> Self {
        -self
    }
}

impl Number for f64 {
    fn read(_element: Element, bits: u64) -> Self {
        Self::from_bits(bits)
    }

    fn negative(self) -> Self {
        -self
    }
}

impl Number for i32 {
    #[inline(always)]
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

#[inline(always)]
fn transposed<T: Number>(rows: &[[T; QUAD]; OCTET]) -> [[T; OCTET]; QUAD] {
    let mut transposed = [[T::default(); OCTET]; QUAD];
    for (row, numbers) in rows.iter().enumerate() {
        for column in 0..QUAD {
            transposed[column][row] = numbers[column];
        }
    }
    transposed
}

/// Converts E4M3: its fields, shifted to those of an f16, represent the value divided by 2^8.
#[inline(always)]
fn e4m3_to_f32(bits: u16) -> f32 {
    if bits & 0x7f == 0x7f {
        return f32::NAN;
    }
    Half((bits & 0x80) << 8 | (bits & 0x7f) << 7).to_f32() * 256.0
}

#[cfg(test)]
mod tests {
    use crate::exec::matrix::number::*;
    use crate::exec::values::small_float::{E4M3, E5M2};

    #[test]
    fn small_numbers_are_read_in_their_formats() {
        for bits in 0..256 {
            for (element, format) in [(Element::E4m3, E4M3), (Element::E5m2, E5M2)] {
                let value = f64::from(f32::read(element, u64::from(bits)));
                let expected = format.widen(bits);
                if expected.is_nan() {
                    assert!(value.is_nan(), "{element:?} {bits:#x}: {value}");
                } else {
                    let bits_match = value.to_bits() == expected.to_bits();
                    assert!(bits_match, "{element:?} {bits:#x}: {value}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn integers_have_their_signs() {
        assert_eq!(
            [Element::S8, Element::U8].map(|element| i32::read(element, 0x80)),
            [-128, 128]
        );
        assert_eq!(
            [Element::S4, Element::U4].map(|element| i32::read(element, 0x9)),
            [-7, 9]
        );
    }
}

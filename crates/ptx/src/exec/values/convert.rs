//! `cvt` between any two types, through an exact intermediate value.

use super::exact::{self, BF16, Exact, F16, F32, F64, Format, Rounding};
use super::float::Real;
use super::lane::Lane;

/// The exact intermediate value of a conversion.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// An integer.
    Integer(i128),
    /// A floating-point number, and `true` if the source is an f64.
    Real(f64, bool),
}

/// A source type of `cvt`.
pub(crate) trait Source: Lane {
    /// Returns the value.
    fn number(self) -> Number;
}

macro_rules! integer_sources {
    ($($ty:ty),*) => {$(
        impl Source for $ty {
            #[inline(always)]
            fn number(self) -> Number {
                Number::Integer(i128::from(self))
            }
        }
    )*};
}

integer_sources!(u8, i8, u16, i16, u32, i32, u64, i64);

/// A floating-point source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Floating<T>(T);

impl<T: Real> Lane for Floating<T> {
    type Raw = T::Raw;
    #[inline(always)]
    fn from_raw(raw: T::Raw) -> Self {
        Self(T::from_raw(raw))
    }
    #[inline(always)]
    fn into_raw(self) -> T::Raw {
        self.0.into_raw()
    }
}

impl<T: Real> Source for Floating<T> {
    #[inline(always)]
    fn number(self) -> Number {
        Number::Real(self.0.to_f64(), T::FORMAT == F64)
    }
}

/// The result type of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An integer of `bits` bits.
    Integer { bits: u32, signed: bool },
    /// A floating-point number.
    Real(Format),
}

/// The parameters of a `cvt`, packed into a constant row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub(crate) target: Target,
    pub(crate) rounding: Rounding,
    /// Rounds to an integral value between floating-point types: `.rni` and the like.
    pub(crate) integral: bool,
    /// Clamps: to the target's range for integers, to [0, 1] for floating point.
    pub(crate) saturate: bool,
    /// Replaces negative numbers and NaN by zero: `.relu`.
    pub(crate) rectify: bool,
    /// Flushes f32 subnormals of the source and the result.
    pub(crate) flush: bool,
    /// Replaces infinity by the largest finite number: `.satfinite`.
    pub(crate) finite: bool,
}

const FORMATS: [Format; 4] = [F16, BF16, F32, F64];
const ROUNDINGS: [Rounding; 4] = [
    Rounding::Nearest,
    Rounding::Zero,
    Rounding::Down,
    Rounding::Up,
];

impl Lane for Conversion {
    type Raw = u32;

    fn from_raw(raw: u32) -> Self {
        let target = if raw & 1 == 1 {
            Target::Real(FORMATS[(raw >> 8 & 3) as usize])
        } else {
            Target::Integer {
                bits: (raw >> 8 & 0x7f),
                signed: raw >> 1 & 1 == 1,
            }
        };
        Self {
            target,
            rounding: ROUNDINGS[(raw >> 2 & 3) as usize],
            integral: raw >> 4 & 1 == 1,
            saturate: raw >> 5 & 1 == 1,
            rectify: raw >> 6 & 1 == 1,
            flush: raw >> 7 & 1 == 1,
            finite: raw >> 16 & 1 == 1,
        }
    }

    fn into_raw(self) -> u32 {
        let target = match self.target {
            Target::Real(format) => {
                let index = FORMATS.iter().position(|&other| other == format);
                1 | (index.unwrap_or(0) as u32) << 8
            }
            Target::Integer { bits, signed } => u32::from(signed) << 1 | bits << 8,
        };
        let rounding = ROUNDINGS.iter().position(|&other| other == self.rounding);
        target
            | (rounding.unwrap_or(0) as u32) << 2
            | u32::from(self.integral) << 4
            | u32::from(self.saturate) << 5
            | u32::from(self.rectify) << 6
            | u32::from(self.flush) << 7
            | u32::from(self.finite) << 16
    }
}

impl Conversion {
    /// Returns the bits of the result. Integers are sign-extended to 64 bits.
    #[inline(never)]
    pub(crate) fn apply(self, number: Number) -> u64 {
        match (number, self.target) {
            (Number::Integer(value), Target::Integer { bits, signed }) => {
                let value = if self.saturate {
                    clamp(value, bits, signed)
                } else {
                    value
                };
                extend(value as u64, bits, signed)
            }
            (Number::Integer(value), Target::Real(format)) => {
                let magnitude = value.unsigned_abs() as u64;
                let exact = Exact::from_integer(value < 0, magnitude);
                self.finish(exact.round(format, self.rounding), format)
            }
            (Number::Real(value, double), Target::Integer { bits, signed }) => {
                self.real_to_integer(value, double, bits, signed)
            }
            (Number::Real(value, double), Target::Real(format)) => {
                self.real_to_real(value, double, format)
            }
        }
    }

    fn real_to_integer(self, value: f64, double: bool, bits: u32, signed: bool) -> u64 {
        if value.is_nan() {
            let invalid = double || bits == 64;
            let pattern = if invalid { 1u64 << (bits - 1) } else { 0 };
            return extend(pattern, bits, signed);
        }
        let value = if self.flush && !double {
            flush(value)
        } else {
            value
        };
        // Rust's cast clamps to the range of i128, which exceeds every target's.
        let integer = round_to_integer(value, self.rounding) as i128;
        extend(clamp(integer, bits, signed) as u64, bits, signed)
    }

    fn real_to_real(self, value: f64, double: bool, format: Format) -> u64 {
        if value.is_nan() {
            if self.saturate || self.rectify && format == F32 {
                return 0;
            }
            return nan(value, double, format);
        }
        // Hardware does not flush the source of a conversion to f16.
        let mut value = if self.flush && !double && format != F16 {
            flush(value)
        } else {
            value
        };
        if self.integral {
            value = round_to_integer(value, self.rounding);
        }
        self.finish(exact::narrow(value, format, self.rounding), format)
    }

    /// Flushes, saturates and rectifies a result other than NaN.
    fn finish(self, bits: u64, format: Format) -> u64 {
        let mut value = exact::widen(bits, format);
        let mut bits = bits;
        if self.flush && format == F32 && value.abs() < f64::from(f32::MIN_POSITIVE) {
            value = 0.0;
            bits &= 0x8000_0000;
        }
        if self.saturate && value >= 1.0 {
            return exact::narrow(1.0, format, Rounding::Nearest);
        }
        if (self.saturate || self.rectify) && value <= 0.0 {
            return 0;
        }
        if self.finite && value.is_infinite() {
            bits - 1
        } else {
            bits
        }
    }
}

/// Returns the result of converting a NaN. A NaN that is converted to f64, or from f64 to f32 or
/// f16, is quieted and keeps its sign and the upper bits of its payload. Every other result is the
/// canonical NaN.
fn nan(value: f64, double: bool, format: Format) -> u64 {
    let quieted = value.to_bits() | 1 << 51;
    let sign = quieted >> 63;
    let fraction = quieted & ((1 << 52) - 1);
    match format {
        F64 => quieted,
        F32 if double => sign << 31 | 0x7f80_0000 | fraction >> (52 - 23),
        F16 if double => sign << 15 | 0x7c00 | fraction >> (52 - 10),
        F32 => 0x7fff_ffff,
        _ => 0x7fff,
    }
}

/// `cvt.rn.f32.f64`.
#[inline(always)]
pub(crate) fn f64_to_f32(value: f64) -> f32 {
    if value.is_nan() {
        f32::from_bits(nan(value, true, F32) as u32)
    } else {
        value as f32
    }
}

/// `cvt.f64.f32`.
#[inline(always)]
pub(crate) fn f32_to_f64(value: f32) -> f64 {
    let bits = value.to_bits();
    if value.is_nan() {
        let sign = u64::from(bits >> 31) << 63;
        let fraction = u64::from(bits & 0x7f_ffff | 1 << 22) << 29;
        return f64::from_bits(sign | 0x7ff << 52 | fraction);
    }
    f64::from(value)
}

/// Flushes an f32 subnormal to a zero of the same sign.
fn flush(value: f64) -> f64 {
    if value.abs() < f64::from(f32::MIN_POSITIVE) {
        0.0f64.copysign(value)
    } else {
        value
    }
}

fn round_to_integer(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

fn clamp(value: i128, bits: u32, signed: bool) -> i128 {
    let (low, high) = if signed {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    value.clamp(low, high)
}

/// Returns the low bits of a value, sign- or zero-extended to 64 bits.
fn extend(value: u64, bits: u32, signed: bool) -> u64 {
    let unused = 64 - bits;
    if signed {
        ((value << unused).cast_signed() >> unused).cast_unsigned()
    } else {
        value << unused >> unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_integer(bits: u32, signed: bool, rounding: Rounding) -> Conversion {
        Conversion {
            target: Target::Integer { bits, signed },
            rounding,
            integral: false,
            saturate: false,
            rectify: false,
            flush: false,
            finite: false,
        }
    }

    #[test]
    fn a_conversion_survives_its_encoding() {
        for target in [
            Target::Real(F64),
            Target::Real(BF16),
            Target::Integer {
                bits: 64,
                signed: true,
            },
            Target::Integer {
                bits: 8,
                signed: false,
            },
        ] {
            for rounding in ROUNDINGS {
                let conversion = Conversion {
                    target,
                    rounding,
                    integral: true,
                    saturate: false,
                    rectify: true,
                    flush: true,
                    finite: false,
                };
                assert_eq!(Conversion::from_raw(conversion.into_raw()), conversion);
            }
        }
    }

    #[test]
    fn reals_are_rounded_and_clamped_to_integers() {
        let s32 = to_integer(32, true, Rounding::Nearest);
        assert_eq!(s32.apply(Number::Real(2.5, false)), 2);
        assert_eq!(s32.apply(Number::Real(1e20, false)), i32::MAX as u64);
        assert_eq!(
            s32.apply(Number::Real(-1e20, false)),
            i64::from(i32::MIN) as u64
        );
        let u8_down = to_integer(8, false, Rounding::Down);
        assert_eq!(u8_down.apply(Number::Real(-0.5, false)), 0);
        assert_eq!(u8_down.apply(Number::Real(255.9, false)), 255);
        let u64_zero = to_integer(64, false, Rounding::Zero);
        assert_eq!(u64_zero.apply(Number::Real(f64::INFINITY, true)), u64::MAX);
    }

    #[test]
    fn nan_becomes_zero_or_the_sign_bit() {
        for (bits, signed, double, expected) in [
            (32, true, false, 0),
            (8, false, false, 0),
            (64, false, false, 1 << 63),
            (8, false, true, 0x80),
            (16, false, true, 0x8000),
            (32, false, true, 0x8000_0000),
        ] {
            let conversion = to_integer(bits, signed, Rounding::Zero);
            assert_eq!(conversion.apply(Number::Real(f64::NAN, double)), expected);
        }
    }

    #[test]
    fn integers_wrap_or_saturate() {
        let wrap = to_integer(8, true, Rounding::Zero);
        assert_eq!(wrap.apply(Number::Integer(200)), (-56i64) as u64);
        let saturate = Conversion {
            saturate: true,
            ..wrap
        };
        assert_eq!(saturate.apply(Number::Integer(200)), 127);
        assert_eq!(saturate.apply(Number::Integer(-200)), (-128i64) as u64);
    }

    #[test]
    fn saturation_turns_negative_zero_positive() {
        let conversion = Conversion {
            target: Target::Real(F32),
            rounding: Rounding::Nearest,
            integral: false,
            saturate: true,
            rectify: false,
            flush: false,
            finite: false,
        };
        assert_eq!(conversion.apply(Number::Real(-0.0, false)), 0);
        assert_eq!(conversion.apply(Number::Real(f64::NAN, false)), 0);
        let plain = Conversion {
            saturate: false,
            integral: true,
            ..conversion
        };
        assert_eq!(plain.apply(Number::Real(-0.25, false)), 0x8000_0000);
        assert_eq!(plain.apply(Number::Real(f64::NAN, false)), 0x7fff_ffff);
    }
}

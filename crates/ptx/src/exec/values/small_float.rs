//! The floating-point formats of at most 8 bits, which only conversions use.
//!
//! Their functions are not inlined: handlers would not be vectorized with them, and would take long
//! to compile.

/// A small binary format. Only E5M2 has infinities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SmallFormat {
    /// The number of fraction bits.
    fraction: u32,
    /// The bias of the exponent field.
    bias: i32,
    /// The position of the sign bit.
    sign: u32,
    /// The largest finite number.
    max: u32,
    /// The NaN, if the format has one.
    nan: Option<u32>,
}

/// Four bits of exponent, three of fraction.
pub(crate) const E4M3: SmallFormat = SmallFormat {
    fraction: 3,
    bias: 7,
    sign: 7,
    max: 0x7e,
    nan: Some(0x7f),
};
/// Five bits of exponent, two of fraction.
pub(crate) const E5M2: SmallFormat = SmallFormat {
    fraction: 2,
    bias: 15,
    sign: 7,
    max: 0x7b,
    nan: Some(0x7f),
};
/// Two bits of exponent, three of fraction.
pub(crate) const E2M3: SmallFormat = SmallFormat {
    fraction: 3,
    bias: 1,
    sign: 5,
    max: 0x1f,
    nan: None,
};
/// Three bits of exponent, two of fraction.
pub(crate) const E3M2: SmallFormat = SmallFormat {
    fraction: 2,
    bias: 3,
    sign: 5,
    max: 0x1f,
    nan: None,
};
/// Two bits of exponent, one of fraction.
pub(crate) const E2M1: SmallFormat = SmallFormat {
    fraction: 1,
    bias: 1,
    sign: 3,
    max: 0x7,
    nan: None,
};

/// f16, for stochastic rounding.
pub(crate) const HALF: SmallFormat = SmallFormat {
    fraction: 10,
    bias: 15,
    sign: 15,
    max: 0x7bff,
    nan: Some(0x7fff),
};
/// bfloat16, for stochastic rounding.
pub(crate) const BFLOAT: SmallFormat = SmallFormat {
    fraction: 7,
    bias: 127,
    sign: 15,
    max: 0x7f7f,
    nan: Some(0x7fff),
};

impl SmallFormat {
    /// Returns the nearest number, ties to even. Values that are too large become the largest
    /// number, and so does NaN if the format has none.
    #[inline(never)]
    pub(crate) fn narrow(self, value: f64) -> u32 {
        if value.is_nan() {
            return self.nan.unwrap_or(self.max);
        }
        let sign = u32::from(value.is_sign_negative()) << self.sign;
        let magnitude = value.abs();
        if magnitude >= self.widen(self.max) {
            return sign | self.max;
        }
        sign | self
            .magnitude(magnitude, f64::round_ties_even)
            .min(self.max)
    }

    /// Rounds stochastically: up if the discarded fraction plus `random` of `bits` bits, read as a
    /// fraction, is at least one, otherwise down. Values that are too large become the largest
    /// number, or infinity if the format has it and `is_finite` is `false`.
    #[inline(never)]
    pub(crate) fn narrow_stochastic(
        self,
        value: f64,
        random: u32,
        bits: u32,
        is_finite: bool,
    ) -> u32 {
        if value.is_nan() {
            return self.nan.unwrap_or(self.max);
        }
        let sign = u32::from(value.is_sign_negative()) << self.sign;
        let max = self.max + u32::from(!is_finite);
        if value.is_infinite() {
            return sign | max;
        }
        let random = f64::from(random) / f64::from(bits).exp2();
        let magnitude = self.magnitude(value.abs(), |units| {
            units.floor() + f64::from(u8::from(units.fract() + random >= 1.0))
        });
        sign | magnitude.min(max)
    }

    /// Returns the bits of a magnitude, whose units in the last place are rounded by `round`.
    fn magnitude(self, magnitude: f64, round: impl Fn(f64) -> f64) -> u32 {
        // The exponent of the least significant bit.
        let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
        let lowest = exponent.max(1 - self.bias) - self.fraction.cast_signed();
        let units = round(magnitude * f64::from(-lowest).exp2()) as u32;
        let field = (lowest - (1 - self.bias - self.fraction.cast_signed())).cast_unsigned();
        (field << self.fraction) + units
    }

    /// Returns the value, which an f16 represents exactly.
    #[inline(never)]
    pub(crate) fn widen(self, bits: u32) -> f64 {
        let sign = if bits >> self.sign & 1 == 1 {
            -1.0
        } else {
            1.0
        };
        let magnitude = bits & ((1 << self.sign) - 1);
        if magnitude > self.max {
            return if self == E5M2 && magnitude == self.max + 1 {
                sign * f64::INFINITY
            } else {
                f64::NAN
            };
        }
        let fraction = f64::from(magnitude & ((1 << self.fraction) - 1));
        let field = (magnitude >> self.fraction).cast_signed();
        let unit = f64::from(field.max(1) - self.bias - self.fraction.cast_signed()).exp2();
        let hidden = if field == 0 {
            0.0
        } else {
            f64::from(1 << self.fraction)
        };
        sign * (hidden + fraction) * unit
    }
}

/// The rounding of a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScaleRounding {
    Zero,
    Up,
}

/// Returns the power of two of a scale. NaN is 0xff.
#[inline(never)]
pub(crate) fn narrow_scale(value: f64, rounding: ScaleRounding) -> u32 {
    if value.is_nan() {
        return 0xff;
    }
    let magnitude = value.abs();
    if magnitude.is_infinite() {
        return 0xfe;
    }
    if magnitude < f64::from(-127_i32).exp2() {
        return 0;
    }
    let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
    let inexact = magnitude.to_bits() & ((1 << 52) - 1) != 0;
    let is_up = rounding == ScaleRounding::Up && inexact;
    (exponent + 127 + i32::from(is_up))
        .min(0xfe)
        .cast_unsigned()
}

/// Returns the value of a scale.
#[inline(never)]
pub(crate) fn widen_scale(bits: u32) -> f64 {
    if bits & 0xff == 0xff {
        f64::NAN
    } else {
        f64::from((bits & 0xff).cast_signed() - 127).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random bits round up if they and the discarded fraction are at least one.
    #[test]
    fn stochastic_rounding_adds_random_bits() {
        // In e4m3, the number after 1 is 1.125.
        let one = 0x38;
        let one_and_quarter_step = 1.0 + 0.125 / 4.0;
        for (value, random, expected) in [
            (one_and_quarter_step, 0, one),
            (one_and_quarter_step, 0xbfff, one),
            (one_and_quarter_step, 0xc000, one + 1),
            (one_and_quarter_step, 0xffff, one + 1),
            (-one_and_quarter_step, 0xc000, 0x80 | (one + 1)),
            (1.0, 0xffff, one),
            (0.0, 0xffff, 0),
            (f64::NAN, 0, 0x7f),
            // Half of the least subnormal.
            (2_f64.powi(-10), 0x7fff, 0),
            (2_f64.powi(-10), 0x8000, 1),
            // Values that are too large.
            (448.0, 0xffff, 0x7e),
            (450.0, 0xffff, 0x7e),
            (1e30, 0xffff, 0x7e),
            (f64::INFINITY, 0xffff, 0x7e),
        ] {
            let bits = E4M3.narrow_stochastic(value, random, 16, true);
            assert_eq!(bits, expected, "{value} {random:#x}");
        }
        assert_eq!(E2M1.narrow_stochastic(-1e30, 0, 16, true), 0xf);
        assert_eq!(HALF.narrow_stochastic(65_535.0, 0x1fff, 13, false), 0x7c00);
        assert_eq!(HALF.narrow_stochastic(-65_535.0, 0x1fff, 13, true), 0xfbff);
        let above_one = 1.0 + 2_f64.powi(-8);
        assert_eq!(
            BFLOAT.narrow_stochastic(above_one, 0x8000, 16, false),
            0x3f81
        );
    }

    #[test]
    fn every_number_survives_its_value() {
        for format in [E4M3, E5M2, E2M3, E3M2, E2M1] {
            for bits in 0..1 << (format.sign + 1) {
                let value = format.widen(bits);
                if value.is_finite() {
                    assert_eq!(format.narrow(value), bits, "{format:?} {bits:#x} {value}");
                }
            }
        }
    }

    #[test]
    fn overflow_saturates_and_nan_is_preserved() {
        assert_eq!(E4M3.narrow(1e9), 0x7e);
        assert_eq!(E5M2.narrow(f64::NEG_INFINITY), 0xfb);
        assert_eq!(E4M3.narrow(-f64::NAN), 0x7f);
        assert_eq!(E2M1.narrow(f64::NAN), 7);
        assert_eq!(E5M2.widen(0x7c), f64::INFINITY);
        assert!(E5M2.widen(0x7d).is_nan() && E4M3.widen(0xff).is_nan());
    }

    #[test]
    fn ties_go_to_even_in_subnormals_too() {
        assert_eq!(E4M3.widen(1), 0.001_953_125);
        assert_eq!(E4M3.narrow(0.001_953_125 * 0.5), 0);
        assert_eq!(E4M3.narrow(0.001_953_125 * 1.5), 2);
        assert_eq!(E4M3.narrow(17.0), E4M3.narrow(16.0));
        assert_eq!(E4M3.narrow(19.0), E4M3.narrow(20.0));
        // A carry out of the fraction reaches the exponent.
        assert_eq!(E4M3.narrow(15.9), E4M3.narrow(16.0));
    }

    #[test]
    fn scales_are_rounded_to_powers() {
        assert_eq!(narrow_scale(1.0, ScaleRounding::Up), 127);
        assert_eq!(narrow_scale(1.5, ScaleRounding::Up), 128);
        assert_eq!(narrow_scale(1.5, ScaleRounding::Zero), 127);
        assert_eq!(narrow_scale(f64::NAN, ScaleRounding::Zero), 0xff);
        assert_eq!(narrow_scale(1e300, ScaleRounding::Up), 0xfe);
        assert_eq!(widen_scale(0), f64::from(-127_i32).exp2());
        assert_eq!(widen_scale(narrow_scale(8.0, ScaleRounding::Zero)), 8.0);
    }
}

//! Exact floating-point arithmetic, rounded once in any direction.
//!
//! An exact result is a sign, a power of two and a wide integer, with a sticky bit for nonzero bits
//! below the integer. Rounding it gives the IEEE 754 result in each of the four directions, also
//! for subnormal and overflowing results. Directed rounding and the narrow formats use this path.
//! Rounding to nearest in f32 and f64 uses the host's arithmetic.

/// The direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the nearest, ties to even: `.rn`.
    Nearest,
    /// Towards zero: `.rz`.
    Zero,
    /// Towards minus infinity: `.rm`.
    Down,
    /// Towards plus infinity: `.rp`.
    Up,
}

/// A binary format of IEEE 754's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of the significand, including the hidden bit.
    precision: u32,
    /// Bits of the exponent field.
    exponent_bits: u32,
}

/// Half precision.
pub(crate) const F16: Format = Format {
    precision: 11,
    exponent_bits: 5,
};
/// The upper half of single precision.
pub(crate) const BF16: Format = Format {
    precision: 8,
    exponent_bits: 8,
};
/// Single precision.
pub(crate) const F32: Format = Format {
    precision: 24,
    exponent_bits: 8,
};
/// Double precision.
pub(crate) const F64: Format = Format {
    precision: 53,
    exponent_bits: 11,
};

impl Format {
    const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// Returns the exponent of the least bit of a subnormal number.
    const fn least(self) -> i32 {
        2 - self.bias() - self.precision as i32
    }

    const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << (self.precision - 1)
    }

    const fn sign(self) -> u64 {
        1 << self.sign_bit()
    }

    /// Returns the location of the sign bit.
    pub(crate) const fn sign_bit(self) -> u32 {
        self.precision - 1 + self.exponent_bits
    }

    /// Returns the largest finite number.
    const fn max(self) -> u64 {
        self.infinity() - 1
    }
}

/// A finite number: `±significand × 2^exponent`, plus less than one unit if `sticky`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub(crate) negative: bool,
    pub(crate) significand: u128,
    pub(crate) exponent: i32,
    pub(crate) sticky: bool,
}

impl Exact {
    /// Creates the exact value of a finite f64.
    pub(crate) fn from_f64(value: f64) -> Self {
        let bits = value.to_bits();
        let field = ((bits >> 52) & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let (significand, exponent) = if field == 0 {
            (fraction, F64.least())
        } else {
            (fraction | 1 << 52, F64.least() + field - 1)
        };
        Self {
            negative: value.is_sign_negative(),
            significand: u128::from(significand),
            exponent,
            sticky: false,
        }
    }

    /// Creates the exact value of an integer.
    pub(crate) fn from_integer(negative: bool, magnitude: u64) -> Self {
        Self {
            negative,
            significand: u128::from(magnitude),
            exponent: 0,
            sticky: false,
        }
    }

    /// Returns `true` if the number, rounded to the precision of a format with an unbounded
    /// exponent, is less than the format's least normal number.
    pub(crate) fn is_subnormal(&self, format: Format, rounding: Rounding) -> bool {
        let raised = Self {
            exponent: self.exponent + format.precision as i32,
            ..*self
        };
        let least_normal = u64::from(1 + format.precision) << (format.precision - 1);
        raised.round(format, rounding) & !format.sign() < least_normal
    }

    /// Returns the zero of the same sign.
    pub(crate) fn zero(self) -> Self {
        Self {
            significand: 0,
            sticky: false,
            ..self
        }
    }

    fn is_zero(&self) -> bool {
        self.significand == 0 && !self.sticky
    }

    /// Moves the leading one to bit 125, so that two aligned numbers add without overflow.
    fn normalized(mut self) -> Self {
        let shift = self.significand.leading_zeros() as i32 - 2;
        if self.significand == 0 {
            return self;
        }
        if shift >= 0 {
            self.significand <<= shift;
        } else {
            self.sticky |= self.significand & ((1 << -shift) - 1) != 0;
            self.significand >>= -shift;
        }
        self.exponent -= shift;
        self
    }

    /// Returns the product, exact for operands of up to 64 bits.
    pub(crate) fn product(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
            sticky: false,
        }
    }

    /// Returns the sum. An exact zero from operands of unlike sign is negative when rounding down.
    pub(crate) fn sum(self, other: Self, rounding: Rounding) -> Self {
        if self.is_zero() && other.is_zero() {
            let negative = if self.negative == other.negative {
                self.negative
            } else {
                rounding == Rounding::Down
            };
            return Self { negative, ..self };
        }
        if self.is_zero() {
            return other;
        }
        if other.is_zero() {
            return self;
        }
        let a = self.normalized();
        let b = other.normalized();
        let (big, small) = if (a.exponent, a.significand) >= (b.exponent, b.significand) {
            (a, b)
        } else {
            (b, a)
        };
        let distance = (big.exponent - small.exponent) as u32;
        let (shifted, lost) = if distance > 127 {
            (0, true)
        } else {
            let cut = small.significand & ((1 << distance) - 1) != 0;
            (small.significand >> distance, cut)
        };
        if big.negative == small.negative {
            return Self {
                significand: big.significand + shifted,
                sticky: lost,
                ..big
            };
        }
        // The discarded bits make the difference smaller: borrow one unit.
        let significand = big.significand - shifted - u128::from(lost);
        let exact_zero = significand == 0 && !lost;
        Self {
            negative: if exact_zero {
                rounding == Rounding::Down
            } else {
                big.negative
            },
            significand,
            sticky: lost,
            ..big
        }
    }

    /// Returns the quotient by a number that is not zero.
    pub(crate) fn quotient(self, other: Self) -> Self {
        let dividend = self.normalized();
        Self {
            negative: self.negative != other.negative,
            significand: dividend.significand / other.significand,
            exponent: dividend.exponent - other.exponent,
            sticky: !dividend.significand.is_multiple_of(other.significand),
        }
    }

    /// Returns the square root of a number that is not negative.
    pub(crate) fn square_root(self) -> Self {
        let mut a = self.normalized();
        if a.exponent & 1 != 0 {
            a.significand <<= 1;
            a.exponent -= 1;
        }
        let root = a.significand.isqrt();
        Self {
            negative: self.negative,
            significand: root,
            exponent: a.exponent / 2,
            sticky: root * root != a.significand,
        }
    }

    /// Rounds the number to a format, and returns its bits.
    pub(crate) fn round(self, format: Format, rounding: Rounding) -> u64 {
        let sign = if self.negative { format.sign() } else { 0 };
        if self.is_zero() {
            return sign;
        }
        let length = 128 - self.significand.leading_zeros() as i32;
        let lowest = (self.exponent + length - format.precision as i32).max(format.least());
        let (significand, half, sticky) = self.split_at(lowest - self.exponent);
        let up = match rounding {
            Rounding::Nearest => half && (sticky || significand & 1 == 1),
            Rounding::Zero => false,
            Rounding::Down => self.negative && (half || sticky),
            Rounding::Up => !self.negative && (half || sticky),
        };
        let rounded = significand + u64::from(up);
        // The hidden bit increments the exponent field, and so does a carry out of the fraction.
        let field = (lowest - format.least()) as u64;
        let bits = (field << (format.precision - 1)) + rounded;
        if bits < format.infinity() {
            return sign | bits;
        }
        let away = match rounding {
            Rounding::Nearest => true,
            Rounding::Zero => false,
            Rounding::Down => self.negative,
            Rounding::Up => !self.negative,
        };
        sign | if away {
            format.infinity()
        } else {
            format.max()
        }
    }

    /// Returns the bits above a cut, the bit just below it, and `true` if any lower bit is set.
    fn split_at(&self, cut: i32) -> (u64, bool, bool) {
        match cut {
            ..=0 => ((self.significand << -cut) as u64, false, self.sticky),
            1..=127 => {
                let half = self.significand >> (cut - 1) & 1 == 1;
                let has_lower = self.significand & ((1 << (cut - 1)) - 1) != 0;
                let sticky = has_lower || self.sticky;
                ((self.significand >> cut) as u64, half, sticky)
            }
            128 => {
                let half = self.significand >> 127 == 1;
                (0, half, self.significand << 1 != 0 || self.sticky)
            }
            _ => (0, false, true),
        }
    }
}

/// Returns the exact f64 value of a number in a narrower format.
///
/// A NaN keeps its payload.
pub(crate) fn widen(bits: u64, format: Format) -> f64 {
    let single = f32::from_bits(bits as u32);
    match format {
        F64 => return f64::from_bits(bits),
        // The host would quiet a NaN.
        F32 if !single.is_nan() => return f64::from(single),
        _ => {}
    }
    let fraction_bits = format.precision - 1;
    let fraction = bits & ((1 << fraction_bits) - 1);
    let field = (bits >> fraction_bits) & ((1 << format.exponent_bits) - 1);
    let sign = if bits & format.sign() != 0 {
        1u64 << 63
    } else {
        0
    };
    if field == (1 << format.exponent_bits) - 1 {
        let payload = fraction << (52 - fraction_bits);
        return f64::from_bits(sign | 0x7ff << 52 | payload);
    }
    let (significand, exponent) = if field == 0 {
        (fraction, format.least())
    } else {
        (
            fraction | 1 << fraction_bits,
            format.least() + field as i32 - 1,
        )
    };
    let exact = Exact {
        negative: sign != 0,
        significand: u128::from(significand),
        exponent,
        sticky: false,
    };
    f64::from_bits(exact.round(F64, Rounding::Nearest))
}

/// Rounds a number other than NaN to a format.
pub(crate) fn narrow(value: f64, format: Format, rounding: Rounding) -> u64 {
    let single = value as f32;
    match format {
        F64 => return value.to_bits(),
        F32 if rounding == Rounding::Nearest || f64::from(single) == value => {
            return u64::from(single.to_bits());
        }
        _ => {}
    }
    if value.is_infinite() {
        let sign = if value < 0.0 { format.sign() } else { 0 };
        return sign | format.infinity();
    }
    Exact::from_f64(value).round(format, rounding)
}

#[cfg(test)]
mod tests;

//! Floating-point numbers of every format, and IEEE arithmetic derived from exact sums and
//! products.

use std::cmp::Ordering;

use super::wide::{Rest, Wide};

/// A binary floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// The number of bits.
    pub(crate) width: u32,
    /// The bits of the significand, including the implicit one.
    pub(crate) precision: u32,
    /// The exponent of the smallest subnormal number.
    pub(crate) least: i32,
}

pub(crate) const F16: Format = Format {
    width: 16,
    precision: 11,
    least: -24,
};
pub(crate) const BF16: Format = Format {
    width: 16,
    precision: 8,
    least: -133,
};
pub(crate) const F32: Format = Format {
    width: 32,
    precision: 24,
    least: -149,
};
pub(crate) const F64: Format = Format {
    width: 64,
    precision: 53,
    least: -1074,
};
/// The upper 19 bits of an f32.
pub(crate) const TF32: Format = Format {
    width: 19,
    precision: 11,
    least: -136,
};
pub(crate) const E4M3: Format = Format {
    width: 8,
    precision: 4,
    least: -9,
};
pub(crate) const E5M2: Format = Format {
    width: 8,
    precision: 3,
    least: -16,
};
pub(crate) const E2M3: Format = Format {
    width: 6,
    precision: 4,
    least: -3,
};
pub(crate) const E3M2: Format = Format {
    width: 6,
    precision: 3,
    least: -4,
};
pub(crate) const E2M1: Format = Format {
    width: 4,
    precision: 2,
    least: -1,
};

/// The rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Nearest,
    /// To nearest, ties away from zero.
    Away,
    Zero,
    Down,
    Up,
}

impl Round {
    /// Returns `true` if the magnitude is incremented, given the kept bits and the discarded part.
    fn is_away_from_zero(self, negative: bool, kept: u128, rest: Rest) -> bool {
        match self {
            Self::Nearest => rest == Rest::More || rest == Rest::Half && kept & 1 == 1,
            Self::Away => matches!(rest, Rest::More | Rest::Half),
            Self::Zero => false,
            Self::Down => negative && rest != Rest::Nothing,
            Self::Up => !negative && rest != Rest::Nothing,
        }
    }
}

/// The rounding mode and the modifiers of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) round: Round,
    pub(crate) flush: bool,
    pub(crate) saturate: bool,
    pub(crate) relu: bool,
}

impl Mode {
    pub(crate) const fn new(round: Round) -> Self {
        Self {
            round,
            flush: false,
            saturate: false,
            relu: false,
        }
    }
}

/// The class and value of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    Nan,
    Infinite,
    Finite { mantissa: u64, exponent: i32 },
}

impl Format {
    pub(crate) const fn sign(self) -> u64 {
        1 << (self.width - 1)
    }

    pub(crate) const fn infinity(self) -> u64 {
        ((1 << (self.width - self.precision)) - 1) << (self.precision - 1)
    }

    /// Returns the NaN that arithmetic on `operands` returns, as measured.
    pub(crate) fn nan(self, operands: &[u64]) -> u64 {
        if self != F64 {
            return self.sign() - 1;
        }
        let first = operands.iter().find(|bits| self.is_nan(**bits));
        first.map_or(self.sign() | self.infinity() | 1 << 51, |bits| {
            bits | 1 << 51
        })
    }

    pub(crate) fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign() > self.infinity()
    }

    pub(crate) fn is_negative(self, bits: u64) -> bool {
        bits & self.sign() != 0
    }

    pub(crate) fn class(self, bits: u64) -> Class {
        let magnitude = bits & !self.sign();
        if magnitude >= self.infinity() {
            return if magnitude == self.infinity() {
                Class::Infinite
            } else {
                Class::Nan
            };
        }
        self.finite(bits)
    }

    /// Returns the class for formats whose largest exponent represents finite numbers.
    pub(crate) fn finite(self, bits: u64) -> Class {
        let magnitude = bits & !self.sign();
        let hidden = 1 << (self.precision - 1);
        let fraction = magnitude & (hidden - 1);
        match (magnitude >> (self.precision - 1)) as i32 {
            0 => Class::Finite {
                mantissa: fraction,
                exponent: self.least,
            },
            exponent => Class::Finite {
                mantissa: fraction | hidden,
                exponent: self.least + exponent - 1,
            },
        }
    }

    /// Returns the finite number, exactly.
    pub(crate) fn wide(self, bits: u64) -> Option<Wide> {
        match self.class(bits) {
            Class::Finite { mantissa, exponent } => Some(Wide::new(
                self.is_negative(bits),
                u128::from(mantissa),
                exponent,
            )),
            _ => None,
        }
    }

    /// Returns the exact value; all NaNs are equal.
    pub(crate) fn value(self, bits: u64) -> f64 {
        let magnitude = match self.class(bits) {
            Class::Nan => return f64::NAN,
            Class::Infinite => f64::INFINITY,
            Class::Finite { .. } if self == F64 => return f64::from_bits(bits),
            Class::Finite { mantissa, exponent } => mantissa as f64 * f64::from(exponent).exp2(),
        };
        if self.is_negative(bits) {
            -magnitude
        } else {
            magnitude
        }
    }

    /// Flushes a subnormal number to a zero of the same sign.
    pub(crate) fn flush(self, bits: u64) -> u64 {
        if bits & self.infinity() == 0 {
            bits & self.sign()
        } else {
            bits
        }
    }

    /// Returns the rounded magnitude, without a bound on the exponent.
    pub(crate) fn round_magnitude(self, number: &Wide, round: Round) -> u64 {
        let Some(top) = number.top() else { return 0 };
        let lowest = (top - (self.precision as i32 - 1)).max(self.least);
        let (kept, rest) = number.split(lowest);
        let up = round.is_away_from_zero(number.negative, kept, rest);
        (((lowest - self.least) as u64) << (self.precision - 1)) + kept as u64 + u64::from(up)
    }

    /// Returns the rounded number.
    pub(crate) fn round(self, number: &Wide, round: Round) -> u64 {
        let sign = if number.negative { self.sign() } else { 0 };
        let magnitude = self.round_magnitude(number, round);
        if magnitude < self.infinity() {
            return sign | magnitude;
        }
        let stays_finite = match round {
            Round::Nearest | Round::Away => false,
            Round::Zero => true,
            Round::Down => !number.negative,
            Round::Up => number.negative,
        };
        sign | (self.infinity() - u64::from(stays_finite))
    }

    /// Rounds a product: if subnormal numbers are flushed, zero replaces a result that would be
    /// less than the smallest normal number after rounding with an unbounded exponent. As measured.
    fn round_product(self, number: &Wide, mode: Mode) -> u64 {
        let least_normal = self.least + self.precision as i32 - 1;
        if mode.flush
            && number.top().is_some_and(|top: i32| {
                let (kept, rest) = number.split(top - (self.precision as i32 - 1));
                let up = mode.round.is_away_from_zero(number.negative, kept, rest);
                let carries = up && kept + 1 == 1 << self.precision;
                top + i32::from(carries) < least_normal
            })
        {
            return if number.negative { self.sign() } else { 0 };
        }
        self.round(number, mode.round)
    }

    /// Clamps to [0, 1].
    pub(crate) fn saturate(self, bits: u64) -> u64 {
        let one = self.round(&Wide::integer(1), Round::Nearest);
        if self.is_nan(bits) || self.is_negative(bits) {
            0
        } else {
            bits.min(one)
        }
    }

    /// Replaces a negative number by zero.
    pub(crate) fn relu(self, bits: u64) -> u64 {
        if self.is_negative(bits) && !self.is_nan(bits) {
            0
        } else {
            bits
        }
    }
}

/// An arithmetic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    MultiplyAdd,
    Divide,
    Root,
}

/// Returns the result of an arithmetic instruction.
pub(crate) fn arithmetic(
    format: Format,
    operation: Operation,
    mode: Mode,
    operands: &[u64],
) -> u64 {
    let operands: Vec<u64> = operands
        .iter()
        .map(|bits| {
            if mode.flush {
                format.flush(*bits)
            } else {
                *bits
            }
        })
        .collect();
    let result = match operation {
        Operation::Add => sum(format, mode.round, &operands, operands[0], operands[1]),
        Operation::Subtract if format.is_nan(operands[1]) => format.nan(&operands),
        Operation::Subtract => sum(
            format,
            mode.round,
            &operands,
            operands[0],
            operands[1] ^ format.sign(),
        ),
        Operation::Multiply => product(format, mode, &operands),
        Operation::MultiplyAdd => product_sum(format, mode, &operands),
        Operation::Divide => quotient(format, mode.round, &operands),
        Operation::Root => root(format, mode.round, &operands),
    };
    let result = if mode.flush {
        format.flush(result)
    } else {
        result
    };
    match mode {
        Mode { saturate: true, .. } => format.saturate(result),
        Mode { relu: true, .. } => format.relu(result),
        _ => result,
    }
}

fn sum(format: Format, round: Round, operands: &[u64], a: u64, b: u64) -> u64 {
    if let (Some(a), Some(b)) = (format.wide(a), format.wide(b)) {
        return format.round(&a.plus(b, round == Round::Down), round);
    }
    let infinite = |bits: u64| bits & !format.sign() == format.infinity();
    let clash = infinite(a) && infinite(b) && a != b;
    if format.is_nan(a) || format.is_nan(b) || clash {
        return format.nan(operands);
    }
    if infinite(a) { a } else { b }
}

/// Returns the exact product of finite numbers.
fn exact_product(format: Format, a: u64, b: u64) -> Option<Wide> {
    let (
        Class::Finite {
            mantissa: x,
            exponent: m,
        },
        Class::Finite {
            mantissa: y,
            exponent: n,
        },
    ) = (format.class(a), format.class(b))
    else {
        return None;
    };
    let negative = format.is_negative(a) != format.is_negative(b);
    Some(Wide::new(negative, u128::from(x) * u128::from(y), m + n))
}

fn product(format: Format, mode: Mode, operands: &[u64]) -> u64 {
    let a = operands[0];
    let b = operands[1];
    if let Some(product) = exact_product(format, a, b) {
        return format.round_product(&product, mode);
    }
    let is_zero = |bits: u64| bits & !format.sign() == 0;
    if format.is_nan(a) || format.is_nan(b) || is_zero(a) || is_zero(b) {
        return format.nan(operands);
    }
    (a ^ b) & format.sign() | format.infinity()
}

fn product_sum(format: Format, mode: Mode, operands: &[u64]) -> u64 {
    let a = operands[0];
    let b = operands[1];
    let c = operands[2];
    if operands.iter().any(|bits| format.is_nan(*bits)) {
        return format.nan(operands);
    }
    match (exact_product(format, a, b), format.wide(c)) {
        (Some(product), Some(c)) => {
            format.round_product(&product.plus(c, mode.round == Round::Down), mode)
        }
        (Some(_), None) => c,
        (None, _) => {
            let product = product(format, mode, &[a, b]);
            if format.is_nan(product) {
                product
            } else {
                sum(format, mode.round, operands, product, c)
            }
        }
    }
}

/// Returns the neighbors of an exact magnitude, given a number near it and the comparison of its
/// image with the target.
fn between(format: Format, round: Round, negative: bool, near: u64, order: Ordering) -> u64 {
    let (below, above) = match order {
        Ordering::Less => (near, near + 1),
        Ordering::Equal => (near, near),
        Ordering::Greater => (near - 1, near),
    };
    let magnitude = match round {
        Round::Up if !negative => above,
        Round::Down if negative => above,
        _ => below,
    };
    magnitude | if negative { format.sign() } else { 0 }
}

fn quotient(format: Format, round: Round, operands: &[u64]) -> u64 {
    let a = operands[0];
    let b = operands[1];
    let x = a & !format.sign();
    let y = b & !format.sign();
    let negative = (a ^ b) & format.sign() != 0;
    let sign = if negative { format.sign() } else { 0 };
    if format.is_nan(a) || format.is_nan(b) || x == y && (x == 0 || x == format.infinity()) {
        return format.nan(operands);
    }
    if x == format.infinity() || y == 0 {
        return sign | format.infinity();
    }
    if y == format.infinity() || x == 0 {
        return sign;
    }
    // The host rounds the quotient to nearest. A product shows whether it is above or below the
    // exact quotient.
    let nearest = match format {
        F32 => u64::from((f32::from_bits(x as u32) / f32::from_bits(y as u32)).to_bits()),
        _ => (f64::from_bits(x) / f64::from_bits(y)).to_bits(),
    };
    if round == Round::Nearest {
        return sign | nearest;
    }
    let near = nearest.min(format.infinity() - 1);
    let image = exact_product(format, near, y).expect("both are finite");
    let order = image.compare_magnitudes(&format.wide(x).expect("not finite"));
    between(format, round, negative, near, order)
}

fn root(format: Format, round: Round, operands: &[u64]) -> u64 {
    let a = operands[0];
    if a & !format.sign() == 0 || a == format.infinity() {
        return a;
    }
    if format.is_nan(a) || format.is_negative(a) {
        return format.nan(operands);
    }
    let near = match format {
        F32 => u64::from(f32::from_bits(a as u32).sqrt().to_bits()),
        _ => f64::from_bits(a).sqrt().to_bits(),
    };
    if round == Round::Nearest {
        return near;
    }
    let image = exact_product(format, near, near).expect("roots of finite numbers are finite");
    between(
        format,
        round,
        false,
        near,
        image.compare_magnitudes(&format.wide(a).expect("not finite")),
    )
}

/// The modifiers of `min` and `max`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extreme {
    pub(crate) largest: bool,
    pub(crate) nan: bool,
    pub(crate) flush: bool,
    /// The result has the product of the signs.
    pub(crate) signs: bool,
}

/// Returns the minimum or the maximum of two numbers.
pub(crate) fn extreme(format: Format, form: Extreme, a: u64, b: u64) -> u64 {
    let [mut a, mut b] = [a, b].map(|bits| if form.flush { format.flush(bits) } else { bits });
    let sign = (a ^ b) & format.sign();
    if form.signs {
        (a, b) = (a & !format.sign(), b & !format.sign());
    }
    let picked = match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => format.nan(&[a, b]),
        (true, false) | (false, true) if form.nan => format.nan(&[a, b]),
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            // The bits of positive numbers are ordered as integers; those of negative numbers in
            // reverse.
            let key = |bits: u64| {
                let magnitude = (bits & !format.sign()).cast_signed();
                if format.is_negative(bits) {
                    -magnitude - 1
                } else {
                    magnitude
                }
            };
            if (key(a) < key(b)) == form.largest {
                b
            } else {
                a
            }
        }
    };
    if form.signs && !format.is_nan(picked) {
        picked | sign
    } else {
        picked
    }
}

//! Reference results of matrix products: each number is an integer times a power of two, and sums
//! are integer sums.
//!
//! Sums of products match an H100 bit for bit: see `tests/tests/instructions/README.md`.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

/// The unit that computes a product, which determines the form of its sum.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    QuadPair,
    Warp,
    Warpgroup,
}

/// A floating-point format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    /// The number of bits of an element, of which the lowest `unused` are ignored.
    pub(super) bits: u32,
    unused: u32,
    exponent: u32,
    fraction: u32,
    /// `true` if the largest exponent represents finite numbers and one NaN.
    is_finite: bool,
}

/// The type of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Real(Format),
    Integer { bits: u32, is_signed: bool },
}

impl Kind {
    pub(super) fn from_name(name: &str) -> Self {
        let real = |bits, unused, exponent, fraction, is_finite| {
            Self::Real(Format {
                bits,
                unused,
                exponent,
                fraction,
                is_finite,
            })
        };
        match name {
            "f16" => real(16, 0, 5, 10, false),
            "bf16" => real(16, 0, 8, 7, false),
            "tf32" => real(32, 13, 8, 10, false),
            "f32" => real(32, 0, 8, 23, false),
            "e4m3" => real(8, 0, 4, 3, true),
            "e5m2" => real(8, 0, 5, 2, false),
            _ => Self::Integer {
                bits: name[1..].parse().expect("the type has a width"),
                is_signed: name.starts_with('s'),
            },
        }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Real(format) => format.bits,
            Self::Integer { bits, .. } => bits,
        }
    }

    /// Returns a random element. For floating-point formats, about half are numbers close to 1, the
    /// others have random bits, and some are zeros, subnormals, infinities or NaNs.
    pub(super) fn any(self, random: &mut Random) -> u64 {
        let bits = random.next() & u64::MAX >> (64 - self.bits());
        let Self::Real(format) = self else {
            let extremes = [
                0,
                1 << (self.bits() - 1),
                (1 << (self.bits() - 1)) - 1,
                u64::MAX >> (64 - self.bits()),
            ];
            return if random.one_in(4) {
                extremes[random.below(4)]
            } else {
                bits
            };
        };
        let field = u64::MAX >> (64 - format.exponent) << (format.bits - 1 - format.exponent);
        let sign = bits & 1 << (format.bits - 1);
        let near = (1_u64 << (format.exponent - 1)) - 3 + random.next() % 6;
        let other = bits & !field | near << (format.bits - 1 - format.exponent);
        match random.below(16) {
            0 => sign,
            1 => bits & !field,
            2..9 => other,
            _ if bits & field == field && !random.one_in(64) => other,
            _ => bits,
        }
    }

    fn integer(self, bits: u64) -> i64 {
        match self {
            Self::Integer {
                bits: width,
                is_signed: true,
            } => (bits << (64 - width)).cast_signed() >> (64 - width),
            _ => bits.cast_signed(),
        }
    }

    fn format(self) -> Format {
        match self {
            Self::Real(format) => format,
            Self::Integer { .. } => panic!("an integer has no format"),
        }
    }
}

/// A random number generator seeded with a name.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        Self(hasher.finish())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 29
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 8) as usize % bound
    }

    pub(super) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// A number as an integer multiple of a power of two.
#[derive(Clone, Copy, Debug)]
enum Number {
    Nan,
    Infinite {
        is_negative: bool,
    },
    /// The integer times two to the power of `unit`; `top` is the exponent for the alignment of
    /// sums.
    Finite {
        count: i128,
        unit: i32,
        top: i32,
    },
}

impl Number {
    fn from_bits(format: Format, bits: u64) -> Self {
        let bits = bits >> format.unused;
        let is_negative = bits >> (format.exponent + format.fraction) & 1 == 1;
        let fraction = bits & u64::MAX >> (64 - format.fraction);
        let field = bits >> format.fraction & u64::MAX >> (64 - format.exponent);
        let last = u64::MAX >> (64 - format.exponent);
        if field == last && (!format.is_finite || fraction + 1 == 1 << format.fraction) {
            let is_infinite = fraction == 0 && !format.is_finite;
            return if is_infinite {
                Self::Infinite { is_negative }
            } else {
                Self::Nan
            };
        }
        let top = field.max(1) as i32 - (1 << (format.exponent - 1)) + 1;
        let magnitude = i128::from(fraction | u64::from(field > 0) << format.fraction);
        let count = if is_negative { -magnitude } else { magnitude };
        Self::Finite {
            count,
            unit: top - format.fraction as i32,
            top,
        }
    }

    /// Returns the number as f16, in which subnormal 8-bit numbers are normal.
    fn as_half(self) -> Self {
        let Self::Finite { count, unit, .. } = self else {
            return self;
        };
        let first = 127 - count.unsigned_abs().max(1).leading_zeros() as i32 + unit;
        Self::Finite {
            count,
            unit,
            top: first.max(-14),
        }
    }

    fn times(self, other: Self) -> Self {
        let sign = |number: Self| match number {
            Self::Infinite { is_negative } => Some(is_negative),
            Self::Finite { count: 0, .. } | Self::Nan => None,
            Self::Finite { count, .. } => Some(count < 0),
        };
        match (self, other) {
            (
                Self::Finite { count, unit, top },
                Self::Finite {
                    count: by,
                    unit: of,
                    top: at,
                },
            ) => Self::Finite {
                count: count * by,
                unit: unit + of,
                top: top + at,
            },
            _ => match (sign(self), sign(other)) {
                (Some(first), Some(second)) => Self::Infinite {
                    is_negative: first != second,
                },
                _ => Self::Nan,
            },
        }
    }
}

/// Returns the sum of finite numbers, in units of a power of two.
fn sum(numbers: &[Number], below: i32) -> Number {
    let mut sign = None;
    for number in numbers {
        match (*number, sign) {
            (Number::Nan, _) => return Number::Nan,
            (Number::Infinite { is_negative }, Some(other)) if is_negative != other => {
                return Number::Nan;
            }
            (Number::Infinite { is_negative }, _) => sign = Some(is_negative),
            _ => {}
        }
    }
    if let Some(is_negative) = sign {
        return Number::Infinite { is_negative };
    }
    let finite = numbers.iter().filter_map(|number| match *number {
        Number::Finite { count, unit, top } if count != 0 => Some((count, unit, top)),
        _ => None,
    });
    let top = finite.clone().map(|(_, _, top)| top).max().unwrap_or(0);
    Number::Finite {
        count: finite
            .map(|(count, unit, _): (i128, i32, i32)| {
                let shift = unit - (top - below);
                // Division truncates toward zero.
                if shift >= 0 {
                    count << shift
                } else {
                    count / (1_i128 << (-shift).min(100))
                }
            })
            .sum(),
        unit: top - below,
        top,
    }
}

/// Returns the bits of a sum: half precision rounds to nearest even, other formats truncate after
/// `kept` bits.
fn round(number: Number, to: Format, kept: u32) -> u64 {
    let (count, unit) = match number {
        Number::Nan => return u64::MAX >> (65 - to.bits),
        Number::Infinite { is_negative } => {
            return infinity(to) | u64::from(is_negative) << (to.bits - 1);
        }
        Number::Finite { count: 0, .. } => return 0,
        Number::Finite { count, unit, .. } => (count, unit),
    };
    let magnitude = count.unsigned_abs();
    let first = 127 - magnitude.leading_zeros() as i32 + unit;
    let bias = (1 << (to.exponent - 1)) - 1;
    let last = first.max(1 - bias) - to.fraction as i32;
    let units = if to.bits == 16 {
        nearest(magnitude, last - unit)
    } else {
        let cut = first - kept as i32;
        let rough = at(magnitude, cut.max(last) - unit);
        at(rough, last - cut.max(last))
    };
    // Rounding up to the next power of two carries into the exponent.
    let field = ((last + to.fraction as i32 + bias) as u128 - 1) << to.fraction;
    let bits = (field + units).min(u128::from(infinity(to))) as u64;
    if bits == 0 {
        0
    } else {
        bits | u64::from(count < 0) << (to.bits - 1)
    }
}

fn infinity(format: Format) -> u64 {
    u64::MAX >> (64 - format.exponent) << format.fraction
}

/// Returns a number in units of a power of two, truncated.
fn at(number: u128, shift: i32) -> u128 {
    if shift <= 0 {
        number << -shift
    } else {
        number.checked_shr(shift as u32).unwrap_or(0)
    }
}

fn nearest(number: u128, shift: i32) -> u128 {
    if shift <= 0 {
        return number << -shift;
    }
    let whole = at(number, shift);
    let remainder = number - at(whole, -shift.min(120));
    let half = 1_u128 << (shift - 1).min(120);
    whole + u128::from(remainder > half || remainder == half && whole % 2 == 1)
}

/// The product of a row and a column.
pub(super) struct Dot<'a> {
    pub(super) maker: Maker,
    pub(super) factors: [Kind; 2],
    /// The types of the result and the addend.
    pub(super) ends: [Kind; 2],
    /// The multiplied elements.
    pub(super) pairs: &'a [(u64, u64)],
    pub(super) addend: u64,
    pub(super) saturates: bool,
    /// `true` if exactly one factor is negated.
    pub(super) is_negated: bool,
}

impl Dot<'_> {
    /// Returns the bits of the result.
    pub(super) fn result(&self) -> u64 {
        let [left, right] = self.factors;
        if let Kind::Integer { bits, .. } = left {
            let products = self
                .pairs
                .iter()
                .map(|&(a, b)| left.integer(a) * right.integer(b));
            let sum = products.sum::<i64>() + self.ends[1].integer(self.addend);
            let clamped = if self.saturates {
                sum.clamp(i32::MIN.into(), i32::MAX.into())
            } else {
                sum
            };
            debug_assert!(bits <= 8, "products of small integers");
            return u64::from(clamped as u32);
        }
        match self.maker {
            Maker::QuadPair => self.in_steps(),
            Maker::Warp if left.bits() == 8 => self.in_parts(),
            _ => {
                let (below, kept) = if left.bits() == 8 { (13, 13) } else { (25, 23) };
                let mut all: Vec<Number> = self
                    .pairs
                    .iter()
                    .map(|pair| self.product(pair.0, pair.1))
                    .collect();
                all.push(Number::from_bits(self.ends[1].format(), self.addend));
                round(sum(&all, below), self.ends[0].format(), kept)
            }
        }
    }

    fn product(&self, a: u64, b: u64) -> Number {
        let [left, right] = self.factors.map(Kind::format);
        let a = if self.is_negated {
            a ^ 1 << (left.bits - 1)
        } else {
            a
        };
        Number::from_bits(left, a).times(Number::from_bits(right, b))
    }

    /// Computes the product of 8-bit numbers, converted to f16, in two parts. The addend is added
    /// last, rounded to its type.
    fn in_parts(&self) -> u64 {
        let to = self.ends[0].format();
        let mut bits = 0;
        for part in 0..2 {
            let products = self
                .pairs
                .iter()
                .enumerate()
                .filter(|(at, _)| at % 4 / 2 == part);
            let halves = |(a, b): (u64, u64)| {
                let [left, right] = self.factors.map(Kind::format);
                Number::from_bits(left, a)
                    .as_half()
                    .times(Number::from_bits(right, b).as_half())
            };
            let mut all: Vec<Number> = products.map(|(_, pair)| halves(*pair)).collect();
            all.push(Number::from_bits(to, bits));
            bits = round(sum(&all, 25), to, 23);
        }
        if to.bits == 16 {
            return round(
                sum(
                    &[
                        Number::from_bits(to, bits),
                        Number::from_bits(to, self.addend),
                    ],
                    60,
                ),
                to,
                23,
            );
        }
        single(f32::from_bits(bits as u32) + f32::from_bits(self.addend as u32))
    }

    /// Computes four products in single precision, one after the other or in two pairs.
    fn in_steps(&self) -> u64 {
        let [half, _] = self.factors.map(Kind::format);
        let value = |format: Format, bits: u64| match Number::from_bits(format, bits) {
            Number::Nan => f32::NAN,
            Number::Infinite { is_negative: true } => f32::NEG_INFINITY,
            Number::Infinite { .. } => f32::INFINITY,
            Number::Finite { count: 0, .. } => {
                if bits >> (format.bits - 1) == 1 {
                    -0.0
                } else {
                    0.0
                }
            }
            Number::Finite { count, unit, .. } => (count as f64 * f64::from(unit).exp2()) as f32,
        };
        let terms: Vec<(f32, f32)> = self
            .pairs
            .iter()
            .map(|&(a, b)| (value(half, a), value(half, b)))
            .collect();
        let addend = value(self.ends[1].format(), self.addend);
        if self.ends[0].bits() == 32 {
            return single(
                terms
                    .iter()
                    .fold(0.0, |sum: f32, (a, b)| a.mul_add(*b, sum))
                    + addend,
            );
        }
        let pair = |at: usize| {
            terms[at + 1]
                .0
                .mul_add(terms[at + 1].1, terms[at].0 * terms[at].1)
        };
        let total = pair(0) + pair(2);
        let last = f64::from(total) + f64::from(addend);
        if last == 0.0 {
            return u64::from(last.is_sign_negative()) << 15;
        }
        let number = Number::from_bits(Kind::from_name("f32").format(), u64::from(total.to_bits()));
        round(
            sum(
                &[
                    number,
                    Number::from_bits(self.ends[1].format(), self.addend),
                ],
                100,
            ),
            half,
            23,
        )
    }
}

/// Returns the bits of a single-precision number; all NaNs are equal.
fn single(value: f32) -> u64 {
    u64::from(if value.is_nan() {
        0x7fff_ffff
    } else {
        value.to_bits()
    })
}

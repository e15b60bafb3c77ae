//! Floating-point instructions on one lane, bit for bit as on hardware.
//!
//! Rounding to nearest uses the host's arithmetic. Every other mode is a [`Mode`] operand, a
//! constant row like any immediate: it uses [`exact`](super::exact), or for f32 the host's f64.

use super::exact::{self, Exact, F16, F32, F64, Format, Rounding};
use super::fused::Fused as _;
use super::lane::Lane;

/// A floating-point type of the simulated device.
pub(crate) trait Real: Lane {
    /// The binary format.
    const FORMAT: Format;
    /// Returns the value, which is exact.
    fn to_f64(self) -> f64;
    /// Creates the number with these bits.
    fn from_low_bits(bits: u64) -> Self;
    /// Returns the bits, zero-extended.
    fn bits(self) -> u64;
    /// Creates the NaN that results from arithmetic on these operands.
    fn nan(operands: &[Self]) -> Self;
    /// Returns `a * b + c` of three numbers of this type, rounded once. Returns `None` if the host's
    /// arithmetic does not suffice, or if the result is not finite, or if it may be subnormal.
    #[inline(always)]
    fn quick_fma(_a: f64, _b: f64, _c: f64, _rounding: Rounding) -> Option<Self> {
        None
    }
}

impl Real for f32 {
    const FORMAT: Format = F32;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn from_low_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    #[inline(always)]
    fn nan(_operands: &[Self]) -> Self {
        Self::from_bits(0x7fff_ffff)
    }
    #[inline(always)]
    fn quick_fma(a: f64, b: f64, c: f64, rounding: Rounding) -> Option<Self> {
        const MIN: f64 = 2.0 * f32::MIN_POSITIVE as f64;
        // The product is exact, and so is the sum with its error (Knuth's algorithm TwoSum).
        let product = a * b;
        let sum = product + c;
        let added = sum - product;
        let error = (product - (sum - added)) + (c - added);
        // A NaN is in no range.
        if !(MIN..f64::INFINITY).contains(&sum.abs()) {
            return None;
        }
        let nearest = sum as f32;
        let distance = f64::from(nearest) - sum;
        let is_above = distance > 0.0 || distance == 0.0 && error < 0.0;
        let is_below = distance < 0.0 || distance == 0.0 && error > 0.0;
        Some(match rounding {
            Rounding::Nearest => (a as f32).fused(b as f32, c as f32),
            Rounding::Zero if sum > 0.0 && is_above => nearest.next_down(),
            Rounding::Zero if sum < 0.0 && is_below => nearest.next_up(),
            Rounding::Down if is_above => nearest.next_down(),
            Rounding::Up if is_below => nearest.next_up(),
            _ => nearest,
        })
    }
}

impl Real for f64 {
    const FORMAT: Format = F64;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_low_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
    /// Returns the NaN among the operands, quieted. The second operand takes precedence, then the
    /// third, then the first. Without a NaN, returns the default NaN.
    #[inline(always)]
    fn nan(operands: &[Self]) -> Self {
        let (first, others) = operands.split_at(operands.len().min(1));
        let nan = others
            .iter()
            .chain(first)
            .find(|operand| operand.to_bits() & (u64::MAX >> 1) > 0x7ff << 52);
        match nan {
            Some(operand) => quiet64(*operand),
            None => Self::from_bits(0xfff8 << 48),
        }
    }
}

/// The rounding of an instruction, and the treatment of its operands and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(u32);

impl Mode {
    /// To nearest, with subnormals.
    pub(crate) const NEAREST: Self = Self(0);
    /// To nearest, without subnormals.
    const FLUSHING: Self = Self::new(Rounding::Nearest, true, false);
    const FLUSH: u32 = 4;
    const SATURATE: u32 = 8;
    const RECTIFY: u32 = 16;
    const ZERO_OUT_OF_BOUNDS: u32 = 32;

    /// Creates a mode, as the value of a constant row.
    pub(crate) const fn new(rounding: Rounding, flush: bool, saturate: bool) -> Self {
        let flush = if flush { Self::FLUSH } else { 0 };
        let saturate = if saturate { Self::SATURATE } else { 0 };
        Self(rounding as u32 | flush | saturate)
    }

    /// Returns the mode in which negative results become zero: `.relu`.
    pub(crate) fn rectified(self) -> Self {
        Self(self.0 | Self::RECTIFY)
    }

    /// Returns the mode in which a product with an out-of-bounds value of a tensor copy is zero,
    /// and so is the sum: `.oob`.
    pub(crate) fn with_zeroed_out_of_bounds(self) -> Self {
        Self(self.0 | Self::ZERO_OUT_OF_BOUNDS)
    }

    /// Returns the value of the constant row.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    fn rounding(self) -> Rounding {
        match self.0 & 3 {
            0 => Rounding::Nearest,
            1 => Rounding::Zero,
            2 => Rounding::Down,
            _ => Rounding::Up,
        }
    }

    /// Returns an operand, flushed if the mode requires it.
    fn input<T: Real>(self, value: T) -> T {
        if self.0 & Self::FLUSH == 0 {
            return value;
        }
        flush_any(value)
    }

    /// Returns a result, flushed and saturated if the mode requires it.
    fn output<T: Real>(self, value: T) -> T {
        let value = self.input(value);
        if self.0 & Self::SATURATE != 0 {
            return saturate(value);
        }
        if self.0 & Self::RECTIFY != 0 {
            rectify(value)
        } else {
            value
        }
    }

    fn round<T: Real>(self, exact: Exact) -> T {
        T::from_low_bits(exact.round(T::FORMAT, self.rounding()))
    }

    /// Rounds a product. Unlike [`Mode::round`], it also flushes products that are subnormal before
    /// rounding and round to the least normal number, as hardware does.
    fn round_product<T: Real>(self, exact: Exact) -> T {
        let flushes = self.0 & Self::FLUSH != 0 && matches!(T::FORMAT, F32 | F16);
        let exact = if flushes && exact.is_subnormal(T::FORMAT, self.rounding()) {
            exact.zero()
        } else {
            exact
        };
        self.round(exact)
    }
}

impl Lane for Mode {
    type Raw = u32;
    #[inline(always)]
    fn from_raw(raw: u32) -> Self {
        Self(raw)
    }
    #[inline(always)]
    fn into_raw(self) -> u32 {
        self.0
    }
}

/// Clamps to [0, 1]; NaN and -0 become +0.
pub(crate) fn saturate<T: Real>(value: T) -> T {
    let number = value.to_f64();
    if number >= 1.0 {
        T::from_low_bits(exact::narrow(1.0, T::FORMAT, Rounding::Nearest))
    } else if number > 0.0 {
        value
    } else {
        T::from_low_bits(0)
    }
}

/// Replaces negative numbers and -0 by +0; keeps NaN.
pub(crate) fn rectify<T: Real>(value: T) -> T {
    let number = value.to_f64();
    if number.is_nan() || number > 0.0 {
        value
    } else {
        T::from_low_bits(0)
    }
}

/// `a + b` in any mode.
pub(crate) fn add<T: Real>(a: T, b: T, mode: Mode) -> T {
    let a = mode.input(a);
    let b = mode.input(b);
    let x = a.to_f64();
    let y = b.to_f64();
    let result = if let Some(sum) = T::quick_fma(x, 1.0, y, mode.rounding()) {
        sum
    } else if x.is_finite() && y.is_finite() {
        mode.round(Exact::from_f64(x).sum(Exact::from_f64(y), mode.rounding()))
    } else {
        special(x + y, &[a, b])
    };
    mode.output(result)
}

/// `a - b` in any mode.
pub(crate) fn sub<T: Real>(a: T, b: T, mode: Mode) -> T {
    let a = mode.input(a);
    let b = mode.input(b);
    let x = a.to_f64();
    let y = b.to_f64();
    let result = if let Some(difference) = T::quick_fma(x, 1.0, -y, mode.rounding()) {
        difference
    } else if x.is_finite() && y.is_finite() {
        mode.round(Exact::from_f64(x).sum(Exact::from_f64(-y), mode.rounding()))
    } else {
        special(x - y, &[a, b])
    };
    mode.output(result)
}

/// `a * b` in any mode.
pub(crate) fn mul<T: Real>(a: T, b: T, mode: Mode) -> T {
    let a = mode.input(a);
    let b = mode.input(b);
    let x = a.to_f64();
    let y = b.to_f64();
    let result = if let Some(product) = T::quick_fma(x, y, 0.0, mode.rounding()) {
        product
    } else if x.is_finite() && y.is_finite() {
        mode.round_product(Exact::from_f64(x).product(Exact::from_f64(y)))
    } else {
        special(x * y, &[a, b])
    };
    mode.output(result)
}

/// `a * b` of f32, to nearest, with flushed subnormals.
#[inline(always)]
pub(crate) fn mul_flushing(a: f32, b: f32) -> f32 {
    let result = flush(canonical(flush(a) * flush(b)));
    if result.abs() == f32::MIN_POSITIVE {
        mul(a, b, Mode::FLUSHING)
    } else {
        result
    }
}

/// `a * b + c` of f32, to nearest, with flushed subnormals.
#[inline(always)]
pub(crate) fn fma_flushing(a: f32, b: f32, c: f32) -> f32 {
    let result = flush(canonical(flush(a).fused(flush(b), flush(c))));
    if result.abs() == f32::MIN_POSITIVE {
        fma(a, b, c, Mode::FLUSHING)
    } else {
        result
    }
}

/// The 16-bit NaN, of either sign, that tensor copies write for out-of-bounds elements of f16 and
/// bf16, as on an H100.
const OUT_OF_BOUNDS: u64 = 0x7ff7;

/// `a * b + c`, rounded once, in any mode.
pub(crate) fn fma<T: Real>(a: T, b: T, c: T, mode: Mode) -> T {
    if mode.0 & Mode::ZERO_OUT_OF_BOUNDS != 0
        && [a, b]
            .iter()
            .any(|factor| factor.bits() & 0x7fff == OUT_OF_BOUNDS)
    {
        return T::from_low_bits(0);
    }
    let a = mode.input(a);
    let b = mode.input(b);
    let c = mode.input(c);
    let x = a.to_f64();
    let y = b.to_f64();
    let z = c.to_f64();
    let result = if let Some(result) = T::quick_fma(x, y, z, mode.rounding()) {
        result
    } else if x.is_finite() && y.is_finite() && z.is_finite() {
        let product = Exact::from_f64(x).product(Exact::from_f64(y));
        mode.round_product(product.sum(Exact::from_f64(z), mode.rounding()))
    } else {
        // The product must not overflow by itself: only its class matters here.
        let class = if x.is_finite() && y.is_finite() {
            z
        } else {
            x * y + z
        };
        special(class, &[a, b, c])
    };
    mode.output(result)
}

/// `a / b` in any mode.
pub(crate) fn div<T: Real>(a: T, b: T, mode: Mode) -> T {
    let a = mode.input(a);
    let b = mode.input(b);
    let x = a.to_f64();
    let y = b.to_f64();
    let result = if x.is_finite() && y.is_finite() && y != 0.0 {
        mode.round(Exact::from_f64(x).quotient(Exact::from_f64(y)))
    } else {
        // Division of two NaNs returns the first.
        special(x / y, &[b, a])
    };
    mode.output(result)
}

/// `1 / a` in any mode.
pub(crate) fn rcp<T: Real>(a: T, mode: Mode) -> T {
    div(
        T::from_low_bits(exact::narrow(1.0, T::FORMAT, Rounding::Nearest)),
        a,
        mode,
    )
}

/// Returns the square root in any mode.
pub(crate) fn sqrt<T: Real>(a: T, mode: Mode) -> T {
    let a = mode.input(a);
    let x = a.to_f64();
    let result = if x.is_finite() && x > 0.0 {
        mode.round(Exact::from_f64(x).square_root())
    } else {
        special(x.sqrt(), &[a])
    };
    mode.output(result)
}

/// Returns an infinite, zero or NaN result of operands of which at least one is special.
fn special<T: Real>(class: f64, operands: &[T]) -> T {
    if class.is_nan() {
        T::nan(operands)
    } else {
        T::from_low_bits(exact::narrow(class, T::FORMAT, Rounding::Nearest))
    }
}

/// Flushes a subnormal number to a zero of the same sign.
#[inline(always)]
pub(crate) fn flush(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    })
}

/// Flushes f32 and f16 like [`flush`]; other types have no flushing.
pub(crate) fn flush_any<T: Real>(value: T) -> T {
    let bits = value.bits();
    match T::FORMAT {
        F32 => T::from_low_bits(flush(f32::from_bits(bits as u32)).bits()),
        F16 if bits & 0x7c00 == 0 => T::from_low_bits(bits & 0x8000),
        _ => value,
    }
}

/// Returns the result of an f32 instruction, in which every NaN is the canonical NaN.
///
/// The test is on the bits: the compiler may remove a test on the value, because it treats all NaNs
/// as equal.
#[inline(always)]
pub(crate) fn canonical(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 {
        0x7fff_ffff
    } else {
        bits
    })
}

/// Returns the result of an f64 instruction, in which a NaN inherits the payload of an operand.
#[inline(always)]
pub(crate) fn inherit<const N: usize>(value: f64, operands: [f64; N]) -> f64 {
    if value.to_bits() & (u64::MAX >> 1) > 0x7ff << 52 {
        f64::nan(&operands)
    } else {
        value
    }
}

/// Returns the smaller number. -0 is less than +0, and a number takes precedence over NaN.
#[inline(always)]
pub(crate) fn min<T: Real>(a: T, b: T) -> T {
    pick(a, b, std::cmp::Ordering::is_le)
}

/// Returns the larger number. +0 is greater than -0, and a number takes precedence over NaN.
#[inline(always)]
pub(crate) fn max<T: Real>(a: T, b: T) -> T {
    pick(a, b, std::cmp::Ordering::is_ge)
}

/// Returns the smaller number, or NaN if an operand is NaN.
#[inline(always)]
pub(crate) fn min_nan<T: Real>(a: T, b: T) -> T {
    if a.to_f64().is_nan() || b.to_f64().is_nan() {
        return T::nan(&[a, b]);
    }
    min(a, b)
}

/// Returns the larger number, or NaN if an operand is NaN.
#[inline(always)]
pub(crate) fn max_nan<T: Real>(a: T, b: T) -> T {
    if a.to_f64().is_nan() || b.to_f64().is_nan() {
        return T::nan(&[a, b]);
    }
    max(a, b)
}

#[inline(always)]
fn pick<T: Real>(a: T, b: T, first: impl Fn(std::cmp::Ordering) -> bool) -> T {
    let x = a.to_f64();
    let y = b.to_f64();
    match (x.is_nan(), y.is_nan()) {
        (true, true) => T::nan(&[a, b]),
        (true, false) => b,
        (false, true) => a,
        // The total order of numbers other than NaN distinguishes -0 from +0.
        (false, false) if first(x.total_cmp(&y)) => a,
        _ => b,
    }
}

/// Returns the magnitude. An f32 NaN becomes the canonical NaN.
#[inline(always)]
pub(crate) fn abs32(value: f32) -> f32 {
    canonical(value.abs())
}

/// Returns the negated value. An f32 NaN becomes the canonical NaN.
#[inline(always)]
pub(crate) fn neg32(value: f32) -> f32 {
    canonical(-value)
}

/// Returns the quieted NaN.
#[inline(always)]
fn quiet64(value: f64) -> f64 {
    f64::from_bits(value.to_bits() | 1 << 51)
}

/// Returns the magnitude. An f64 NaN is quieted and keeps its sign.
#[inline(always)]
pub(crate) fn abs64(value: f64) -> f64 {
    if value.is_nan() {
        quiet64(value)
    } else {
        value.abs()
    }
}

/// Returns the negated value. An f64 NaN is quieted and keeps its sign.
#[inline(always)]
pub(crate) fn neg64(value: f64) -> f64 {
    if value.is_nan() {
        quiet64(value)
    } else {
        -value
    }
}

/// Returns one of two magnitudes, with the product of the signs.
#[inline(always)]
pub(crate) fn with_multiplied_signs<T: Real>(a: T, b: T, pick: impl Fn(T, T) -> T) -> T {
    let sign = 1 << T::FORMAT.sign_bit();
    let magnitude = pick(
        T::from_low_bits(a.bits() & !sign),
        T::from_low_bits(b.bits() & !sign),
    );
    if magnitude.to_f64().is_nan() {
        magnitude
    } else {
        T::from_low_bits(magnitude.bits() | (a.bits() ^ b.bits()) & sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::values::narrow::Half;

    const NEAREST: Mode = Mode::NEAREST;

    fn mode(rounding: Rounding) -> Mode {
        Mode::new(rounding, false, false)
    }

    /// Numbers of all magnitudes, and those whose sums and products are close to others.
    fn random_singles(random: &mut fastrand::Rng) -> [f32; 3] {
        let [a, b, c] = [(); 3].map(|()| f32::from_bits(random.u32(..)));
        let near = |x: f32, random: &mut fastrand::Rng| {
            f32::from_bits(x.to_bits().wrapping_add(random.u32(..4)).wrapping_sub(2))
        };
        match random.u8(..5) {
            0 => [a, b, c],
            1 => [a, b, near(-(a * b), random)],
            2 => [near(1.0, random), near(a, random), a * f32::EPSILON],
            3 => [near(1.0, random), 0.5 + random.f32(), random.f32() - 0.5],
            _ => [random.f32() * 300.0, near(1.0, random), 12_583_037.0],
        }
    }

    #[test]
    fn quick_results_are_exact() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut quick = 0;
        for _ in 0..if cfg!(miri) { 100 } else { 50_000 } {
            let singles = random_singles(&mut random);
            let [x, y, z] = singles.map(f64::from);
            for rounding in [
                Rounding::Nearest,
                Rounding::Zero,
                Rounding::Down,
                Rounding::Up,
            ] {
                if let Some(result) = f32::quick_fma(x, y, z, rounding) {
                    let product = Exact::from_f64(x).product(Exact::from_f64(y));
                    let sum = product.sum(Exact::from_f64(z), rounding);
                    let expected = sum.round(F32, rounding);
                    assert_eq!(
                        u64::from(result.to_bits()),
                        expected,
                        "{singles:?} {rounding:?}"
                    );
                    quick += 1;
                }
            }
        }
        assert!(cfg!(miri) || quick > 100_000, "{quick}");
    }

    #[test]
    fn f32_nans_are_canonical_and_f64_nans_keep_payloads() {
        let nan = f32::from_bits(0xffc0_1234);
        assert_eq!(add(nan, 1.0, NEAREST).to_bits(), 0x7fff_ffff);
        assert_eq!(abs32(nan).to_bits(), 0x7fff_ffff);
        assert_eq!(neg32(nan).to_bits(), 0x7fff_ffff);
        let nan = f64::from_bits(0x7ff0_0000_0000_1234);
        assert_eq!(mul(2.0, nan, NEAREST).to_bits(), 0x7ff8_0000_0000_1234);
        // Hardware quiets the NaN and keeps its sign.
        assert_eq!(neg64(nan).to_bits(), 0x7ff8_0000_0000_1234);
        assert_eq!(abs64(-nan).to_bits(), 0xfff8_0000_0000_1234);
        assert_eq!(
            add(f64::INFINITY, f64::NEG_INFINITY, NEAREST).to_bits(),
            0xfff8 << 48
        );
        assert_eq!(add(Half(0x7c00), Half(0xfc00), NEAREST), Half(0x7fff));
    }

    #[test]
    fn min_and_max_order_zeros_and_prefer_numbers() {
        assert_eq!(min(0.0f32, -0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(max(-0.0f32, 0.0).to_bits(), 0);
        assert_eq!(min(f32::NAN, 3.0), 3.0);
        assert_eq!(max(3.0f64, f64::NAN), 3.0);
        assert_eq!(min(f32::NAN, f32::NAN).to_bits(), 0x7fff_ffff);
        assert_eq!(max_nan(3.0f32, f32::NAN).to_bits(), 0x7fff_ffff);
    }

    #[test]
    fn saturation_clamps_and_drops_nan_and_negative_zero() {
        let mode = Mode::new(Rounding::Nearest, false, true);
        assert_eq!(add(0.75f32, 0.75, mode), 1.0);
        assert_eq!(add(-0.0f32, -0.0, mode).to_bits(), 0);
        assert_eq!(add(f32::NAN, 0.5, mode).to_bits(), 0);
        assert_eq!(mul(-1.0f32, 0.5, mode).to_bits(), 0);
    }

    #[test]
    fn flushing_keeps_the_sign() {
        let tiny = -f32::from_bits(1);
        assert_eq!(flush(tiny).to_bits(), 0x8000_0000);
        assert_eq!(flush(f32::from_bits(0x0080_0000)), f32::MIN_POSITIVE);
        let mode = Mode::new(Rounding::Nearest, true, false);
        assert_eq!(mul(f32::MIN_POSITIVE, 0.5, mode).to_bits(), 0);
    }

    #[test]
    fn directed_results_differ_by_one_step() {
        let [zero, down, up] = [Rounding::Zero, Rounding::Down, Rounding::Up].map(mode);
        let [third, third_down, third_up] =
            [zero, down, up].map(|mode| div(1.0f32, 3.0, mode).to_bits());
        assert_eq!(third_up, third + 1);
        assert_eq!(third, third_down);
        let [root, root_up] = [zero, up].map(|mode| sqrt(2.0f64, mode).to_bits());
        assert_eq!(root_up, root + 1);
        assert_eq!(
            fma(f32::MAX, 2.0, f32::NEG_INFINITY, NEAREST),
            f32::NEG_INFINITY
        );
        assert_eq!(div(1.0f32, 0.0, mode(Rounding::Zero)), f32::INFINITY);
    }
}

//! Arithmetic on rows of 16-bit numbers, rounded to nearest, in f32.

use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::ops::handler::versions;
use crate::exec::values::lane::LANES;
use crate::exec::values::narrow_rows::{NUMBERS, Narrow};

versions! {
    /// `d = f(a, b)`, which is exact in f32, or for which rounding twice equals rounding once.
    binary(operation: F) = run_binary [T, F; WIDE] where T: Narrow, F: Fn(f32, f32) -> f32 + Copy + Send + 'static
}

versions! {
    /// `d = a * b + c`.
    fused() = run_fused [T; WIDE] where T: Narrow
}

versions! {
    /// [`binary`] on pairs.
    packed_binary(operation: F) = run_packed_binary [T, F; WIDE]
    where
        T: Narrow, F: Fn(f32, f32) -> f32 + Copy + Send + 'static
}

versions! {
    /// [`fused`] on pairs.
    packed_fused() = run_packed_fused [T; WIDE] where T: Narrow
}

#[inline(always)]
fn run_binary<T: Narrow, F: Fn(f32, f32) -> f32 + Copy + Send + 'static, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
    operation: F,
) -> Control {
    let a = T::widen::<WIDE>(unit.frame.row::<u32>(op.a));
    let b = T::widen::<WIDE>(unit.frame.row::<u32>(op.b));
    let result = T::narrow::<WIDE>(&zip_with(&a, &b, operation));
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}

#[inline(always)]
fn run_packed_binary<
    T: Narrow,
    F: Fn(f32, f32) -> f32 + Copy + Send + 'static,
    const WIDE: bool,
>(
    unit: &mut Unit<'_>,
    op: &Op,
    operation: F,
) -> Control {
    let a = T::widen_pairs::<WIDE>(unit.frame.row::<u32>(op.a));
    let b = T::widen_pairs::<WIDE>(unit.frame.row::<u32>(op.b));
    let result = T::narrow_pairs::<WIDE>(&zip_with(&a, &b, operation));
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}

#[inline(always)]
fn run_fused<T: Narrow, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let a = unit.frame.row::<u32>(op.a);
    let b = unit.frame.row::<u32>(op.b);
    let c = unit.frame.row::<u32>(op.c);
    let result = fused_numbers::<T, WIDE>(a, b, c);
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}

#[inline(always)]
fn run_packed_fused<T: Narrow, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let a = unit.frame.row::<u32>(op.a);
    let b = unit.frame.row::<u32>(op.b);
    let c = unit.frame.row::<u32>(op.c);
    let result = fused_pairs::<T, WIDE>(a, b, c);
    unit.frame.row_mut::<u32>(op.d).merge(&result, unit.active);
    Control::Next
}

/// Returns the value in the lower half of a word.
#[inline(always)]
fn low<T: Narrow>(bits: u32) -> f32 {
    T::from_raw(bits).single()
}

/// Returns the value in the upper half of a word.
#[inline(always)]
fn high<T: Narrow>(bits: u32) -> f32 {
    T::from_raw(bits >> 16).single()
}

/// `a * b + c` of rows.
#[inline(always)]
fn fused_numbers<T: Narrow, const WIDE: bool>(
    a: &[u32; LANES],
    b: &[u32; LANES],
    c: &[u32; LANES],
) -> [u32; LANES] {
    if WIDE && T::CONVERTS_IN_LOOPS {
        let mut row = [0; LANES];
        let mut ambiguous = 0;
        for lane in 0..LANES {
            let value = low::<T>(a[lane]).mul_add(low::<T>(b[lane]), low::<T>(c[lane]));
            ambiguous |= u32::from(T::may_double_round(value));
            row[lane] = T::from_single(value).into_raw();
        }
        if ambiguous == 0 {
            return row;
        }
    }
    let a = T::widen::<WIDE>(a);
    let b = T::widen::<WIDE>(b);
    let c = T::widen::<WIDE>(c);
    T::narrow::<WIDE>(&multiply_add::<T, LANES, WIDE>(&a, &b, &c))
}

/// `a * b + c` of rows of pairs.
#[inline(always)]
fn fused_pairs<T: Narrow, const WIDE: bool>(
    a: &[u32; LANES],
    b: &[u32; LANES],
    c: &[u32; LANES],
) -> [u32; LANES] {
    if WIDE && T::CONVERTS_IN_LOOPS {
        let mut row = [0; LANES];
        let mut ambiguous = 0;
        for lane in 0..LANES {
            let first = low::<T>(a[lane]).mul_add(low::<T>(b[lane]), low::<T>(c[lane]));
            let second = high::<T>(a[lane]).mul_add(high::<T>(b[lane]), high::<T>(c[lane]));
            ambiguous |= u32::from(T::may_double_round(first) | T::may_double_round(second));
            row[lane] = T::from_single(second).into_raw() << 16 | T::from_single(first).into_raw();
        }
        if ambiguous == 0 {
            return row;
        }
    }
    let a = T::widen_pairs::<WIDE>(a);
    let b = T::widen_pairs::<WIDE>(b);
    let c = T::widen_pairs::<WIDE>(c);
    T::narrow_pairs::<WIDE>(&multiply_add::<T, NUMBERS, WIDE>(&a, &b, &c))
}

#[inline(always)]
fn zip_with<const N: usize>(a: &[f32; N], b: &[f32; N], f: impl Fn(f32, f32) -> f32) -> [f32; N] {
    let mut result = [0.0; N];
    for index in 0..N {
        result[index] = f(a[index], b[index]);
    }
    result
}

/// Computes `a * b + c` such that it may be rounded again. Each method is exact except for
/// midpoints, which are computed separately.
#[inline(always)]
fn multiply_add<T: Narrow, const N: usize, const WIDE: bool>(
    a: &[f32; N],
    b: &[f32; N],
    c: &[f32; N],
) -> [f32; N] {
    let mut result = [0.0; N];
    let mut ambiguous = u32::from(!WIDE);
    if WIDE {
        for index in 0..N {
            result[index] = a[index].mul_add(b[index], c[index]);
            ambiguous |= u32::from(T::may_double_round(result[index]));
        }
    }
    if WIDE && ambiguous != 0 {
        ambiguous = 0;
        for index in 0..N {
            let is_exact = T::is_exact(result[index], [a[index], b[index], c[index]]);
            ambiguous |= u32::from(T::may_double_round(result[index]) & !is_exact);
        }
    }
    if ambiguous != 0 {
        for index in 0..N {
            result[index] = T::odd_fused(a[index], b[index], c[index]);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::ops::handler::wide_vectors;
    use crate::exec::values::float::{self, Mode};
    use crate::exec::values::narrow::{Bfloat, Half};

    /// Compares all four operations on rows of numbers and of pairs with exact ones.
    fn compare<T: Narrow + PartialEq + std::fmt::Debug, const WIDE: bool>() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..5_000 {
            let [a, b, c] = [(); 3].map(|()| random_row(&mut random));
            check::<T>([&a, &b, &c], 0, results::<T, WIDE>(&a, &b, &c));
            let pairs = packed_results::<T, WIDE>(&a, &b, &c);
            check::<T>(
                [&a, &b, &c],
                0,
                pairs.map(|row| row.map(|bits| bits & 0xffff)),
            );
            check::<T>(
                [&a, &b, &c],
                16,
                pairs.map(|row| row.map(|bits| bits >> 16)),
            );
        }
    }

    /// Returns random pairs. Half of them have few bits, because their results are midpoints more
    /// often.
    fn random_row(random: &mut fastrand::Rng) -> [u32; LANES] {
        std::array::from_fn(|_| {
            let mask = if random.bool() { u32::MAX } else { 0xfff0_fff0 };
            random.u32(..) & mask
        })
    }

    type Rows<'r> = [&'r [u32; LANES]; 3];

    fn results<T: Narrow, const WIDE: bool>(
        a: &[u32; 32],
        b: &[u32; 32],
        c: &[u32; 32],
    ) -> [[u32; LANES]; 4] {
        let fused = fused_numbers::<T, WIDE>(a, b, c);
        let [a, b] = [a, b].map(|row| T::widen::<WIDE>(row));
        let exact = [
            zip_with(&a, &b, |a, b| a + b),
            zip_with(&a, &b, |a, b| a - b),
            zip_with(&a, &b, |a, b| a * b),
        ];
        let [sum, difference, product] = exact.map(|values| T::narrow::<WIDE>(&values));
        [sum, difference, product, fused]
    }

    fn packed_results<T: Narrow, const WIDE: bool>(
        a: &[u32; 32],
        b: &[u32; 32],
        c: &[u32; 32],
    ) -> [[u32; LANES]; 4] {
        let fused = fused_pairs::<T, WIDE>(a, b, c);
        let [a, b] = [a, b].map(|row| T::widen_pairs::<WIDE>(row));
        let exact = [
            zip_with(&a, &b, |a, b| a + b),
            zip_with(&a, &b, |a, b| a - b),
            zip_with(&a, &b, |a, b| a * b),
        ];
        let [sum, difference, product] = exact.map(|values| T::narrow_pairs::<WIDE>(&values));
        [sum, difference, product, fused]
    }

    #[test]
    fn unpacked_pairs_are_in_their_order() {
        fn check<T: Narrow, const WIDE: bool>() {
            let row = std::array::from_fn(|lane| 0x3c01_3c00 + 0x0002_0002 * lane as u32);
            let expected: Vec<f32> = (0..NUMBERS)
                .map(|number| T::from_raw(0x3c00 + number as u32).single())
                .collect();
            assert_eq!(T::unpack::<WIDE>(&row)[..], expected);
        }
        check::<Half, false>();
        check::<Bfloat, false>();
        if wide_vectors() {
            check::<Half, true>();
            check::<Bfloat, true>();
        }
    }

    fn check<T: Narrow + PartialEq + std::fmt::Debug>(
        rows: Rows<'_>,
        shift: u32,
        results: [[u32; LANES]; 4],
    ) {
        for lane in 0..LANES {
            let [a, b, c] = rows.map(|row| T::from_raw(row[lane] >> shift));
            let expected = [
                float::add(a, b, Mode::NEAREST),
                float::sub(a, b, Mode::NEAREST),
                float::mul(a, b, Mode::NEAREST),
                float::fma(a, b, c, Mode::NEAREST),
            ];
            assert_eq!(
                results.map(|row| T::from_raw(row[lane])),
                expected,
                "{a:?} {b:?} {c:?}"
            );
        }
    }

    #[test]
    fn arithmetic_in_f32_rounds_like_exact_arithmetic() {
        compare::<Half, false>();
        compare::<Bfloat, false>();
        // Outside of a handler, `mul_add` is a function of the C library, and MinGW's is wrong.
        if wide_vectors() && !cfg!(all(windows, target_env = "gnu")) {
            compare::<Half, true>();
            compare::<Bfloat, true>();
        }
    }

    #[test]
    fn halves_convert_equally_with_vectors() {
        for first in (0..=u16::MAX).step_by(LANES) {
            let row = std::array::from_fn(|lane| u32::from(first) + lane as u32);
            let values = Half::widen::<false>(&row);
            let next = values.map(|value| f32::from_bits(value.to_bits() + 0x1000));
            if wide_vectors() {
                for values in [values, next] {
                    assert_eq!(
                        Half::narrow::<true>(&values),
                        Half::narrow::<false>(&values),
                        "{first:#x}"
                    );
                }
                assert_eq!(
                    Half::narrow::<true>(&Half::widen::<true>(&row)),
                    Half::narrow::<false>(&values)
                );
            }
        }
    }

    #[test]
    fn midpoint_product_rounds_toward_a_tiny_addend() {
        for (sign, expected) in [(0, 0x3fc2), (0x8000, 0x3fc1)] {
            // 129 / 128 times 192 / 128 is 193.5 / 128.
            let [a, b, c] =
                [0x3f81, 0x3fc0, sign | 1].map(|bits| Bfloat::widen::<false>(&[bits; LANES]));
            let result = multiply_add::<Bfloat, LANES, false>(&a, &b, &c);
            assert_eq!(Bfloat::narrow::<false>(&result), [expected; LANES]);
            if wide_vectors() {
                assert_eq!(multiply_add::<Bfloat, LANES, true>(&a, &b, &c), result);
            }
        }
    }
}

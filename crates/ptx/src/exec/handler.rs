//! Generic handlers: one per arity, for any operation on typed lanes.
//!
//! An operation is a closure without captures. Its type alone identifies it, so each pair of an arity and an operation becomes a function
//! with a vectorized loop over the lanes. On x86-64 each function exists twice: for the baseline, and for AVX2 with FMA and F16C. There a
//! fused multiply-add and a conversion of a 16-bit float are single instructions and not calls.

pub(crate) mod atomic;
pub(crate) mod bits;
pub(crate) mod comparison;
pub(crate) mod convert;
pub(crate) mod convert_packed;
pub(crate) mod convert_random;
pub(crate) mod float;
pub(crate) mod integer;
pub(crate) mod moves;
mod packed;

use std::ptr::NonNull;

use super::float::inherit;
use super::frame::InFile;
use super::lane::{LANES, Lane, Row, lanes_where};
use super::op::{Control, Handler, Op};
use super::unit::Unit;

/// Returns `true` if the processor can run the handlers compiled for AVX2, FMA and F16C.
#[cfg(any(test, target_arch = "x86_64"))]
pub(crate) fn wide_vectors() -> bool {
    #[cfg(test)]
    if BASELINE.get() {
        return false;
    }
    static WIDE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *WIDE.get_or_init(|| {
        #[cfg(target_arch = "x86_64")]
        {
            std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("fma")
                && std::arch::is_x86_feature_detected!("f16c")
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            false
        }
    })
}

#[cfg(test)]
thread_local! {
    /// `true` while this thread lowers programs to the baseline handlers.
    static BASELINE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs `action`, during which programs are lowered to the baseline handlers.
#[cfg(test)]
pub(crate) fn with_baseline_handlers<R>(action: impl FnOnce() -> R) -> R {
    BASELINE.set(true);
    let result = action();
    BASELINE.set(false);
    result
}

/// Defines a function that returns the handler of an operation for the host's processor.
///
/// A constant after the types, if the body has one, is `true` in the version for AVX2, FMA and F16C.
macro_rules! versions {
    (
        $(#[$doc:meta])* $pick:ident($($operation:ident: $ty:ty)?) = $body:ident
        [$($generic:ident),* $(; $wide:ident)?] $(where $($bounds:tt)+)?
    ) => {
        $(#[$doc])*
        pub(crate) fn $pick<$($generic),*>($($operation: $ty)?) -> Handler
        where
            $($($bounds)+)?
        {
            fn base<$($generic),*>(unit: &mut Unit<'_>, op: &Op) -> Control
            where
                $($($bounds)+)?
            {
                $(const $wide: bool = false;)?
                $body::<$($generic,)* $($wide)?>(unit, op)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn wide<$($generic),*>(unit: &mut Unit<'_>, op: &Op) -> Control
            where
                $($($bounds)+)?
            {
                $(const $wide: bool = true;)?
                $body::<$($generic,)* $($wide)?>(unit, op)
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::exec::handler::wide_vectors() {
                return wide::<$($generic),*>;
            }
            base::<$($generic),*>
        }
    };
}

pub(crate) use versions;

versions! {
    /// `d = f(a)`.
    unary(_operation: F) = run_unary [A, D, F]
    where
        A: Lane<Raw: InFile>, D: Lane<Raw: InFile>, F: Fn(A) -> D + Copy + 'static
}

versions! {
    /// `d = f(a, b)`.
    binary(_operation: F) = run_binary [A, B, D, F]
    where
        A: Lane<Raw: InFile>, B: Lane<Raw: InFile>, D: Lane<Raw: InFile>,
        F: Fn(A, B) -> D + Copy + 'static
}

versions! {
    /// `d = f(a, b, c)`.
    ternary(_operation: F) = run_ternary [A, B, C, D, F]
    where
        A: Lane<Raw: InFile>, B: Lane<Raw: InFile>, C: Lane<Raw: InFile>,
        D: Lane<Raw: InFile>, F: Fn(A, B, C) -> D + Copy + 'static
}

versions! {
    /// `d = f(a, b, c, e)`.
    quaternary(_operation: F) = run_quaternary [A, B, C, E, D, F]
    where
        A: Lane<Raw: InFile>, B: Lane<Raw: InFile>, C: Lane<Raw: InFile>,
        E: Lane<Raw: InFile>, D: Lane<Raw: InFile>,
        F: Fn(A, B, C, E) -> D + Copy + 'static
}

versions! {
    /// `d = f(a, b)` in f64. A NaN inherits the payload of an operand.
    binary_of_doubles(_operation: F) = run_binary_of_doubles [F] where F: Fn(f64, f64) -> f64 + Copy + 'static
}

versions! {
    /// `d = f(a, b, c)` in f64. A NaN inherits the payload of an operand.
    ternary_of_doubles(_operation: F) = run_ternary_of_doubles [F] where F: Fn(f64, f64, f64) -> f64 + Copy + 'static
}

versions! {
    /// `d|e = f(a, b)` on predicates, combined with predicate `c` as `imm` specifies.
    compare(_operation: F) = run_compare [A, F]
    where
        A: Lane<Raw: InFile>, F: Fn(A, A) -> bool + Copy + 'static
}

versions! {
    /// `d = c ? a : b` with a predicate `c`.
    select() = run_select [R] where R: InFile
}

/// The combination of a `setp` comparison with a predicate: `Op::imm` of [`compare`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Combine {
    /// No combination.
    None,
    /// Logical and.
    And,
    /// Logical or.
    Or,
    /// Exclusive or.
    Xor,
}

impl Combine {
    /// The flag in `Op::imm` that negates the predicate.
    pub(crate) const NEGATE: u64 = 4;
}

/// The value of `Op::e` of [`compare`] without a second destination.
pub(crate) const NO_REGISTER: u32 = u32::MAX;

/// Creates a value of an operation's type.
///
/// Valid only for types of which the function that returns the handler received a value.
#[inline(always)]
pub(crate) fn operation<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "an operation must not capture") };
    // SAFETY: `F` has no bytes, so any aligned pointer can be read; a value of it exists, because
    // the functions that make handlers took one, and `F` is `Copy`.
    unsafe { NonNull::<F>::dangling().read() }
}

#[inline(always)]
fn run_unary<A, D, F>(unit: &mut Unit<'_>, op: &Op) -> Control
where
    A: Lane<Raw: InFile>,
    D: Lane<Raw: InFile>,
    F: Fn(A) -> D + Copy + 'static,
{
    let f = operation::<F>();
    let a = unit.frame.row::<A::Raw>(op.a);
    let mut result = [D::Raw::default(); LANES];
    for lane in 0..LANES {
        result[lane] = f(A::from_raw(a[lane])).into_raw();
    }
    write::<D>(unit, op.d, &result);
    Control::Next
}

#[inline(always)]
fn run_binary<A, B, D, F>(unit: &mut Unit<'_>, op: &Op) -> Control
where
    A: Lane<Raw: InFile>,
    B: Lane<Raw: InFile>,
    D: Lane<Raw: InFile>,
    F: Fn(A, B) -> D + Copy + 'static,
{
    let f = operation::<F>();
    let a = unit.frame.row::<A::Raw>(op.a);
    let b = unit.frame.row::<B::Raw>(op.b);
    let mut result = [D::Raw::default(); LANES];
    for lane in 0..LANES {
        result[lane] = f(A::from_raw(a[lane]), B::from_raw(b[lane])).into_raw();
    }
    write::<D>(unit, op.d, &result);
    Control::Next
}

#[inline(always)]
fn run_ternary<A, B, C, D, F>(unit: &mut Unit<'_>, op: &Op) -> Control
where
    A: Lane<Raw: InFile>,
    B: Lane<Raw: InFile>,
    C: Lane<Raw: InFile>,
    D: Lane<Raw: InFile>,
    F: Fn(A, B, C) -> D + Copy + 'static,
{
    let f = operation::<F>();
    let a = unit.frame.row::<A::Raw>(op.a);
    let b = unit.frame.row::<B::Raw>(op.b);
    let c = unit.frame.row::<C::Raw>(op.c);
    let mut result = [D::Raw::default(); LANES];
    for lane in 0..LANES {
        let (a, b, c) = (a[lane], b[lane], c[lane]);
        result[lane] = f(A::from_raw(a), B::from_raw(b), C::from_raw(c)).into_raw();
    }
    write::<D>(unit, op.d, &result);
    Control::Next
}

#[inline(always)]
fn run_quaternary<A, B, C, E, D, F>(unit: &mut Unit<'_>, op: &Op) -> Control
where
    A: Lane<Raw: InFile>,
    B: Lane<Raw: InFile>,
    C: Lane<Raw: InFile>,
    E: Lane<Raw: InFile>,
    D: Lane<Raw: InFile>,
    F: Fn(A, B, C, E) -> D + Copy + 'static,
{
    let f = operation::<F>();
    let a = unit.frame.row::<A::Raw>(op.a);
    let b = unit.frame.row::<B::Raw>(op.b);
    let c = unit.frame.row::<C::Raw>(op.c);
    let e = unit.frame.row::<E::Raw>(op.e);
    let mut result = [D::Raw::default(); LANES];
    for lane in 0..LANES {
        let (a, b) = (A::from_raw(a[lane]), B::from_raw(b[lane]));
        result[lane] = f(a, b, C::from_raw(c[lane]), E::from_raw(e[lane])).into_raw();
    }
    write::<D>(unit, op.d, &result);
    Control::Next
}

/// Visits the lanes one by one only if a result is NaN.
#[inline(always)]
fn run_binary_of_doubles<F>(unit: &mut Unit<'_>, op: &Op) -> Control
where
    F: Fn(f64, f64) -> f64 + Copy + 'static,
{
    let f = operation::<F>();
    let (a, b) = (unit.frame.row::<u64>(op.a), unit.frame.row::<u64>(op.b));
    let mut result = [0; LANES];
    let mut nans = 0;
    for lane in 0..LANES {
        let value = f(f64::from_bits(a[lane]), f64::from_bits(b[lane]));
        nans |= u64::from(value.is_nan());
        result[lane] = value.to_bits();
    }
    if nans != 0 {
        for lane in 0..LANES {
            result[lane] = inherit(f64::from_bits(result[lane]), [a[lane], b[lane]].map(f64::from_bits)).to_bits();
        }
    }
    write::<f64>(unit, op.d, &result);
    Control::Next
}

/// Visits the lanes one by one only if a result is NaN.
#[inline(always)]
fn run_ternary_of_doubles<F>(unit: &mut Unit<'_>, op: &Op) -> Control
where
    F: Fn(f64, f64, f64) -> f64 + Copy + 'static,
{
    let f = operation::<F>();
    let (a, b, c) = (unit.frame.row::<u64>(op.a), unit.frame.row::<u64>(op.b), unit.frame.row::<u64>(op.c));
    let mut result = [0; LANES];
    let mut nans = 0;
    for lane in 0..LANES {
        let value = f(f64::from_bits(a[lane]), f64::from_bits(b[lane]), f64::from_bits(c[lane]));
        nans |= u64::from(value.is_nan());
        result[lane] = value.to_bits();
    }
    if nans != 0 {
        for lane in 0..LANES {
            let operands = [a[lane], b[lane], c[lane]].map(f64::from_bits);
            result[lane] = inherit(f64::from_bits(result[lane]), operands).to_bits();
        }
    }
    write::<f64>(unit, op.d, &result);
    Control::Next
}

#[inline(always)]
fn run_compare<A, F>(unit: &mut Unit<'_>, op: &Op) -> Control
where
    A: Lane<Raw: InFile>,
    F: Fn(A, A) -> bool + Copy + 'static,
{
    let f = operation::<F>();
    let a = unit.frame.row::<A::Raw>(op.a);
    let b = unit.frame.row::<A::Raw>(op.b);
    let holds = lanes_where(|lane| f(A::from_raw(a[lane]), A::from_raw(b[lane])));
    let (first, second) = combine(unit, op, holds);
    unit.frame.set_predicate(op.d, first, unit.active);
    if op.e != NO_REGISTER {
        unit.frame.set_predicate(op.e, second, unit.active);
    }
    Control::Next
}

#[inline(always)]
fn run_select<R: InFile>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let chosen = unit.frame.predicate(op.c) ^ op.e;
    let mut result = Row(*unit.frame.row::<R>(op.b));
    result.merge(unit.frame.row::<R>(op.a), chosen);
    unit.frame.row_mut::<R>(op.d).merge(&result.0, unit.active);
    Control::Next
}

/// Applies the boolean operator of `setp` to the comparison and to its complement.
#[inline(always)]
fn combine(unit: &Unit<'_>, op: &Op, holds: u32) -> (u32, u32) {
    if op.imm == 0 {
        return (holds, !holds);
    }
    let mut other = unit.frame.predicate(op.c);
    if op.imm & Combine::NEGATE != 0 {
        other = !other;
    }
    match op.imm & 3 {
        1 => (holds & other, !holds & other),
        2 => (holds | other, !holds | other),
        _ => (holds ^ other, !holds ^ other),
    }
}

#[inline(always)]
fn write<D: Lane<Raw: InFile>>(unit: &mut Unit<'_>, d: u32, result: &[D::Raw; LANES]) {
    unit.frame.row_mut::<D::Raw>(d).merge(result, unit.active);
}

//! Generic handlers: one per arity, for any operation on typed lanes.
//!
//! An operation is a closure without captures. Its type alone identifies it, so each pair of an
//! arity and an operation becomes a function with a vectorized loop over the lanes. On x86-64 each
//! function exists twice: for AVX2 with FMA and F16C, and for the baseline. There a fused
//! multiply-add and a conversion of a 16-bit float are calls. Almost every processor has AVX2, so
//! the functions for the baseline are made to compile quickly: most share a loop that calls the
//! operation for each lane.

mod arity;
pub(crate) mod moves;
pub(crate) mod narrow_rows;
pub(crate) mod superinstruction;

use std::ptr::NonNull;

use crate::exec::machine::op::NO_REGISTER;

pub(crate) use self::arity::{binary, quaternary, ternary, unary};

use crate::exec::frame::InFile;
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::values::float::inherit;
use crate::exec::values::lane::{LANES, Lane, Row, lanes_where};

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

/// The environment variable that runs every test with the baseline handlers.
#[cfg(test)]
const BASELINE_VARIABLE: &str = "CURIUM_TEST_BASELINE";

#[cfg(test)]
thread_local! {
    /// `true` while this thread lowers programs to the baseline handlers.
    static BASELINE: std::cell::Cell<bool> = std::cell::Cell::new(std::env::var_os(BASELINE_VARIABLE).is_some());
}

/// Runs `action`, during which programs are lowered to the baseline handlers.
#[cfg(test)]
pub(crate) fn with_baseline_handlers<R>(action: impl FnOnce() -> R) -> R {
    let before = BASELINE.replace(true);
    let result = action();
    BASELINE.set(before);
    result
}

/// Defines a function that returns the handler of an operation for the host's processor.
///
/// The handler calls the body with its unit, its instruction and the operation. A constant after
/// the types, if the body has one, is `true` in the version for AVX2, FMA and F16C.
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
                // SAFETY: only the enclosing function names this one, and it received a value of
                // the type.
                $(let $operation = unsafe { $crate::exec::ops::handler::recreate::<$ty>() };)?
                $body::<$($generic,)* $($wide)?>(unit, op $(, $operation)?)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn wide<$($generic),*>(unit: &mut Unit<'_>, op: &Op) -> Control
            where
                $($($bounds)+)?
            {
                $(const $wide: bool = true;)?
                // SAFETY: only the enclosing function names this one, and it received a value of
                // the type.
                $(let $operation = unsafe { $crate::exec::ops::handler::recreate::<$ty>() };)?
                $body::<$($generic,)* $($wide)?>(unit, op $(, $operation)?)
            }

            $(let _witness: $ty = $operation;)?
            #[cfg(target_arch = "x86_64")]
            if $crate::exec::ops::handler::wide_vectors() {
                return wide::<$($generic),*>;
            }
            base::<$($generic),*>
        }
    };
}

pub(crate) use versions;

versions! {
    /// `d = f(a, b)` in f64. A NaN inherits the payload of an operand.
    f64_binary(operation: F) = run_f64_binary [F] where F: Fn(f64, f64) -> f64 + Copy + Send + 'static
}

versions! {
    /// `d = f(a, b, c)` in f64. A NaN inherits the payload of an operand.
    f64_ternary(operation: F) = run_f64_ternary [F] where F: Fn(f64, f64, f64) -> f64 + Copy + Send + 'static
}

versions! {
    /// `d|e = f(a, b)` on predicates, combined with predicate `c` as `imm` specifies.
    compare(operation: F) = run_compare [A, F; WIDE]
    where
        A: Lane<Raw: InFile>, F: Fn(A, A) -> bool + Copy + Send + 'static
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

/// Copies an operation, of which a handler has only the type.
///
/// # Safety
///
/// A value of `F` exists or has existed.
#[inline(always)]
pub(crate) unsafe fn recreate<F: Copy + Send + 'static>() -> F {
    const { assert!(size_of::<F>() == 0, "an operation must not capture") };
    // SAFETY: `F` has no bytes, so any aligned pointer can be read. The caller guarantees a value,
    // which is `Copy`, borrows nothing and may be used on any thread.
    unsafe { NonNull::<F>::dangling().read() }
}

/// Returns `true` if a version contains its operation. Otherwise it passes the operation as a
/// function to a loop that all share.
const fn is_inlined(wide: bool) -> bool {
    wide || cfg!(not(target_arch = "x86_64"))
}

/// Visits the lanes one by one only if a result is NaN.
#[inline(always)]
fn run_f64_binary<F>(unit: &mut Unit<'_>, op: &Op, f: F) -> Control
where
    F: Fn(f64, f64) -> f64 + Copy + Send + 'static,
{
    let a = unit.frame.row::<u64>(op.a);
    let b = unit.frame.row::<u64>(op.b);
    let mut result = [0; LANES];
    let mut nans = 0;
    for lane in 0..LANES {
        let value = f(f64::from_bits(a[lane]), f64::from_bits(b[lane]));
        nans |= u64::from(value.is_nan());
        result[lane] = value.to_bits();
    }
    if nans != 0 {
        for lane in 0..LANES {
            result[lane] = inherit(
                f64::from_bits(result[lane]),
                [a[lane], b[lane]].map(f64::from_bits),
            )
            .to_bits();
        }
    }
    write(unit, op.d, &result);
    Control::Next
}

/// Visits the lanes one by one only if a result is NaN.
#[inline(always)]
fn run_f64_ternary<F>(unit: &mut Unit<'_>, op: &Op, f: F) -> Control
where
    F: Fn(f64, f64, f64) -> f64 + Copy + Send + 'static,
{
    let a = unit.frame.row::<u64>(op.a);
    let b = unit.frame.row::<u64>(op.b);
    let c = unit.frame.row::<u64>(op.c);
    let mut result = [0; LANES];
    let mut nans = 0;
    for lane in 0..LANES {
        let value = f(
            f64::from_bits(a[lane]),
            f64::from_bits(b[lane]),
            f64::from_bits(c[lane]),
        );
        nans |= u64::from(value.is_nan());
        result[lane] = value.to_bits();
    }
    if nans != 0 {
        for lane in 0..LANES {
            let operands = [a[lane], b[lane], c[lane]].map(f64::from_bits);
            result[lane] = inherit(f64::from_bits(result[lane]), operands).to_bits();
        }
    }
    write(unit, op.d, &result);
    Control::Next
}

#[inline(always)]
fn run_compare<A, F, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op, operation: F) -> Control
where
    A: Lane<Raw: InFile>,
    F: Fn(A, A) -> bool + Copy + Send + 'static,
{
    #[inline(always)]
    fn run<A: InFile>(unit: &mut Unit<'_>, op: &Op, f: impl Fn(A, A) -> bool) -> Control {
        let a = unit.frame.row::<A>(op.a);
        let b = unit.frame.row::<A>(op.b);
        let holds = lanes_where(|lane| f(a[lane], b[lane]));
        let (first, second) = combine(unit, op, holds);
        unit.frame.set_predicate(op.d, first, unit.active);
        if op.e != NO_REGISTER {
            unit.frame.set_predicate(op.e, second, unit.active);
        }
        Control::Next
    }

    #[inline(never)]
    fn run_by_lane<A: InFile>(unit: &mut Unit<'_>, op: &Op, f: fn(A, A) -> bool) -> Control {
        run(unit, op, f)
    }

    let f = move |a: A::Raw, b: A::Raw| operation(A::from_raw(a), A::from_raw(b));
    if is_inlined(WIDE) {
        run(unit, op, f)
    } else {
        run_by_lane(unit, op, comparison_pointer(f))
    }
}

/// Converts a comparison without state to a function pointer.
fn comparison_pointer<A, F>(_comparison: F) -> fn(A, A) -> bool
where
    F: Fn(A, A) -> bool + Copy + Send + 'static,
{
    // SAFETY: this function received a value of `F`.
    |a, b| unsafe { recreate::<F>() }(a, b)
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
fn write<D: InFile>(unit: &mut Unit<'_>, d: u32, result: &[D; LANES]) {
    unit.frame.row_mut::<D>(d).merge(result, unit.active);
}

#[cfg(test)]
mod tests {
    use super::BASELINE_VARIABLE;

    /// Processors without AVX2 run the baseline handlers.
    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn tests_pass_with_baseline_handlers() -> std::io::Result<()> {
        if std::env::var_os(BASELINE_VARIABLE).is_some() {
            return Ok(());
        }
        let output = std::process::Command::new(std::env::current_exe()?)
            .args(["exec::tests::", "exec::ops::", "exec::values::fused::"])
            .args(["--skip", "speed", "--skip", "mutation"])
            // These compare with the baseline themselves, or run no handlers of rows.
            .args([
                "--skip",
                "narrow_rows",
                "--skip",
                "superinstruction_reports",
            ])
            .env(BASELINE_VARIABLE, "1")
            .output()?;
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        Ok(())
    }
}

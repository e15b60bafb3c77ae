//! Level 1: operations on vectors.
#![expect(clippy::too_many_arguments, reason = "these are C's signatures")]

mod rotation;

use num_complex::ComplexFloat as _;

pub(super) use self::rotation::{rot, rot_real, rotg, rotm, rotmg};

use super::call::Access::{Read, ReadWrite, Write};
use super::operand::{Input, Output, ScalarInput, ScalarOutput};
use super::{Call, INVALID, Number, Result};

pub(super) fn axpy<T: Number>(
    mut call: Call,
    n: i64,
    alpha: ScalarInput<T>,
    x: Input<T>,
    incx: i64,
    y: Output<T>,
    incy: i64,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let x = call.vector(Read, x, n, incx)?;
    let y = call.vector(ReadWrite, y, n, incy)?;
    call.enqueue(move |memory| {
        let alpha = memory.scalar(alpha);
        let from = memory.vector::<T>(x);
        let mut to = memory.vector::<T>(y);
        for (to, from) in to.iter_mut().zip(from) {
            *to += alpha * from;
        }
        memory.set_vector(y, &to);
    })
}

pub(super) fn scal<T: Number>(
    mut call: Call,
    n: i64,
    alpha: ScalarInput<T>,
    x: Output<T>,
    incx: i64,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let x = call.vector(ReadWrite, x, n, incx)?;
    call.enqueue(move |memory| {
        let factor = memory.scalar(alpha);
        let scaled: Vec<T> = memory
            .vector::<T>(x)
            .into_iter()
            .map(|element| element * factor)
            .collect();
        memory.set_vector(x, &scaled);
    })
}

pub(super) fn scal_real<T: Number>(
    mut call: Call,
    n: i64,
    alpha: ScalarInput<T::Absolute>,
    x: Output<T>,
    incx: i64,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    let alpha = call.scalar(alpha)?;
    let x = call.vector(ReadWrite, x, n, incx)?;
    call.enqueue(move |memory| {
        let factor = T::from_real(memory.scalar(alpha));
        let scaled: Vec<T> = memory
            .vector::<T>(x)
            .into_iter()
            .map(|element| element * factor)
            .collect();
        memory.set_vector(x, &scaled);
    })
}

pub(super) fn copy<T: Number>(
    mut call: Call,
    n: i64,
    x: Input<T>,
    incx: i64,
    y: Output<T>,
    incy: i64,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    let x = call.vector(Read, x, n, incx)?;
    let y = call.vector(Write, y, n, incy)?;
    call.enqueue(move |memory| {
        let elements = memory.vector::<T>(x);
        memory.set_vector(y, &elements);
    })
}

pub(super) fn swap<T: Number>(
    mut call: Call,
    n: i64,
    x: Output<T>,
    incx: i64,
    y: Output<T>,
    incy: i64,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    let x = call.vector(ReadWrite, x, n, incx)?;
    let y = call.vector(ReadWrite, y, n, incy)?;
    call.enqueue(move |memory| {
        let one = memory.vector::<T>(x);
        let other = memory.vector::<T>(y);
        memory.set_vector(x, &other);
        memory.set_vector(y, &one);
    })
}

pub(super) fn dot<T: Number>(
    mut call: Call,
    n: i64,
    x: Input<T>,
    incx: i64,
    y: Input<T>,
    incy: i64,
    result: ScalarOutput<T>,
) -> Result {
    let x = call.vector(Read, x, n.max(0), incx)?;
    let y = call.vector(Read, y, n.max(0), incy)?;
    call.enqueue_with_result(result, move |memory| {
        let pairs = memory.vector::<T>(x).into_iter().zip(memory.vector::<T>(y));
        pairs.fold(T::zero(), |sum, (x, y)| sum + x * y)
    })
}

pub(super) fn dot_conjugated<T: Number>(
    mut call: Call,
    n: i64,
    x: Input<T>,
    incx: i64,
    y: Input<T>,
    incy: i64,
    result: ScalarOutput<T>,
) -> Result {
    let x = call.vector(Read, x, n.max(0), incx)?;
    let y = call.vector(Read, y, n.max(0), incy)?;
    call.enqueue_with_result(result, move |memory| {
        let pairs = memory.vector::<T>(x).into_iter().zip(memory.vector::<T>(y));
        pairs.fold(T::zero(), |sum, (x, y)| sum + x.conj() * y)
    })
}

/// Scales by the greatest element, so that squares neither overflow nor vanish.
pub(super) fn nrm2<T: Number>(
    mut call: Call,
    n: i64,
    x: Input<T>,
    incx: i64,
    result: ScalarOutput<T::Absolute>,
) -> Result {
    let x = call.vector(Read, x, n.max(0), incx)?;
    call.enqueue_with_result(result, move |memory| {
        let sizes: Vec<_> = memory.vector::<T>(x).into_iter().map(T::abs).collect();
        let zero = <T::Absolute as num_traits::Zero>::zero();
        let greatest = sizes.iter().fold(zero, |greatest, size| {
            if greater(*size, greatest) {
                *size
            } else {
                greatest
            }
        });
        if greatest == zero {
            return zero;
        }
        let sum = sizes.iter().fold(zero, |sum, size| {
            sum + (*size / greatest) * (*size / greatest)
        });
        greatest * sum.sqrt()
    })
}

pub(super) fn asum<T: Number>(
    mut call: Call,
    n: i64,
    x: Input<T>,
    incx: i64,
    result: ScalarOutput<T::Absolute>,
) -> Result {
    let x = call.vector(Read, x, n.max(0), incx)?;
    call.enqueue_with_result(result, move |memory| {
        let zero = <T::Absolute as num_traits::Zero>::zero();
        memory
            .vector::<T>(x)
            .into_iter()
            .fold(zero, |sum, element| sum + element.l1_norm())
    })
}

pub(super) fn amax<T: Number>(
    call: Call,
    n: i64,
    x: Input<T>,
    incx: i64,
    result: ScalarOutput<impl Index>,
) -> Result {
    extreme(call, n, x, incx, result, greater::<T::Absolute>)
}

pub(super) fn amin<T: Number>(
    call: Call,
    n: i64,
    x: Input<T>,
    incx: i64,
    result: ScalarOutput<impl Index>,
) -> Result {
    extreme(call, n, x, incx, result, |one, other| {
        greater::<T::Absolute>(other, one)
    })
}

/// A type of indices, which are counted from 1.
pub(super) trait Index: Copy + Send + 'static {
    fn from_usize(index: usize) -> Self;
}

impl Index for i32 {
    fn from_usize(index: usize) -> Self {
        index as Self
    }
}

impl Index for i64 {
    fn from_usize(index: usize) -> Self {
        index as Self
    }
}

/// Finds the first element that `beats` every other one. Only the host gets the result.
fn extreme<T: Number, I: Index>(
    mut call: Call,
    n: i64,
    x: Input<T>,
    incx: i64,
    result: ScalarOutput<I>,
    beats: impl Fn(T::Absolute, T::Absolute) -> bool + Send + Sync + 'static,
) -> Result {
    let mode = call.host_mode().ok_or(INVALID)?;
    if n <= 0 || incx <= 0 {
        return result.write(mode, I::from_usize(0));
    }
    let x = call.vector(Read, x, n, incx)?;
    call.run(mode, result, move |memory| {
        let mut best: Option<(usize, T::Absolute)> = None;
        for (index, element) in memory.vector::<T>(x).into_iter().enumerate() {
            let size = element.l1_norm();
            if best.is_none_or(|(_, best_size)| beats(size, best_size)) {
                best = Some((index, size));
            }
        }
        I::from_usize(best.map_or(0, |(index, _)| index + 1))
    })
}

/// Compares absolute values, which are real numbers.
fn greater<T: Number>(one: T, other: T) -> bool {
    one.re() > other.re()
}

//! Level 1: operations on vectors.
//!
//! Every function is `unsafe`: its caller upholds the contract of the C function.
#![expect(clippy::too_many_arguments, reason = "these are C's signatures")]

mod rotation;

use num_complex::ComplexFloat as _;

pub(super) use self::rotation::{rot, rot_real, rotg, rotm, rotmg};

use super::call::Access::{Read, ReadWrite, Write};
use super::handle::write;
use super::{Call, INVALID, Number, Result};

pub(super) unsafe fn axpy<T: Number>(
    mut call: Call,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *mut T,
    incy: i64,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
    let (x, y) = (
        call.vector(Read, x, n, incx)?,
        call.vector(ReadWrite, y, n, incy)?,
    );
    call.enqueue(move |memory| {
        let (alpha, from, mut to) = (
            memory.scalar(alpha),
            memory.vector::<T>(x),
            memory.vector::<T>(y),
        );
        to.iter_mut()
            .zip(from)
            .for_each(|(to, from)| *to += alpha * from);
        memory.set_vector(y, &to);
    })
}

pub(super) unsafe fn scal<T: Number>(
    mut call: Call,
    n: i64,
    alpha: *const T,
    x: *mut T,
    incx: i64,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
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

pub(super) unsafe fn scal_real<T: Number>(
    mut call: Call,
    n: i64,
    alpha: *const T::Absolute,
    x: *mut T,
    incx: i64,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let alpha = unsafe { call.scalar(alpha) }?;
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

pub(super) unsafe fn copy<T: Number>(
    mut call: Call,
    n: i64,
    x: *const T,
    incx: i64,
    y: *mut T,
    incy: i64,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    let (x, y) = (
        call.vector(Read, x, n, incx)?,
        call.vector(Write, y, n, incy)?,
    );
    call.enqueue(move |memory| {
        let elements = memory.vector::<T>(x);
        memory.set_vector(y, &elements);
    })
}

pub(super) unsafe fn swap<T: Number>(
    mut call: Call,
    n: i64,
    x: *mut T,
    incx: i64,
    y: *mut T,
    incy: i64,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    let (x, y) = (
        call.vector(ReadWrite, x, n, incx)?,
        call.vector(ReadWrite, y, n, incy)?,
    );
    call.enqueue(move |memory| {
        let (one, other) = (memory.vector::<T>(x), memory.vector::<T>(y));
        memory.set_vector(x, &other);
        memory.set_vector(y, &one);
    })
}

pub(super) unsafe fn dot<T: Number>(
    mut call: Call,
    n: i64,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    result: *mut T,
) -> Result {
    let (x, y) = (
        call.vector(Read, x, n.max(0), incx)?,
        call.vector(Read, y, n.max(0), incy)?,
    );
    let compute = move |memory: &mut super::Memory<'_>| {
        let pairs = memory.vector::<T>(x).into_iter().zip(memory.vector::<T>(y));
        pairs.fold(T::zero(), |sum, (x, y)| sum + x * y)
    };
    // SAFETY: the caller passes a place for the result.
    unsafe { call.enqueue_with_result(result, compute) }
}

pub(super) unsafe fn dot_conjugated<T: Number>(
    mut call: Call,
    n: i64,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    result: *mut T,
) -> Result {
    let (x, y) = (
        call.vector(Read, x, n.max(0), incx)?,
        call.vector(Read, y, n.max(0), incy)?,
    );
    let compute = move |memory: &mut super::Memory<'_>| {
        let pairs = memory.vector::<T>(x).into_iter().zip(memory.vector::<T>(y));
        pairs.fold(T::zero(), |sum, (x, y)| sum + x.conj() * y)
    };
    // SAFETY: the caller passes a place for the result.
    unsafe { call.enqueue_with_result(result, compute) }
}

/// Scales by the greatest element, so that squares neither overflow nor vanish.
pub(super) unsafe fn nrm2<T: Number>(
    mut call: Call,
    n: i64,
    x: *const T,
    incx: i64,
    result: *mut T::Absolute,
) -> Result {
    let x = call.vector(Read, x, n.max(0), incx)?;
    let compute = move |memory: &mut super::Memory<'_>| {
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
    };
    // SAFETY: the caller passes a place for the result.
    unsafe { call.enqueue_with_result(result, compute) }
}

pub(super) unsafe fn asum<T: Number>(
    mut call: Call,
    n: i64,
    x: *const T,
    incx: i64,
    result: *mut T::Absolute,
) -> Result {
    let x = call.vector(Read, x, n.max(0), incx)?;
    let compute = move |memory: &mut super::Memory<'_>| {
        let zero = <T::Absolute as num_traits::Zero>::zero();
        memory
            .vector::<T>(x)
            .into_iter()
            .fold(zero, |sum, element| sum + element.l1_norm())
    };
    // SAFETY: the caller passes a place for the result.
    unsafe { call.enqueue_with_result(result, compute) }
}

pub(super) unsafe fn amax<T: Number>(
    call: Call,
    n: i64,
    x: *const T,
    incx: i64,
    result: *mut impl Index,
) -> Result {
    // SAFETY: the caller passes a place for the result.
    unsafe { extreme(call, (n, x, incx), result, greater::<T::Absolute>) }
}

pub(super) unsafe fn amin<T: Number>(
    call: Call,
    n: i64,
    x: *const T,
    incx: i64,
    result: *mut impl Index,
) -> Result {
    // SAFETY: the caller passes a place for the result.
    unsafe {
        extreme(call, (n, x, incx), result, |one, other| {
            greater::<T::Absolute>(other, one)
        })
    }
}

/// A type of indices, which are counted from 1.
pub(super) trait Index: Copy + Send + 'static {
    fn of(place: usize) -> Self;
}

impl Index for i32 {
    fn of(place: usize) -> Self {
        place as Self
    }
}

impl Index for i64 {
    fn of(place: usize) -> Self {
        place as Self
    }
}

/// Finds the first element that `beats` every other one. Only the host gets the result.
unsafe fn extreme<T: Number, I: Index>(
    mut call: Call,
    (n, x, incx): (i64, *const T, i64),
    result: *mut I,
    beats: impl Fn(T::Absolute, T::Absolute) -> bool + Send + Sync + 'static,
) -> Result {
    if n <= 0 || incx <= 0 {
        // SAFETY: the caller passes a place for the result.
        return unsafe { write(result, I::of(0)) };
    }
    if !call.results_are_on_host() {
        return Err(INVALID);
    }
    let x = call.vector(Read, x, n, incx)?;
    let compute = move |memory: &mut super::Memory<'_>| {
        let mut best: Option<(usize, T::Absolute)> = None;
        for (place, element) in memory.vector::<T>(x).into_iter().enumerate() {
            let size = element.l1_norm();
            if best.is_none_or(|(_, known)| beats(size, known)) {
                best = Some((place, size));
            }
        }
        I::of(best.map_or(0, |(place, _)| place + 1))
    };
    // SAFETY: the caller passes a place for the result.
    unsafe { call.run(result, compute) }
}

/// Compares absolute values, which are real numbers.
fn greater<T: Number>(one: T, other: T) -> bool {
    one.re() > other.re()
}

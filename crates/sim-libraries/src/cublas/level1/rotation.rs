//! Rotations.
//!
//! Every function is `unsafe`: its caller upholds the contract of the C function.

use num_complex::ComplexFloat as _;

use super::super::call::Access::{Read, ReadWrite, Write};
use super::super::memory::Memory;
use super::super::{Call, INVALID, Number, Result};

pub(in super::super) unsafe fn rot<T: Number>(
    mut call: Call,
    n: i64,
    x: *mut T,
    incx: i64,
    y: *mut T,
    incy: i64,
    cosine: *const T::Absolute,
    sine: *const T,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let cosine = unsafe { call.scalar(cosine) }?;
    // SAFETY: the caller passes a factor.
    let sine = unsafe { call.scalar(sine) }?;
    transform(call, n, (x, incx), (y, incy), move |memory| {
        let (cosine, sine) = (T::from_real(memory.scalar(cosine)), memory.scalar(sine));
        [[cosine, sine], [-sine.conj(), cosine]]
    })
}

pub(in super::super) unsafe fn rot_real<T: Number>(
    mut call: Call,
    n: i64,
    x: *mut T,
    incx: i64,
    y: *mut T,
    incy: i64,
    cosine: *const T::Absolute,
    sine: *const T::Absolute,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    // SAFETY: the caller passes a factor.
    let cosine = unsafe { call.scalar(cosine) }?;
    // SAFETY: the caller passes a factor.
    let sine = unsafe { call.scalar(sine) }?;
    transform(call, n, (x, incx), (y, incy), move |memory| {
        let (cosine, sine) = (
            T::from_real(memory.scalar(cosine)),
            T::from_real(memory.scalar(sine)),
        );
        [[cosine, sine], [-sine, cosine]]
    })
}

pub(in super::super) unsafe fn rotm<T: Number>(
    mut call: Call,
    n: i64,
    x: *mut T,
    incx: i64,
    y: *mut T,
    incy: i64,
    parameters: *const T,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    // SAFETY: the caller passes five parameters.
    let parameters = unsafe { call.scalar(parameters.cast::<[T; 5]>()) }?;
    transform(call, n, (x, incx), (y, incy), move |memory| {
        matrix_of(memory.scalar(parameters))
    })
}

/// Multiplies points by a matrix.
fn transform<T: Number>(
    mut call: Call,
    n: i64,
    (x, incx): (*mut T, i64),
    (y, incy): (*mut T, i64),
    matrix: impl Fn(&Memory<'_>) -> [[T; 2]; 2] + Send + Sync + 'static,
) -> Result {
    let (x, y) = (
        call.vector(ReadWrite, x, n, incx)?,
        call.vector(ReadWrite, y, n, incy)?,
    );
    call.enqueue(move |memory| {
        let [[h11, h12], [h21, h22]] = matrix(memory);
        let pairs = memory.vector::<T>(x).into_iter().zip(memory.vector::<T>(y));
        let (first, second): (Vec<T>, Vec<T>) = pairs
            .map(|(x, y)| (h11 * x + h12 * y, h21 * x + h22 * y))
            .unzip();
        memory.set_vector(x, &first);
        memory.set_vector(y, &second);
    })
}

/// Returns the matrix of a modified rotation. The flag determines which of the elements are stored.
fn matrix_of<T: Number>([flag, h11, h21, h12, h22]: [T; 5]) -> [[T; 2]; 2] {
    let (zero, one) = (T::zero(), T::one());
    if flag == -one - one {
        [[one, zero], [zero, one]]
    } else if flag == -one {
        [[h11, h12], [h21, h22]]
    } else if flag == zero {
        [[one, h12], [h21, one]]
    } else {
        [[h11, one], [-one, h22]]
    }
}

pub(in super::super) unsafe fn rotg<T: Number>(
    mut call: Call,
    a: *mut T,
    b: *mut T,
    cosine: *mut T::Absolute,
    sine: *mut T,
) -> Result {
    if a.is_null() || b.is_null() || cosine.is_null() || sine.is_null() {
        return Err(INVALID);
    }
    if call.results_are_on_host() {
        // SAFETY: the caller passes a place on the host.
        let read = |place: *mut T| unsafe { place.read_unaligned() };
        let (r, z, c, s) = givens(read(a), read(b));
        // SAFETY: as above.
        let write = |place: *mut T, value: T| unsafe { place.write_unaligned(value) };
        write(a, r);
        write(b, z);
        write(sine, s);
        // SAFETY: as above.
        unsafe { cosine.write_unaligned(c) };
        return Ok(());
    }
    let (a, b) = (
        call.vector(ReadWrite, a, 1, 1)?,
        call.vector(ReadWrite, b, 1, 1)?,
    );
    let (cosine, sine) = (
        call.vector(Write, cosine, 1, 1)?,
        call.vector(Write, sine, 1, 1)?,
    );
    call.enqueue(move |memory| {
        let (r, z, c, s) = givens(memory.vector::<T>(a)[0], memory.vector::<T>(b)[0]);
        memory.set_vector(a, &[r]);
        memory.set_vector(b, &[z]);
        memory.set_vector(cosine, &[c]);
        memory.set_vector(sine, &[s]);
    })
}

/// Returns the results of `cublas<t>rotg`: the new `a` and `b`, the cosine and the sine.
///
/// The new `a` is the rotated first coordinate. The new `b` encodes the rotation of real numbers, and is the old one for complex numbers.
fn givens<T: Number>(a: T, b: T) -> (T, T, T::Absolute, T) {
    let (zero, one) = (
        <T::Absolute as num_traits::Zero>::zero(),
        <T::Absolute as num_traits::One>::one(),
    );
    let (size_a, size_b) = (a.abs(), b.abs());
    if size_b == zero {
        return (a, T::zero(), one, T::zero());
    }
    if size_a == zero {
        return (
            T::from_real(size_b),
            T::one(),
            zero,
            b.conj() / T::from_real(size_b),
        );
    }
    let greater = if size_a > size_b { size_a } else { size_b };
    let (part_a, part_b) = (size_a / greater, size_b / greater);
    let norm = greater * (part_a * part_a + part_b * part_b).sqrt();
    // The result has the sign of the greater real coordinate, and the direction of a complex `a`.
    let is_real = size_of::<T>() == size_of::<T::Absolute>();
    let direction = if is_real && size_b >= size_a {
        b / T::from_real(size_b)
    } else {
        a / T::from_real(size_a)
    };
    let length = direction * T::from_real(norm);
    let (cosine, sine) = if is_real {
        ((a / length).re(), b / length)
    } else {
        (size_a / norm, direction * b.conj() / T::from_real(norm))
    };
    let restoring = match (is_real, size_a > size_b) {
        (false, _) => b,
        (true, true) => sine,
        (true, false) => T::one() / T::from_real(cosine),
    };
    (length, restoring, cosine, sine)
}

pub(in super::super) unsafe fn rotmg<T: Number + PartialOrd>(
    mut call: Call,
    d1: *mut T,
    d2: *mut T,
    x1: *mut T,
    y1: *const T,
    parameters: *mut T,
) -> Result {
    if d1.is_null() || d2.is_null() || x1.is_null() || y1.is_null() || parameters.is_null() {
        return Err(INVALID);
    }
    if call.results_are_on_host() {
        // SAFETY: the caller passes a place on the host.
        let read = |place: *const T| unsafe { place.read() };
        let ([new_d1, new_d2, new_x1], h) =
            modified_givens([read(d1), read(d2), read(x1), read(y1)]);
        // SAFETY: as above.
        let write = |place: *mut T, value: T| unsafe { place.write(value) };
        write(d1, new_d1);
        write(d2, new_d2);
        write(x1, new_x1);
        // SAFETY: as above, with five parameters.
        unsafe { parameters.cast::<[T; 5]>().write(h) };
        return Ok(());
    }
    let (d1, d2) = (
        call.vector(ReadWrite, d1, 1, 1)?,
        call.vector(ReadWrite, d2, 1, 1)?,
    );
    let (x1, y1) = (
        call.vector(ReadWrite, x1, 1, 1)?,
        call.vector(Read, y1, 1, 1)?,
    );
    let parameters = call.vector(Write, parameters, 5, 1)?;
    call.enqueue(move |memory| {
        let ([new_d1, new_d2, new_x1], h) =
            modified_givens([d1, d2, x1, y1].map(|place| memory.vector::<T>(place)[0]));
        memory.set_vector(d1, &[new_d1]);
        memory.set_vector(d2, &[new_d2]);
        memory.set_vector(x1, &[new_x1]);
        memory.set_vector(parameters, &h);
    })
}

/// Returns the new scale factors and the new coordinate, and the parameters of the matrix.
fn modified_givens<T: Number + PartialOrd>([d1, d2, x1, y1]: [T; 4]) -> ([T; 3], [T; 5]) {
    let (zero, one) = (T::zero(), T::one());
    let nothing = ([zero; 3], [-one, zero, zero, zero, zero]);
    if d1 < zero {
        return nothing;
    }
    let p2 = d2 * y1;
    if p2 == zero {
        return ([d1, d2, x1], [-one - one, zero, zero, zero, zero]);
    }
    let p1 = d1 * x1;
    let (q1, q2) = (p1 * x1, p2 * y1);
    let is_diagonal = q1.abs() > q2.abs();
    let (mut scaled, mut h) = if is_diagonal {
        let (h21, h12) = (-y1 / x1, p2 / p1);
        let u = one - h12 * h21;
        ([d1 / u, d2 / u, x1 * u], [[one, h12], [h21, one]])
    } else if q2 < zero {
        return nothing;
    } else {
        let (h11, h22) = (p1 / p2, x1 / y1);
        let u = one + h11 * h22;
        ([d2 / u, d1 / u, y1 * u], [[h11, one], [-one, h22]])
    };
    let is_scaled = rescale(&mut scaled, &mut h);
    let [[h11, h12], [h21, h22]] = h;
    let parameters = match (is_scaled, is_diagonal) {
        (true, _) => [-one, h11, h21, h12, h22],
        (false, true) => [zero, zero, h21, h12, zero],
        (false, false) => [one, h11, zero, zero, h22],
    };
    (scaled, parameters)
}

/// Keeps the scale factors between 1 / 4096² and 4096². Returns `true` if one was changed.
fn rescale<T: Number + PartialOrd>(
    [d1, d2, x1]: &mut [T; 3],
    [first, second]: &mut [[T; 2]; 2],
) -> bool {
    let two = T::one() + T::one();
    let gamma = (0..12).fold(T::one(), |gamma, _| gamma * two);
    let (most, least) = (
        T::from_real((gamma * gamma).re()),
        T::one() / (gamma * gamma),
    );
    let is_far =
        |d: T| d != T::zero() && (T::from_real(d.abs()) <= least || T::from_real(d.abs()) >= most);
    let mut is_scaled = false;
    while is_far(*d1) {
        let factor = if T::from_real(d1.abs()) <= least {
            gamma
        } else {
            T::one() / gamma
        };
        (*d1, *x1) = (*d1 * factor * factor, *x1 / factor);
        *first = first.map(|element| element / factor);
        is_scaled = true;
    }
    while is_far(*d2) {
        let factor = if T::from_real(d2.abs()) <= least {
            gamma
        } else {
            T::one() / gamma
        };
        *d2 = *d2 * factor * factor;
        *second = second.map(|element| element / factor);
        is_scaled = true;
    }
    is_scaled
}

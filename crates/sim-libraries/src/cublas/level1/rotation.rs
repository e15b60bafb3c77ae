//! Rotations.

use num_complex::ComplexFloat as _;

use super::super::call::Access::{Read, ReadWrite, Write};
use super::super::memory::Memory;
use super::super::operand::{Output, PointerArgument as _, ScalarInput, ScalarOutput};
use super::super::{Call, INVALID, Number, Result};

pub(in super::super) fn rot<T: Number>(
    mut call: Call,
    n: i64,
    x: Output<T>,
    incx: i64,
    y: Output<T>,
    incy: i64,
    cosine: ScalarInput<T::Absolute>,
    sine: ScalarInput<T>,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    let cosine = call.scalar(cosine)?;
    let sine = call.scalar(sine)?;
    transform(call, n, x, incx, y, incy, move |memory| {
        let cosine = T::from_real(memory.scalar(cosine));
        let sine = memory.scalar(sine);
        [[cosine, sine], [-sine.conj(), cosine]]
    })
}

pub(in super::super) fn rot_real<T: Number>(
    mut call: Call,
    n: i64,
    x: Output<T>,
    incx: i64,
    y: Output<T>,
    incy: i64,
    cosine: ScalarInput<T::Absolute>,
    sine: ScalarInput<T::Absolute>,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    let cosine = call.scalar(cosine)?;
    let sine = call.scalar(sine)?;
    transform(call, n, x, incx, y, incy, move |memory| {
        let cosine = T::from_real(memory.scalar(cosine));
        let sine = T::from_real(memory.scalar(sine));
        [[cosine, sine], [-sine, cosine]]
    })
}

pub(in super::super) fn rotm<T: Number>(
    mut call: Call,
    n: i64,
    x: Output<T>,
    incx: i64,
    y: Output<T>,
    incy: i64,
    parameters: ScalarInput<T>,
) -> Result {
    if n <= 0 {
        return Ok(());
    }
    let parameters = call.scalar(parameters.cast::<[T; 5]>())?;
    transform(call, n, x, incx, y, incy, move |memory| {
        modified_rotation(memory.scalar(parameters))
    })
}

/// Multiplies points by a matrix.
fn transform<T: Number>(
    mut call: Call,
    n: i64,
    x: Output<T>,
    incx: i64,
    y: Output<T>,
    incy: i64,
    matrix: impl Fn(&Memory<'_>) -> [[T; 2]; 2] + Send + Sync + 'static,
) -> Result {
    let x = call.vector(ReadWrite, x, n, incx)?;
    let y = call.vector(ReadWrite, y, n, incy)?;
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
fn modified_rotation<T: Number>([flag, h11, h21, h12, h22]: [T; 5]) -> [[T; 2]; 2] {
    let zero = T::zero();
    let one = T::one();
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

pub(in super::super) fn rotg<T: Number>(
    mut call: Call,
    a: ScalarOutput<T>,
    b: ScalarOutput<T>,
    cosine: ScalarOutput<T::Absolute>,
    sine: ScalarOutput<T>,
) -> Result {
    if a.is_null() || b.is_null() || cosine.is_null() || sine.is_null() {
        return Err(INVALID);
    }
    if let Some(mode) = call.host_mode() {
        let rotation = givens(a.read(mode)?, b.read(mode)?);
        a.write(mode, rotation.a)?;
        b.write(mode, rotation.b)?;
        sine.write(mode, rotation.sine)?;
        return cosine.write(mode, rotation.cosine);
    }
    let a = call.vector(ReadWrite, a.on_device(), 1, 1)?;
    let b = call.vector(ReadWrite, b.on_device(), 1, 1)?;
    let cosine = call.vector(Write, cosine.on_device(), 1, 1)?;
    let sine = call.vector(Write, sine.on_device(), 1, 1)?;
    call.enqueue(move |memory| {
        let rotation = givens(memory.vector::<T>(a)[0], memory.vector::<T>(b)[0]);
        memory.set_vector(a, &[rotation.a]);
        memory.set_vector(b, &[rotation.b]);
        memory.set_vector(cosine, &[rotation.cosine]);
        memory.set_vector(sine, &[rotation.sine]);
    })
}

/// The results of `cublas<t>rotg`.
struct Givens<T: Number> {
    /// The rotated first coordinate.
    a: T,
    /// The encoded rotation of real numbers; the second coordinate for complex numbers.
    b: T,
    cosine: T::Absolute,
    sine: T,
}

fn givens<T: Number>(a: T, b: T) -> Givens<T> {
    let zero = <T::Absolute as num_traits::Zero>::zero();
    let one = <T::Absolute as num_traits::One>::one();
    let size_a = a.abs();
    let size_b = b.abs();
    if size_b == zero {
        return Givens {
            a,
            b: T::zero(),
            cosine: one,
            sine: T::zero(),
        };
    }
    if size_a == zero {
        return Givens {
            a: T::from_real(size_b),
            b: T::one(),
            cosine: zero,
            sine: b.conj() / T::from_real(size_b),
        };
    }
    let greater = if size_a > size_b { size_a } else { size_b };
    let part_a = size_a / greater;
    let part_b = size_b / greater;
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
    let encoded = match (is_real, size_a > size_b) {
        (false, _) => b,
        (true, true) => sine,
        (true, false) => T::one() / T::from_real(cosine),
    };
    Givens {
        a: length,
        b: encoded,
        cosine,
        sine,
    }
}

pub(in super::super) fn rotmg<T: Number + PartialOrd>(
    mut call: Call,
    d1: ScalarOutput<T>,
    d2: ScalarOutput<T>,
    x1: ScalarOutput<T>,
    y1: ScalarInput<T>,
    parameters: ScalarOutput<T>,
) -> Result {
    if d1.is_null() || d2.is_null() || x1.is_null() || y1.is_null() || parameters.is_null() {
        return Err(INVALID);
    }
    if let Some(mode) = call.host_mode() {
        let ([new_d1, new_d2, new_x1], h) = modified_givens([
            d1.read(mode)?,
            d2.read(mode)?,
            x1.read(mode)?,
            y1.read(mode)?,
        ]);
        d1.write(mode, new_d1)?;
        d2.write(mode, new_d2)?;
        x1.write(mode, new_x1)?;
        return parameters.cast::<[T; 5]>().write(mode, h);
    }
    let d1 = call.vector(ReadWrite, d1.on_device(), 1, 1)?;
    let d2 = call.vector(ReadWrite, d2.on_device(), 1, 1)?;
    let x1 = call.vector(ReadWrite, x1.on_device(), 1, 1)?;
    let y1 = call.vector(Read, y1.on_device(), 1, 1)?;
    let parameters = call.vector(Write, parameters.on_device(), 5, 1)?;
    call.enqueue(move |memory| {
        let ([new_d1, new_d2, new_x1], h) =
            modified_givens([d1, d2, x1, y1].map(|scalar| memory.vector::<T>(scalar)[0]));
        memory.set_vector(d1, &[new_d1]);
        memory.set_vector(d2, &[new_d2]);
        memory.set_vector(x1, &[new_x1]);
        memory.set_vector(parameters, &h);
    })
}

/// Returns the new scale factors and the new coordinate, and the parameters of the matrix.
fn modified_givens<T: Number + PartialOrd>([d1, d2, x1, y1]: [T; 4]) -> ([T; 3], [T; 5]) {
    let zero = T::zero();
    let one = T::one();
    let nothing = ([zero; 3], [-one, zero, zero, zero, zero]);
    if d1 < zero {
        return nothing;
    }
    let p2 = d2 * y1;
    if p2 == zero {
        return ([d1, d2, x1], [-one - one, zero, zero, zero, zero]);
    }
    let p1 = d1 * x1;
    let q1 = p1 * x1;
    let q2 = p2 * y1;
    let is_diagonal = q1.abs() > q2.abs();
    let (mut scaled, mut h) = if is_diagonal {
        let h21 = -y1 / x1;
        let h12 = p2 / p1;
        let u = one - h12 * h21;
        ([d1 / u, d2 / u, x1 * u], [[one, h12], [h21, one]])
    } else if q2 < zero {
        return nothing;
    } else {
        let h11 = p1 / p2;
        let h22 = x1 / y1;
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
    let mut is_scaled = false;
    while let Some(factor) = rescaling(*d1, gamma) {
        *d1 = *d1 * factor * factor;
        *x1 = *x1 / factor;
        *first = first.map(|element| element / factor);
        is_scaled = true;
    }
    while let Some(factor) = rescaling(*d2, gamma) {
        *d2 = *d2 * factor * factor;
        *second = second.map(|element| element / factor);
        is_scaled = true;
    }
    is_scaled
}

/// Returns the factor by which a scale factor beyond 1 / `gamma`² or `gamma`² is rescaled.
fn rescaling<T: Number + PartialOrd>(d: T, gamma: T) -> Option<T> {
    let size = T::from_real(d.abs());
    if d == T::zero() {
        None
    } else if size <= T::one() / (gamma * gamma) {
        Some(gamma)
    } else if size >= gamma * gamma {
        Some(T::one() / gamma)
    } else {
        None
    }
}

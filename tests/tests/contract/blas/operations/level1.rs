//! Checks of operations on vectors.

use curium_blas::{Blas, Complex64, ModifiedRotation, RealElement, Result};
use curium_tests::uses_cuda;

use super::super::random::{Random, RandomVector};
use super::super::reference::{Host, Number};
use super::sizes;

pub(super) fn axpy<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::new(random, &stream, n)?;
    let expected = y.host.plus(&x.host.scaled(alpha.wide()));
    blas.axpy(alpha, x.view()?, &mut y.view_mut()?)?;
    y.now()?.assert_is::<T>(&expected, 2, "axpy");
    Ok(())
}

pub(super) fn scal<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    blas.scal(alpha, &mut x.view_mut()?)?;
    x.now()?
        .assert_is::<T>(&x.host.scaled(alpha.wide()), 1, "scal");
    Ok(())
}

pub(super) fn scal_real<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    blas.scal_real(T::real(0.75), &mut x.view_mut()?)?;
    x.now()?
        .assert_is::<T>(&x.host.scaled(Complex64::new(0.75, 0.0)), 1, "scal_real");
    Ok(())
}

pub(super) fn copy<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::new(random, &stream, n)?;
    blas.copy(x.view()?, &mut y.view_mut()?)?;
    y.now()?.assert_is::<T>(&x.host, 0, "copy");
    Ok(())
}

pub(super) fn swap<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, n)?;
    blas.swap(&mut x.view_mut()?, &mut y.view_mut()?)?;
    x.now()?.assert_is::<T>(&y.host, 0, "swap");
    y.now()?.assert_is::<T>(&x.host, 0, "swap");
    Ok(())
}

pub(super) fn rot<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, n)?;
    let cosine = Complex64::new(0.6, 0.0);
    let sine = Complex64::new(0.8, 0.0);
    blas.rot(
        &mut x.view_mut()?,
        &mut y.view_mut()?,
        T::real(0.6),
        T::narrow(sine),
    )?;
    let rotated = (
        x.host.scaled(cosine).plus(&y.host.scaled(sine)),
        y.host.scaled(cosine).plus(&x.host.scaled(-sine)),
    );
    x.now()?.assert_is::<T>(&rotated.0, 3, "rot");
    y.now()?.assert_is::<T>(&rotated.1, 3, "rot");
    Ok(())
}

pub(super) fn rot_real<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, n)?;
    let cosine = Complex64::new(0.6, 0.0);
    let sine = Complex64::new(-0.8, 0.0);
    blas.rot_real(
        &mut x.view_mut()?,
        &mut y.view_mut()?,
        T::real(0.6),
        T::real(-0.8),
    )?;
    let rotated = (
        x.host.scaled(cosine).plus(&y.host.scaled(sine)),
        y.host.scaled(cosine).plus(&x.host.scaled(-sine)),
    );
    x.now()?.assert_is::<T>(&rotated.0, 3, "rot_real");
    y.now()?.assert_is::<T>(&rotated.1, 3, "rot_real");
    Ok(())
}

/// Checks the rotation of the point that it was computed for.
pub(super) fn rotg<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let zero = T::narrow(Complex64::new(0.0, 0.0));
    let (a, b) = match random.below(6) {
        0 => (random.number::<T>(), zero),
        1 => (zero, random.number()),
        _ => (random.number(), random.number()),
    };
    let actual = blas.rotg(a, b)?;
    let a = a.wide();
    let b = b.wide();
    let c = complex_from_real::<T>(actual.cosine);
    let s = actual.sine.wide();
    scalar(c * a + s * b).assert_is::<T>(&scalar(actual.length.wide()), 4, "rotg");
    scalar(c * b - s.conj() * a).assert_is::<T>(&scalar(Complex64::new(0.0, 0.0)), 4, "rotg");
    scalar(Complex64::new(c.norm_sqr() + s.norm_sqr(), 0.0)).assert_is::<T>(
        &scalar(Complex64::new(1.0, 0.0)),
        4,
        "rotg",
    );
    Ok(())
}

pub(super) fn rotm<T: Number + RealElement>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, n)?;
    let [h11, h21, h12, h22]: [T; 4] = std::array::from_fn(|_| random.number());
    let one = Complex64::new(1.0, 0.0);
    let (rotation, first, second) = match random.below(4) {
        0 => (
            ModifiedRotation::Identity,
            [one, one * 0.0],
            [one * 0.0, one],
        ),
        1 => (
            ModifiedRotation::Full { h11, h21, h12, h22 },
            [h11.wide(), h12.wide()],
            [h21.wide(), h22.wide()],
        ),
        2 => (
            ModifiedRotation::UnitDiagonal { h21, h12 },
            [one, h12.wide()],
            [h21.wide(), one],
        ),
        _ => (
            ModifiedRotation::UnitAntidiagonal { h11, h22 },
            [h11.wide(), one],
            [-one, h22.wide()],
        ),
    };
    blas.rotm(&mut x.view_mut()?, &mut y.view_mut()?, rotation)?;
    let expected = [first, second].map(|row| x.host.scaled(row[0]).plus(&y.host.scaled(row[1])));
    x.now()?.assert_is::<T>(&expected[0], 3, "rotm");
    y.now()?.assert_is::<T>(&expected[1], 3, "rotm");
    assert_eq!(
        rotation.matrix().map(|row| row.map(Number::wide)),
        [first, second],
        "rotm"
    );
    Ok(())
}

/// Checks the matrix `h` by its definition: it turns the point to a second coordinate of 0, and
/// transposed(h) · d' · h is d.
pub(super) fn rotmg<T: Number + RealElement>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    // The reference implementation loses elements when it rescales twice, so only the simulated
    // library is tested with such values.
    let most = if uses_cuda() { 4 } else { 40 };
    let scale = |random: &mut Random| 2.0_f64.powi(random.below(2 * most) as i32 - most as i32);
    let positive = |random: &mut Random| {
        T::narrow(Complex64::new(
            (0.5 + random.below(100) as f64) * scale(random),
            0.0,
        ))
    };
    let before = [
        positive(random),
        positive(random),
        random.number::<T>(),
        random.number::<T>(),
    ];
    let [mut d1, mut d2, mut x1, y1] = before;
    let h = blas
        .rotmg(&mut d1, &mut d2, &mut x1, y1)?
        .matrix()
        .map(|row| row.map(|element| element.wide().re));
    let [old_d1, old_d2, old_x1, y1] = before.map(|value| value.wide().re);
    let [d1, d2, x1] = [d1, d2, x1].map(|value| value.wide().re);
    let near = |terms: [f64; 2], expected: f64| {
        let size: f64 = terms.iter().map(|term| term.abs()).sum();
        let error = (terms[0] + terms[1] - expected).abs();
        assert!(
            error <= 64.0 * T::EPSILON * (size + expected.abs()),
            "rotmg: {terms:?} is not {expected} for {before:?}"
        );
    };
    near([h[0][0] * old_x1, h[0][1] * y1], x1);
    near([h[1][0] * old_x1, h[1][1] * y1], 0.0);
    near([h[0][0] * h[0][0] * d1, h[1][0] * h[1][0] * d2], old_d1);
    near([h[0][1] * h[0][1] * d1, h[1][1] * h[1][1] * d2], old_d2);
    near([h[0][0] * h[0][1] * d1, h[1][0] * h[1][1] * d2], 0.0);
    Ok(())
}

fn scalar(value: Complex64) -> Host {
    Host::from_fn(1, 1, |_, _| value)
}

pub(super) fn dot<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let y = RandomVector::<T>::new(random, &stream, n)?;
    let actual = blas.dot(x.view()?, y.view()?)?.wide();
    scalar(actual).assert_is::<T>(&x.host.transposed().times(&y.host), n, "dot");
    Ok(())
}

pub(super) fn dot_conjugated<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let y = RandomVector::<T>::new(random, &stream, n)?;
    let actual = blas.dot_conjugated(x.view()?, y.view()?)?.wide();
    scalar(actual).assert_is::<T>(&x.host.adjoint().times(&y.host), n, "dot_conjugated");
    Ok(())
}

pub(super) fn nrm2<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let sum: f64 = (0..n).map(|row| x.host.at(row, 0).norm_sqr()).sum();
    let actual = complex_from_real::<T>(blas.nrm2(x.view()?)?);
    scalar(actual).assert_is::<T>(&scalar(Complex64::new(sum.sqrt(), 0.0)), n, "nrm2");
    Ok(())
}

pub(super) fn asum<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let sum: f64 = (0..n).map(|row| x.host.at(row, 0).l1_norm()).sum();
    let actual = complex_from_real::<T>(blas.asum(x.view()?)?);
    scalar(actual).assert_is::<T>(&scalar(Complex64::new(sum, 0.0)), n, "asum");
    Ok(())
}

/// Returns a real number, whatever its type: its bytes are those of `f32` or `f64`.
fn complex_from_real<T: Number>(value: T::Real) -> Complex64 {
    let bytes = bytemuck::bytes_of(&value);
    let number = match bytes.len() {
        4 => f64::from(bytemuck::pod_read_unaligned::<f32>(bytes)),
        _ => bytemuck::pod_read_unaligned(bytes),
    };
    Complex64::new(number, 0.0)
}

pub(super) fn iamax<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let size = |row: usize| x.host.at(row, 0).l1_norm();
    let actual = blas.index_of_max(x.view()?)?.expect("no index");
    assert!(
        (0..n).all(|row| size(row) <= size(actual) + 1e-6),
        "iamax: {actual}"
    );
    Ok(())
}

pub(super) fn iamin<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let size = |row: usize| x.host.at(row, 0).l1_norm();
    let actual = blas.index_of_min(x.view()?)?.expect("no index");
    assert!(
        (0..n).all(|row| size(row) >= size(actual) - 1e-6),
        "iamin: {actual}"
    );
    Ok(())
}

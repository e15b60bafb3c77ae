//! Checks of operations on vectors.

use curium_blas::{Blas, Complex64, Result};

use super::super::random::{Random, RandomVector};
use super::super::reference::{Host, Number};
use super::sizes;

pub(super) fn axpy<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n, alpha) = (blas.stream().clone(), sizes(random).0, random.number::<T>());
    let (x, mut y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::new(random, &stream, n));
    let expected = y.host.plus(&x.host.scaled(alpha.wide()));
    blas.axpy(alpha, x.view(), &mut y.view_mut())?;
    y.now().assert_is::<T>(&expected, 2, "axpy");
    Ok(())
}

pub(super) fn scal<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n, alpha) = (blas.stream().clone(), sizes(random).0, random.number::<T>());
    let mut x = RandomVector::<T>::new(random, &stream, n);
    blas.scal(alpha, &mut x.view_mut())?;
    x.now().assert_is::<T>(&x.host.scaled(alpha.wide()), 1, "scal");
    Ok(())
}

pub(super) fn scal_real<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let mut x = RandomVector::<T>::new(random, &stream, n);
    blas.scal_real(T::real(0.75), &mut x.view_mut())?;
    x.now().assert_is::<T>(&x.host.scaled(Complex64::new(0.75, 0.0)), 1, "scal_real");
    Ok(())
}

pub(super) fn copy<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (x, mut y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::new(random, &stream, n));
    blas.copy(x.view(), &mut y.view_mut())?;
    y.now().assert_is::<T>(&x.host, 0, "copy");
    Ok(())
}

pub(super) fn swap<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (mut x, mut y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    blas.swap(&mut x.view_mut(), &mut y.view_mut())?;
    x.now().assert_is::<T>(&y.host, 0, "swap");
    y.now().assert_is::<T>(&x.host, 0, "swap");
    Ok(())
}

pub(super) fn rot<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (mut x, mut y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    let (cosine, sine) = (Complex64::new(0.6, 0.0), Complex64::new(0.8, 0.0));
    blas.rot(&mut x.view_mut(), &mut y.view_mut(), T::real(0.6), T::narrow(sine))?;
    let rotated = (x.host.scaled(cosine).plus(&y.host.scaled(sine)), y.host.scaled(cosine).plus(&x.host.scaled(-sine)));
    x.now().assert_is::<T>(&rotated.0, 3, "rot");
    y.now().assert_is::<T>(&rotated.1, 3, "rot");
    Ok(())
}

fn scalar(value: Complex64) -> Host {
    Host::from_fn(1, 1, |_, _| value)
}

pub(super) fn dot<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (x, y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    let found = blas.dot(x.view(), y.view())?.wide();
    scalar(found).assert_is::<T>(&x.host.transposed().times(&y.host), n, "dot");
    Ok(())
}

pub(super) fn dot_conjugated<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (x, y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    let found = blas.dot_conjugated(x.view(), y.view())?.wide();
    scalar(found).assert_is::<T>(&x.host.adjoint().times(&y.host), n, "dot_conjugated");
    Ok(())
}

pub(super) fn nrm2<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let x = RandomVector::<T>::new(random, &stream, n);
    let sum: f64 = (0..n).map(|row| x.host.at(row, 0).norm_sqr()).sum();
    let found = of_real::<T>(blas.nrm2(x.view())?);
    scalar(found).assert_is::<T>(&scalar(Complex64::new(sum.sqrt(), 0.0)), n, "nrm2");
    Ok(())
}

pub(super) fn asum<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let x = RandomVector::<T>::new(random, &stream, n);
    let sum: f64 = (0..n).map(|row| x.host.at(row, 0).l1_norm()).sum();
    let found = of_real::<T>(blas.asum(x.view())?);
    scalar(found).assert_is::<T>(&scalar(Complex64::new(sum, 0.0)), n, "asum");
    Ok(())
}

/// Returns a real number, whatever its type: its bytes are those of `f32` or `f64`.
fn of_real<T: Number>(value: T::Real) -> Complex64 {
    let bytes = bytemuck::bytes_of(&value);
    let number = match bytes.len() {
        4 => f64::from(bytemuck::pod_read_unaligned::<f32>(bytes)),
        _ => bytemuck::pod_read_unaligned(bytes),
    };
    Complex64::new(number, 0.0)
}

pub(super) fn index_of_max<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let x = RandomVector::<T>::new(random, &stream, n);
    let size = |row: usize| x.host.at(row, 0).l1_norm();
    let found = blas.index_of_max(x.view())?.expect("there is an element");
    assert!((0..n).all(|row| size(row) <= size(found) + 1e-6), "index_of_max: {found}");
    Ok(())
}

pub(super) fn index_of_min<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let x = RandomVector::<T>::new(random, &stream, n);
    let size = |row: usize| x.host.at(row, 0).l1_norm();
    let found = blas.index_of_min(x.view())?.expect("there is an element");
    assert!((0..n).all(|row| size(row) >= size(found) - 1e-6), "index_of_min: {found}");
    Ok(())
}

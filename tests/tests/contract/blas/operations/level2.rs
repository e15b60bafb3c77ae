//! Checks of operations on a matrix and vectors.

use curium_blas::{Blas, Complex64, Diagonal, RealElement, Result};

use super::super::random::{Random, RandomBanded, RandomMatrix, RandomPacked, RandomVector};
use super::super::reference::Number;
use super::shape::{diagonal, hermitian, is_in, symmetric, triangle, triangular};
use super::sizes;

pub(super) fn gemv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (m, n, _) = sizes(random);
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let a = RandomMatrix::<T>::new(random, &stream, m, n)?;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, m)?;
    blas.gemv(alpha, a.view()?, x.view()?, beta, &mut y.view_mut()?)?;
    let expected = a
        .host
        .times(&x.host)
        .scaled(alpha.wide())
        .plus(&y.host.scaled(beta.wide()));
    y.now()?.assert_is::<T>(&expected, n, "gemv");
    Ok(())
}

pub(super) fn ger<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (m, n, _) = sizes(random);
    let alpha = random.number::<T>();
    let x = RandomVector::<T>::new(random, &stream, m)?;
    let y = RandomVector::<T>::new(random, &stream, n)?;
    let mut a = RandomMatrix::<T>::result(random, &stream, m, n)?;
    blas.ger(alpha, x.view()?, y.view()?, &mut a.view_mut()?)?;
    let expected = a
        .host
        .plus(&x.host.times(&y.host.transposed()).scaled(alpha.wide()));
    a.now()?.assert_is::<T>(&expected, 3, "ger");
    Ok(())
}

pub(super) fn ger_conjugated<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (m, n, _) = sizes(random);
    let alpha = random.number::<T>();
    let x = RandomVector::<T>::new(random, &stream, m)?;
    let y = RandomVector::<T>::new(random, &stream, n)?;
    let mut a = RandomMatrix::<T>::result(random, &stream, m, n)?;
    blas.ger_conjugated(alpha, x.view()?, y.view()?, &mut a.view_mut()?)?;
    let expected = a
        .host
        .plus(&x.host.times(&y.host.adjoint()).scaled(alpha.wide()));
    a.now()?.assert_is::<T>(&expected, 3, "ger_conjugated");
    Ok(())
}

pub(super) fn symv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let triangle = triangle(random);
    let a = RandomMatrix::<T>::new(random, &stream, n, n)?;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, n)?;
    blas.symv(
        alpha,
        triangle,
        a.view()?,
        x.view()?,
        beta,
        &mut y.view_mut()?,
    )?;
    let product = symmetric(&a.host, triangle).times(&x.host);
    let expected = product
        .scaled(alpha.wide())
        .plus(&y.host.scaled(beta.wide()));
    y.now()?.assert_is::<T>(&expected, n, "symv");
    Ok(())
}

pub(super) fn hemv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let triangle = triangle(random);
    let a = RandomMatrix::<T>::new(random, &stream, n, n)?;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, n)?;
    blas.hemv(
        alpha,
        triangle,
        a.view()?,
        x.view()?,
        beta,
        &mut y.view_mut()?,
    )?;
    let product = hermitian(&a.host, triangle).times(&x.host);
    let expected = product
        .scaled(alpha.wide())
        .plus(&y.host.scaled(beta.wide()));
    y.now()?.assert_is::<T>(&expected, n, "hemv");
    Ok(())
}

pub(super) fn syr<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let triangle = triangle(random);
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut a = RandomMatrix::<T>::result(random, &stream, n, n)?;
    blas.syr(alpha, x.view()?, triangle, &mut a.view_mut()?)?;
    let sum = a
        .host
        .plus(&x.host.times(&x.host.transposed()).scaled(alpha.wide()));
    a.now()?.assert_is::<T>(
        &sum.or(&a.host, |row, column| is_in(triangle, row, column)),
        3,
        "syr",
    );
    Ok(())
}

pub(super) fn her<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let triangle = triangle(random);
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut a = RandomMatrix::<T>::result(random, &stream, n, n)?;
    blas.her(T::real(0.5), x.view()?, triangle, &mut a.view_mut()?)?;
    let product = x
        .host
        .times(&x.host.adjoint())
        .scaled(Complex64::new(0.5, 0.0));
    let sum = hermitian(&a.host, triangle).plus(&product);
    a.now()?.assert_is::<T>(
        &sum.or(&a.host, |row, column| is_in(triangle, row, column)),
        3,
        "her",
    );
    Ok(())
}

pub(super) fn syr2<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let y = RandomVector::<T>::new(random, &stream, n)?;
    let triangle = triangle(random);
    let mut a = RandomMatrix::<T>::result(random, &stream, n, n)?;
    blas.syr2(alpha, x.view()?, y.view()?, triangle, &mut a.view_mut()?)?;
    let both = x
        .host
        .times(&y.host.transposed())
        .plus(&y.host.times(&x.host.transposed()));
    let sum = a.host.plus(&both.scaled(alpha.wide()));
    a.now()?.assert_is::<T>(
        &sum.or(&a.host, |row, column| is_in(triangle, row, column)),
        4,
        "syr2",
    );
    Ok(())
}

pub(super) fn her2<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let y = RandomVector::<T>::new(random, &stream, n)?;
    let triangle = triangle(random);
    let mut a = RandomMatrix::<T>::result(random, &stream, n, n)?;
    blas.her2(alpha, x.view()?, y.view()?, triangle, &mut a.view_mut()?)?;
    let one = x.host.times(&y.host.adjoint()).scaled(alpha.wide());
    let sum = hermitian(&a.host, triangle).plus(&one).plus(&one.adjoint());
    a.now()?.assert_is::<T>(
        &sum.or(&a.host, |row, column| is_in(triangle, row, column)),
        4,
        "her2",
    );
    Ok(())
}

pub(super) fn trmv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let triangle = triangle(random);
    let diagonal = diagonal(random);
    let a = RandomMatrix::<T>::new(random, &stream, n, n)?;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    blas.trmv(triangle, diagonal, a.view()?, &mut x.view_mut()?)?;
    x.now()?.assert_is::<T>(
        &triangular(&a.host, triangle, diagonal).times(&x.host),
        n,
        "trmv",
    );
    Ok(())
}

/// A solution is checked by the product that it solves: with a unit diagonal and few rows, which
/// keeps its elements small.
pub(super) fn trsv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = 1 + random.below(4);
    let triangle = triangle(random);
    let a = RandomMatrix::<T>::new(random, &stream, n, n)?;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    blas.trsv(triangle, Diagonal::Unit, a.view()?, &mut x.view_mut()?)?;
    let product = triangular(&a.host, triangle, Diagonal::Unit).times(&x.now()?);
    product.assert_is::<T>(&x.host, 16 * n, "trsv");
    Ok(())
}

pub(super) fn gbmv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (m, n, _) = sizes(random);
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let a = RandomBanded::<T>::new(random, &stream, m, n)?;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, m)?;
    blas.gbmv(alpha, a.view()?, x.view()?, beta, &mut y.view_mut()?)?;
    let expected = a
        .host
        .times(&x.host)
        .scaled(alpha.wide())
        .plus(&y.host.scaled(beta.wide()));
    y.now()?.assert_is::<T>(&expected, n, "gbmv");
    Ok(())
}

pub(super) fn hbmv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let triangle = triangle(random);
    let a = RandomBanded::<T>::new(random, &stream, n, n)?;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, n)?;
    blas.hbmv(
        alpha,
        triangle,
        a.view()?,
        x.view()?,
        beta,
        &mut y.view_mut()?,
    )?;
    let product = hermitian(&a.host, triangle).times(&x.host);
    let expected = product
        .scaled(alpha.wide())
        .plus(&y.host.scaled(beta.wide()));
    y.now()?.assert_is::<T>(&expected, n, "hbmv");
    Ok(())
}

pub(super) fn sbmv<T: Number + RealElement>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let triangle = triangle(random);
    let a = RandomBanded::<T>::new(random, &stream, n, n)?;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, n)?;
    blas.sbmv(
        alpha,
        triangle,
        a.view()?,
        x.view()?,
        beta,
        &mut y.view_mut()?,
    )?;
    let product = symmetric(&a.host, triangle).times(&x.host);
    y.now()?.assert_is::<T>(
        &product
            .scaled(alpha.wide())
            .plus(&y.host.scaled(beta.wide())),
        n,
        "sbmv",
    );
    Ok(())
}

pub(super) fn tbmv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let triangle = triangle(random);
    let diagonal = diagonal(random);
    let a = RandomBanded::<T>::new(random, &stream, n, n)?;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    blas.tbmv(triangle, diagonal, a.view()?, &mut x.view_mut()?)?;
    x.now()?.assert_is::<T>(
        &triangular(&a.host, triangle, diagonal).times(&x.host),
        n,
        "tbmv",
    );
    Ok(())
}

/// As for `trsv`.
pub(super) fn tbsv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = 1 + random.below(4);
    let triangle = triangle(random);
    let a = RandomBanded::<T>::new(random, &stream, n, n)?;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    blas.tbsv(triangle, Diagonal::Unit, a.view()?, &mut x.view_mut()?)?;
    let product = triangular(&a.host, triangle, Diagonal::Unit).times(&x.now()?);
    product.assert_is::<T>(&x.host, 16 * n, "tbsv");
    Ok(())
}

pub(super) fn hpmv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let a = RandomPacked::<T>::new(random, &stream, n)?;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, n)?;
    blas.hpmv(alpha, a.view()?, x.view()?, beta, &mut y.view_mut()?)?;
    let product = hermitian(&a.host, a.triangle()).times(&x.host);
    y.now()?.assert_is::<T>(
        &product
            .scaled(alpha.wide())
            .plus(&y.host.scaled(beta.wide())),
        n,
        "hpmv",
    );
    Ok(())
}

pub(super) fn spmv<T: Number + RealElement>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let a = RandomPacked::<T>::new(random, &stream, n)?;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut y = RandomVector::<T>::new(random, &stream, n)?;
    blas.spmv(alpha, a.view()?, x.view()?, beta, &mut y.view_mut()?)?;
    let product = symmetric(&a.host, a.triangle()).times(&x.host);
    y.now()?.assert_is::<T>(
        &product
            .scaled(alpha.wide())
            .plus(&y.host.scaled(beta.wide())),
        n,
        "spmv",
    );
    Ok(())
}

pub(super) fn hpr<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut a = RandomPacked::<T>::result(random, &stream, n)?;
    blas.hpr(T::real(0.5), x.view()?, &mut a.view_mut()?)?;
    let product = x
        .host
        .times(&x.host.adjoint())
        .scaled(Complex64::new(0.5, 0.0));
    let triangle = a.triangle();
    let sum = hermitian(&a.host, a.triangle()).plus(&product);
    a.now()?.assert_is::<T>(
        &sum.or(&a.host, |row, column| is_in(triangle, row, column)),
        3,
        "hpr",
    );
    Ok(())
}

pub(super) fn spr<T: Number + RealElement>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let mut a = RandomPacked::<T>::result(random, &stream, n)?;
    blas.spr(alpha, x.view()?, &mut a.view_mut()?)?;
    let sum = a
        .host
        .plus(&x.host.times(&x.host.transposed()).scaled(alpha.wide()));
    let triangle = a.triangle();
    a.now()?.assert_is::<T>(
        &sum.or(&a.host, |row, column| is_in(triangle, row, column)),
        3,
        "spr",
    );
    Ok(())
}

pub(super) fn hpr2<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let y = RandomVector::<T>::new(random, &stream, n)?;
    let mut a = RandomPacked::<T>::result(random, &stream, n)?;
    blas.hpr2(alpha, x.view()?, y.view()?, &mut a.view_mut()?)?;
    let one = x.host.times(&y.host.adjoint()).scaled(alpha.wide());
    let triangle = a.triangle();
    let sum = hermitian(&a.host, a.triangle())
        .plus(&one)
        .plus(&one.adjoint());
    a.now()?.assert_is::<T>(
        &sum.or(&a.host, |row, column| is_in(triangle, row, column)),
        4,
        "hpr2",
    );
    Ok(())
}

pub(super) fn spr2<T: Number + RealElement>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let alpha = random.number::<T>();
    let x = RandomVector::<T>::new(random, &stream, n)?;
    let y = RandomVector::<T>::new(random, &stream, n)?;
    let mut a = RandomPacked::<T>::result(random, &stream, n)?;
    blas.spr2(alpha, x.view()?, y.view()?, &mut a.view_mut()?)?;
    let both = x
        .host
        .times(&y.host.transposed())
        .plus(&y.host.times(&x.host.transposed()));
    let triangle = a.triangle();
    let sum = a.host.plus(&both.scaled(alpha.wide()));
    a.now()?.assert_is::<T>(
        &sum.or(&a.host, |row, column| is_in(triangle, row, column)),
        4,
        "spr2",
    );
    Ok(())
}

pub(super) fn tpmv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = sizes(random).0;
    let diagonal = diagonal(random);
    let a = RandomPacked::<T>::new(random, &stream, n)?;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    blas.tpmv(diagonal, a.view()?, &mut x.view_mut()?)?;
    x.now()?.assert_is::<T>(
        &triangular(&a.host, a.triangle(), diagonal).times(&x.host),
        n,
        "tpmv",
    );
    Ok(())
}

/// As for `trsv`.
pub(super) fn tpsv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let n = 1 + random.below(4);
    let a = RandomPacked::<T>::new(random, &stream, n)?;
    let mut x = RandomVector::<T>::new(random, &stream, n)?;
    blas.tpsv(Diagonal::Unit, a.view()?, &mut x.view_mut()?)?;
    let product = triangular(&a.host, a.triangle(), Diagonal::Unit).times(&x.now()?);
    product.assert_is::<T>(&x.host, 16 * n, "tpsv");
    Ok(())
}

//! Checks of operations on matrices.

use curium_blas::{
    Batches, Blas, Complex64, Diagonal, GemmGroup, Grouped, Matrix, MatrixMut, Result, Side,
};
use curium_driver::Stream;
use curium_memory::DeviceBuffer;

use super::super::random::{Random, RandomMatrix, RandomVector};
use super::super::reference::{Host, Number};
use super::shape::{diagonal, hermitian, is_in, symmetric, triangle, triangular};
use super::sizes;

pub(super) fn gemm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (m, n, k) = sizes(random);
    let alpha = random.number::<T>();
    let beta = if random.flip() {
        random.number::<T>()
    } else {
        T::narrow(Complex64::new(0.0, 0.0))
    };
    let a = RandomMatrix::<T>::new(random, &stream, m, k)?;
    let b = RandomMatrix::<T>::new(random, &stream, k, n)?;
    let mut c = RandomMatrix::<T>::result(random, &stream, m, n)?;
    blas.gemm(alpha, a.view()?, b.view()?, beta, &mut c.view_mut()?)?;
    let expected = a
        .host
        .times(&b.host)
        .scaled(alpha.wide())
        .plus(&c.host.scaled(beta.wide()));
    c.now()?.assert_is::<T>(&expected, k, "gemm");
    Ok(())
}

pub(super) fn gemm_strided_batched<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (m, n, k) = sizes(random);
    let count = 1 + random.below(3);
    let strides = (m * k + random.below(2), k * n, m * n + random.below(2));
    let mut elements = |len: usize| -> Vec<T> { (0..len).map(|_| random.number()).collect() };
    let hosts = (
        elements(strides.0 * count),
        elements(strides.1 * count),
        elements(strides.2 * count),
    );
    let a = DeviceBuffer::from_slice(&stream, &hosts.0)?;
    let b = DeviceBuffer::from_slice(&stream, &hosts.1)?;
    let mut c = DeviceBuffer::from_slice(&stream, &hosts.2)?;
    let batches = Batches {
        count,
        stride_a: strides.0,
        stride_b: strides.1,
        stride_c: strides.2,
    };
    let one = T::narrow(Complex64::new(1.0, 0.0));
    let left = Matrix::row_major(&a, m, k)?;
    let right = Matrix::column_major(&b, k, n)?;
    blas.gemm_strided_batched(
        one,
        left,
        right,
        one,
        &mut MatrixMut::row_major(&mut c, m, n)?,
        batches,
    )?;
    let actual = c.to_vec()?;
    for batch in 0..count {
        let left = Host::from_fn(m, k, |row, column| {
            hosts.0[batch * strides.0 + row * k + column].wide()
        });
        let right = Host::from_fn(k, n, |row, column| {
            hosts.1[batch * strides.1 + column * k + row].wide()
        });
        let of = |elements: &[T]| {
            Host::from_fn(m, n, |row, column| {
                elements[batch * strides.2 + row * n + column].wide()
            })
        };
        of(&actual).assert_is::<T>(
            &left.times(&right).plus(&of(&hosts.2)),
            k,
            "gemm_strided_batched",
        );
    }
    Ok(())
}

pub(super) fn geam<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (m, n, _) = sizes(random);
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let a = RandomMatrix::<T>::new(random, &stream, m, n)?;
    let b = RandomMatrix::<T>::new(random, &stream, m, n)?;
    let mut c = RandomMatrix::<T>::result(random, &stream, m, n)?;
    blas.geam(alpha, a.view()?, beta, b.view()?, &mut c.view_mut()?)?;
    let expected = a
        .host
        .scaled(alpha.wide())
        .plus(&b.host.scaled(beta.wide()));
    c.now()?.assert_is::<T>(&expected, 3, "geam");
    Ok(())
}

pub(super) fn dgmm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (m, n, _) = sizes(random);
    let is_left = random.flip();
    let a = RandomMatrix::<T>::new(random, &stream, m, n)?;
    let x = RandomVector::<T>::new(random, &stream, if is_left { m } else { n })?;
    let mut c = RandomMatrix::<T>::result(random, &stream, m, n)?;
    blas.dgmm(
        if is_left { Side::Left } else { Side::Right },
        a.view()?,
        x.view()?,
        &mut c.view_mut()?,
    )?;
    let factor = |row, column| x.host.at(if is_left { row } else { column }, 0);
    let expected = Host::from_fn(m, n, |row, column| {
        a.host.at(row, column) * factor(row, column)
    });
    c.now()?.assert_is::<T>(&expected, 1, "dgmm");
    Ok(())
}

/// The operands of a product with a special matrix on one side.
fn on_side(random: &mut Random) -> (Side, usize, usize, usize) {
    let (m, n, _) = sizes(random);
    if random.flip() {
        (Side::Left, m, n, m)
    } else {
        (Side::Right, m, n, n)
    }
}

fn product(side: Side, a: &Host, b: &Host) -> Host {
    if side == Side::Left {
        a.times(b)
    } else {
        b.times(a)
    }
}

pub(super) fn symm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (side, m, n, size) = on_side(random);
    let stream = blas.stream().clone();
    let triangle = triangle(random);
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let a = RandomMatrix::<T>::new(random, &stream, size, size)?;
    let b = RandomMatrix::<T>::new(random, &stream, m, n)?;
    let mut c = RandomMatrix::<T>::result(random, &stream, m, n)?;
    blas.symm(
        alpha,
        side,
        triangle,
        a.view()?,
        b.view()?,
        beta,
        &mut c.view_mut()?,
    )?;
    let expected = product(side, &symmetric(&a.host, triangle), &b.host).scaled(alpha.wide());
    c.now()?
        .assert_is::<T>(&expected.plus(&c.host.scaled(beta.wide())), size, "symm");
    Ok(())
}

pub(super) fn hemm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (side, m, n, size) = on_side(random);
    let stream = blas.stream().clone();
    let triangle = triangle(random);
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let a = RandomMatrix::<T>::new(random, &stream, size, size)?;
    let b = RandomMatrix::<T>::new(random, &stream, m, n)?;
    let mut c = RandomMatrix::<T>::result(random, &stream, m, n)?;
    blas.hemm(
        alpha,
        side,
        triangle,
        a.view()?,
        b.view()?,
        beta,
        &mut c.view_mut()?,
    )?;
    let expected = product(side, &hermitian(&a.host, triangle), &b.host).scaled(alpha.wide());
    c.now()?
        .assert_is::<T>(&expected.plus(&c.host.scaled(beta.wide())), size, "hemm");
    Ok(())
}

pub(super) fn syrk<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (n, k, _) = sizes(random);
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let triangle = triangle(random);
    let a = RandomMatrix::<T>::new(random, &stream, n, k)?;
    let mut c = RandomMatrix::<T>::result(random, &stream, n, n)?;
    blas.syrk(alpha, a.view()?, beta, triangle, &mut c.view_mut()?)?;
    let sum = a
        .host
        .times(&a.host.transposed())
        .scaled(alpha.wide())
        .plus(&c.host.scaled(beta.wide()));
    c.now()?.assert_is::<T>(
        &sum.or(&c.host, |row, column| is_in(triangle, row, column)),
        k,
        "syrk",
    );
    Ok(())
}

pub(super) fn herk<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (n, k, _) = sizes(random);
    let triangle = triangle(random);
    let a = RandomMatrix::<T>::new(random, &stream, n, k)?;
    let mut c = RandomMatrix::<T>::result(random, &stream, n, n)?;
    blas.herk(
        T::real(0.5),
        a.view()?,
        T::real(0.25),
        triangle,
        &mut c.view_mut()?,
    )?;
    let product = a
        .host
        .times(&a.host.adjoint())
        .scaled(Complex64::new(0.5, 0.0));
    let sum = product.plus(&hermitian(&c.host, triangle).scaled(Complex64::new(0.25, 0.0)));
    c.now()?.assert_is::<T>(
        &sum.or(&c.host, |row, column| is_in(triangle, row, column)),
        k,
        "herk",
    );
    Ok(())
}

pub(super) fn syr2k<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (n, k, _) = sizes(random);
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let a = RandomMatrix::<T>::new(random, &stream, n, k)?;
    let b = RandomMatrix::<T>::new(random, &stream, n, k)?;
    let triangle = triangle(random);
    let mut c = RandomMatrix::<T>::result(random, &stream, n, n)?;
    blas.syr2k(
        alpha,
        a.view()?,
        b.view()?,
        beta,
        triangle,
        &mut c.view_mut()?,
    )?;
    let both = a
        .host
        .times(&b.host.transposed())
        .plus(&b.host.times(&a.host.transposed()));
    let sum = both.scaled(alpha.wide()).plus(&c.host.scaled(beta.wide()));
    c.now()?.assert_is::<T>(
        &sum.or(&c.host, |row, column| is_in(triangle, row, column)),
        2 * k,
        "syr2k",
    );
    Ok(())
}

pub(super) fn her2k<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (n, k, _) = sizes(random);
    let alpha = random.number::<T>();
    let a = RandomMatrix::<T>::new(random, &stream, n, k)?;
    let b = RandomMatrix::<T>::new(random, &stream, n, k)?;
    let triangle = triangle(random);
    let mut c = RandomMatrix::<T>::result(random, &stream, n, n)?;
    blas.her2k(
        alpha,
        a.view()?,
        b.view()?,
        T::real(0.25),
        triangle,
        &mut c.view_mut()?,
    )?;
    let one = a.host.times(&b.host.adjoint()).scaled(alpha.wide());
    let sum = one
        .plus(&one.adjoint())
        .plus(&hermitian(&c.host, triangle).scaled(Complex64::new(0.25, 0.0)));
    c.now()?.assert_is::<T>(
        &sum.or(&c.host, |row, column| is_in(triangle, row, column)),
        2 * k,
        "her2k",
    );
    Ok(())
}

pub(super) fn trmm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (side, m, n, size) = on_side(random);
    let stream = blas.stream().clone();
    let alpha = random.number::<T>();
    let triangle = triangle(random);
    let diagonal = diagonal(random);
    let a = RandomMatrix::<T>::new(random, &stream, size, size)?;
    let b = RandomMatrix::<T>::new(random, &stream, m, n)?;
    let mut c = RandomMatrix::<T>::result(random, &stream, m, n)?;
    blas.trmm(
        alpha,
        side,
        triangle,
        diagonal,
        a.view()?,
        b.view()?,
        &mut c.view_mut()?,
    )?;
    let expected =
        product(side, &triangular(&a.host, triangle, diagonal), &b.host).scaled(alpha.wide());
    c.now()?.assert_is::<T>(&expected, size, "trmm");
    Ok(())
}

/// As for `trsv`.
pub(super) fn trsm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let alpha = random.number::<T>();
    let triangle = triangle(random);
    let m = 1 + random.below(4);
    let n = 1 + random.below(4);
    let side = if random.flip() {
        Side::Left
    } else {
        Side::Right
    };
    let size = if side == Side::Left { m } else { n };
    let a = RandomMatrix::<T>::new(random, &stream, size, size)?;
    let mut b = RandomMatrix::<T>::result(random, &stream, m, n)?;
    blas.trsm(
        alpha,
        side,
        triangle,
        Diagonal::Unit,
        a.view()?,
        &mut b.view_mut()?,
    )?;
    let actual = product(
        side,
        &triangular(&a.host, triangle, Diagonal::Unit),
        &b.now()?,
    );
    actual.assert_is::<T>(&b.host.scaled(alpha.wide()), 16 * size, "trsm");
    Ok(())
}

/// Returns a matrix and others with its layout.
fn alike<T: Number>(
    random: &mut Random,
    stream: &Stream,
    first: RandomMatrix<T>,
    count: usize,
) -> Result<Vec<RandomMatrix<T>>> {
    let mut all = vec![first];
    while all.len() < count {
        all.push(all[0].another(random, stream)?);
    }
    Ok(all)
}

fn views<T: Number>(matrices: &[RandomMatrix<T>]) -> Result<Vec<Matrix<'_, T>>> {
    matrices.iter().map(RandomMatrix::view).collect()
}

fn views_mut<T: Number>(matrices: &mut [RandomMatrix<T>]) -> Result<Vec<MatrixMut<'_, T>>> {
    matrices.iter_mut().map(RandomMatrix::view_mut).collect()
}

pub(super) fn gemm_batched<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let (m, n, k) = sizes(random);
    let count = 1 + random.below(4);
    let alpha = random.number::<T>();
    let beta = random.number::<T>();
    let a = RandomMatrix::<T>::new(random, &stream, m, k)?;
    // The same factor may stand in each product.
    let a = if random.flip() {
        vec![a]
    } else {
        alike(random, &stream, a, count)?
    };
    let b = RandomMatrix::<T>::new(random, &stream, k, n)?;
    let b = alike(random, &stream, b, count)?;
    let c = RandomMatrix::<T>::result(random, &stream, m, n)?;
    let mut c = alike(random, &stream, c, count)?;
    let left = (0..count)
        .map(|index| a[index % a.len()].view())
        .collect::<Result<Vec<_>>>()?;
    let right = views(&b)?;
    let mut results = views_mut(&mut c)?;
    blas.gemm_batched(alpha, &left, &right, beta, &mut results)?;
    for (index, c) in c.iter().enumerate() {
        let product = a[index % a.len()].host.times(&b[index].host);
        let expected = product
            .scaled(alpha.wide())
            .plus(&c.host.scaled(beta.wide()));
        c.now()?.assert_is::<T>(&expected, k, "gemm_batched");
    }
    Ok(())
}

/// As for `trsv`.
pub(super) fn trsm_batched<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let stream = blas.stream().clone();
    let alpha = random.number::<T>();
    let triangle = triangle(random);
    let m = 1 + random.below(4);
    let n = 1 + random.below(4);
    let side = if random.flip() {
        Side::Left
    } else {
        Side::Right
    };
    let size = if side == Side::Left { m } else { n };
    let count = 1 + random.below(4);
    let a = RandomMatrix::<T>::new(random, &stream, size, size)?;
    let a = alike(random, &stream, a, count)?;
    let b = RandomMatrix::<T>::result(random, &stream, m, n)?;
    let mut b = alike(random, &stream, b, count)?;
    let left = views(&a)?;
    let mut results = views_mut(&mut b)?;
    blas.trsm_batched(alpha, side, triangle, Diagonal::Unit, &left, &mut results)?;
    for (a, b) in a.iter().zip(&b) {
        let actual = product(
            side,
            &triangular(&a.host, triangle, Diagonal::Unit),
            &b.now()?,
        );
        actual.assert_is::<T>(&b.host.scaled(alpha.wide()), 16 * size, "trsm_batched");
    }
    Ok(())
}

/// The operands of a group.
struct Group<T> {
    factors: (T, T),
    a: Vec<RandomMatrix<T>>,
    b: Vec<RandomMatrix<T>>,
    c: Vec<RandomMatrix<T>>,
}

pub(super) fn gemm_grouped<T: Number + Grouped<Scale = T>>(
    blas: &mut Blas,
    random: &mut Random,
) -> Result<()> {
    let stream = blas.stream().clone();
    let mut groups = Vec::new();
    for _ in 0..1 + random.below(3) {
        let (m, n, k) = sizes(random);
        let count = random.below(4);
        let a = RandomMatrix::<T>::new(random, &stream, m, k)?;
        let b = RandomMatrix::<T>::new(random, &stream, k, n)?;
        let c = RandomMatrix::<T>::result(random, &stream, m, n)?;
        let mut a = alike(random, &stream, a, count)?;
        let mut b = alike(random, &stream, b, count)?;
        let mut c = alike(random, &stream, c, count)?;
        // A group may be empty.
        for all in [&mut a, &mut b, &mut c] {
            all.truncate(count);
        }
        groups.push(Group {
            factors: (random.number(), random.number()),
            a,
            b,
            c,
        });
    }
    let mut operands = Vec::new();
    for group in &mut groups {
        let c = views_mut(&mut group.c)?;
        operands.push((group.factors, views(&group.a)?, views(&group.b)?, c));
    }
    let parameters = operands
        .iter_mut()
        .map(|((alpha, beta), a, b, c)| GemmGroup {
            alpha: *alpha,
            a,
            b,
            beta: *beta,
            c,
        });
    blas.gemm_grouped(&mut parameters.collect::<Vec<_>>())?;
    for Group {
        factors: (alpha, beta),
        a,
        b,
        c,
    } in &groups
    {
        for ((a, b), c) in a.iter().zip(b).zip(c) {
            let expected = a
                .host
                .times(&b.host)
                .scaled(alpha.wide())
                .plus(&c.host.scaled(beta.wide()));
            c.now()?.assert_is::<T>(&expected, 9, "gemm_grouped");
        }
    }
    Ok(())
}

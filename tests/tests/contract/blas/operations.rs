//! Every operation against a reference of higher precision, for random shapes, orders, leading dimensions, transpositions and types.

use std::marker::PhantomData;

use curium_blas::{Batches, Blas, Complex32, Complex64, Diagonal, Error, Result, Side, Triangle};
use curium_tests::on_driver;

use super::random::{Random, RandomMatrix, RandomVector};
use super::reference::{Host, Number};
use super::{blas, blas_on};

/// The greatest size of a matrix.
const MOST: usize = 9;

/// The number of random operands of each operation.
const TRIES: usize = 64;

/// A check of one operation with random operands.
pub(super) type Check<T> = fn(&mut Blas, &mut Random) -> Result<PhantomData<T>>;

/// Returns the checks of all operations, by their names.
pub(super) fn checks<T: Number>() -> Vec<(&'static str, Check<T>)> {
    macro_rules! checks {
        ($($name:ident)*) => {
            vec![$((stringify!($name), (|blas, random| $name::<T>(blas, random).map(|()| PhantomData)) as Check<T>)),*]
        };
    }
    checks! {
        axpy scal scal_real copy swap rot dot dot_conjugated nrm2 asum index_of_max index_of_min
        gemv ger ger_conjugated symv hemv syr her syr2 her2 trmv trsv
        gemm gemm_strided_batched geam symm hemm syrk herk syr2k her2k trmm trsm
    }
}

/// Checks each operation with many operands. Combinations of orders that cuBLAS does not support are refused by name, and not all are.
fn check_all<T: Number>(seed: u64) {
    on_driver(|test| {
        let mut blas = blas(test);
        let mut random = Random::new(seed);
        for (name, check) in checks::<T>() {
            let mut done = 0;
            for _ in 0..TRIES {
                match check(&mut blas, &mut random) {
                    Ok(_) => done += 1,
                    Err(Error::Shape(error)) if error.problem.contains("unsupported by cuBLAS") => {}
                    Err(error) => panic!("{name}: {error}"),
                }
            }
            assert!(done >= 2, "{name}: {done} of {TRIES} combinations are supported");
        }
    });
}

#[test]
fn operations_on_f32_agree_with_the_reference() {
    check_all::<f32>(1);
}

#[test]
fn operations_on_f64_agree_with_the_reference() {
    check_all::<f64>(2);
}

#[test]
fn operations_on_complex_numbers_of_32_bits_agree_with_the_reference() {
    check_all::<Complex32>(3);
}

#[test]
fn operations_on_complex_numbers_of_64_bits_agree_with_the_reference() {
    check_all::<Complex64>(4);
}

#[test]
fn factors_in_device_memory_are_read_when_the_operation_runs() {
    use curium_blas::{DeviceScalar, Vector, VectorMut};
    use curium_memory::DeviceBuffer;

    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0]).expect("memory suffices");
        let mut y = DeviceBuffer::from_slice(&stream, &[10.0_f32, 20.0]).expect("memory suffices");
        let mut factor = DeviceBuffer::from_slice(&stream, &[0.0_f32]).expect("memory suffices");
        factor.as_slice_mut().fill(3.0).expect("the fill is enqueued");
        let alpha = DeviceScalar::new(&factor).expect("there is an element");
        blas.axpy(alpha, Vector::new(&x), &mut VectorMut::new(&mut y)).expect("the lengths agree");
        // The mode of the handle changes back.
        blas.axpy(1.0, Vector::new(&x), &mut VectorMut::new(&mut y)).expect("the lengths agree");
        assert_eq!(y.to_vec().expect("it can be read"), [14.0, 28.0]);
    });
}

fn sizes(random: &mut Random) -> (usize, usize, usize) {
    (1 + random.below(MOST), 1 + random.below(MOST), 1 + random.below(MOST))
}

fn axpy<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n, alpha) = (blas.stream().clone(), sizes(random).0, random.number::<T>());
    let (x, mut y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::new(random, &stream, n));
    let expected = y.host.plus(&x.host.scaled(alpha.wide()));
    blas.axpy(alpha, x.view(), &mut y.view_mut())?;
    y.now().assert_is::<T>(&expected, 2, "axpy");
    Ok(())
}

fn scal<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n, alpha) = (blas.stream().clone(), sizes(random).0, random.number::<T>());
    let mut x = RandomVector::<T>::new(random, &stream, n);
    blas.scal(alpha, &mut x.view_mut())?;
    x.now().assert_is::<T>(&x.host.scaled(alpha.wide()), 1, "scal");
    Ok(())
}

fn scal_real<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let mut x = RandomVector::<T>::new(random, &stream, n);
    blas.scal_real(T::real(0.75), &mut x.view_mut())?;
    x.now().assert_is::<T>(&x.host.scaled(Complex64::new(0.75, 0.0)), 1, "scal_real");
    Ok(())
}

fn copy<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (x, mut y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::new(random, &stream, n));
    blas.copy(x.view(), &mut y.view_mut())?;
    y.now().assert_is::<T>(&x.host, 0, "copy");
    Ok(())
}

fn swap<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (mut x, mut y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    blas.swap(&mut x.view_mut(), &mut y.view_mut())?;
    x.now().assert_is::<T>(&y.host, 0, "swap");
    y.now().assert_is::<T>(&x.host, 0, "swap");
    Ok(())
}

fn rot<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
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

fn dot<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (x, y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    let found = blas.dot(x.view(), y.view())?.wide();
    scalar(found).assert_is::<T>(&x.host.transposed().times(&y.host), n, "dot");
    Ok(())
}

fn dot_conjugated<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (x, y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    let found = blas.dot_conjugated(x.view(), y.view())?.wide();
    scalar(found).assert_is::<T>(&x.host.adjoint().times(&y.host), n, "dot_conjugated");
    Ok(())
}

fn nrm2<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let x = RandomVector::<T>::new(random, &stream, n);
    let sum: f64 = (0..n).map(|row| x.host.at(row, 0).norm_sqr()).sum();
    let found = of_real::<T>(blas.nrm2(x.view())?);
    scalar(found).assert_is::<T>(&scalar(Complex64::new(sum.sqrt(), 0.0)), n, "nrm2");
    Ok(())
}

fn asum<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
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

fn index_of_max<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let x = RandomVector::<T>::new(random, &stream, n);
    let size = |row: usize| x.host.at(row, 0).l1_norm();
    let found = blas.index_of_max(x.view())?.expect("there is an element");
    assert!((0..n).all(|row| size(row) <= size(found) + 1e-6), "index_of_max: {found}");
    Ok(())
}

fn index_of_min<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let x = RandomVector::<T>::new(random, &stream, n);
    let size = |row: usize| x.host.at(row, 0).l1_norm();
    let found = blas.index_of_min(x.view())?.expect("there is an element");
    assert!((0..n).all(|row| size(row) >= size(found) - 1e-6), "index_of_min: {found}");
    Ok(())
}

fn gemv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, (m, n, _), alpha, beta) =
        (blas.stream().clone(), sizes(random), random.number::<T>(), random.number::<T>());
    let a = RandomMatrix::<T>::new(random, &stream, m, n);
    let (x, mut y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, m));
    blas.gemv(alpha, a.view(), x.view(), beta, &mut y.view_mut())?;
    let expected = a.host.times(&x.host).scaled(alpha.wide()).plus(&y.host.scaled(beta.wide()));
    y.now().assert_is::<T>(&expected, n, "gemv");
    Ok(())
}

fn ger<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, (m, n, _), alpha) = (blas.stream().clone(), sizes(random), random.number::<T>());
    let (x, y) = (RandomVector::<T>::new(random, &stream, m), RandomVector::<T>::new(random, &stream, n));
    let mut a = RandomMatrix::<T>::result(random, &stream, m, n);
    blas.ger(alpha, x.view(), y.view(), &mut a.view_mut())?;
    let expected = a.host.plus(&x.host.times(&y.host.transposed()).scaled(alpha.wide()));
    a.now().assert_is::<T>(&expected, 3, "ger");
    Ok(())
}

fn ger_conjugated<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, (m, n, _), alpha) = (blas.stream().clone(), sizes(random), random.number::<T>());
    let (x, y) = (RandomVector::<T>::new(random, &stream, m), RandomVector::<T>::new(random, &stream, n));
    let mut a = RandomMatrix::<T>::result(random, &stream, m, n);
    blas.ger_conjugated(alpha, x.view(), y.view(), &mut a.view_mut())?;
    let expected = a.host.plus(&x.host.times(&y.host.adjoint()).scaled(alpha.wide()));
    a.now().assert_is::<T>(&expected, 3, "ger_conjugated");
    Ok(())
}

fn triangle(random: &mut Random) -> Triangle {
    if random.flip() { Triangle::Upper } else { Triangle::Lower }
}

fn is_in(triangle: Triangle, row: usize, column: usize) -> bool {
    if triangle == Triangle::Upper { row <= column } else { row >= column }
}

/// Returns the symmetric matrix of a triangle.
fn symmetric(host: &Host, triangle: Triangle) -> Host {
    host.or(&host.transposed(), |row, column| is_in(triangle, row, column))
}

/// Returns the Hermitian matrix of a triangle, whose diagonal is real.
fn hermitian(host: &Host, triangle: Triangle) -> Host {
    let whole = host.or(&host.adjoint(), |row, column| is_in(triangle, row, column));
    Host::from_fn(whole.rows, whole.columns, |row, column| {
        let value = whole.at(row, column);
        if row == column { Complex64::new(value.re, 0.0) } else { value }
    })
}

/// Returns the triangular matrix of a triangle.
fn triangular(host: &Host, triangle: Triangle, diagonal: Diagonal) -> Host {
    Host::from_fn(host.rows, host.columns, |row, column| match (row == column, diagonal) {
        (true, Diagonal::Unit) => Complex64::new(1.0, 0.0),
        _ if is_in(triangle, row, column) => host.at(row, column),
        _ => Complex64::new(0.0, 0.0),
    })
}

fn symv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n, alpha, beta) = (blas.stream().clone(), sizes(random).0, random.number::<T>(), random.number::<T>());
    let (triangle, a) = (triangle(random), RandomMatrix::<T>::new(random, &stream, n, n));
    let (x, mut y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    blas.symv(alpha, triangle, a.view(), x.view(), beta, &mut y.view_mut())?;
    let product = symmetric(&a.host, triangle).times(&x.host);
    let expected = product.scaled(alpha.wide()).plus(&y.host.scaled(beta.wide()));
    y.now().assert_is::<T>(&expected, n, "symv");
    Ok(())
}

fn hemv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n, alpha, beta) = (blas.stream().clone(), sizes(random).0, random.number::<T>(), random.number::<T>());
    let (triangle, a) = (triangle(random), RandomMatrix::<T>::new(random, &stream, n, n));
    let (x, mut y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    blas.hemv(alpha, triangle, a.view(), x.view(), beta, &mut y.view_mut())?;
    let product = hermitian(&a.host, triangle).times(&x.host);
    let expected = product.scaled(alpha.wide()).plus(&y.host.scaled(beta.wide()));
    y.now().assert_is::<T>(&expected, n, "hemv");
    Ok(())
}

fn syr<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n, alpha) = (blas.stream().clone(), sizes(random).0, random.number::<T>());
    let (triangle, x) = (triangle(random), RandomVector::<T>::new(random, &stream, n));
    let mut a = RandomMatrix::<T>::result(random, &stream, n, n);
    blas.syr(alpha, x.view(), triangle, &mut a.view_mut())?;
    let sum = a.host.plus(&x.host.times(&x.host.transposed()).scaled(alpha.wide()));
    a.now().assert_is::<T>(&sum.or(&a.host, |row, column| is_in(triangle, row, column)), 3, "syr");
    Ok(())
}

fn her<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (triangle, x) = (triangle(random), RandomVector::<T>::new(random, &stream, n));
    let mut a = RandomMatrix::<T>::result(random, &stream, n, n);
    blas.her(T::real(0.5), x.view(), triangle, &mut a.view_mut())?;
    let product = x.host.times(&x.host.adjoint()).scaled(Complex64::new(0.5, 0.0));
    let sum = hermitian(&a.host, triangle).plus(&product);
    a.now().assert_is::<T>(&sum.or(&a.host, |row, column| is_in(triangle, row, column)), 3, "her");
    Ok(())
}

fn syr2<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n, alpha) = (blas.stream().clone(), sizes(random).0, random.number::<T>());
    let (x, y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    let (triangle, mut a) = (triangle(random), RandomMatrix::<T>::result(random, &stream, n, n));
    blas.syr2(alpha, x.view(), y.view(), triangle, &mut a.view_mut())?;
    let both = x.host.times(&y.host.transposed()).plus(&y.host.times(&x.host.transposed()));
    let sum = a.host.plus(&both.scaled(alpha.wide()));
    a.now().assert_is::<T>(&sum.or(&a.host, |row, column| is_in(triangle, row, column)), 4, "syr2");
    Ok(())
}

fn her2<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n, alpha) = (blas.stream().clone(), sizes(random).0, random.number::<T>());
    let (x, y) = (RandomVector::<T>::new(random, &stream, n), RandomVector::<T>::new(random, &stream, n));
    let (triangle, mut a) = (triangle(random), RandomMatrix::<T>::result(random, &stream, n, n));
    blas.her2(alpha, x.view(), y.view(), triangle, &mut a.view_mut())?;
    let one = x.host.times(&y.host.adjoint()).scaled(alpha.wide());
    let sum = hermitian(&a.host, triangle).plus(&one).plus(&one.adjoint());
    a.now().assert_is::<T>(&sum.or(&a.host, |row, column| is_in(triangle, row, column)), 4, "her2");
    Ok(())
}

fn diagonal(random: &mut Random) -> Diagonal {
    if random.flip() { Diagonal::Unit } else { Diagonal::Stored }
}

fn trmv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n) = (blas.stream().clone(), sizes(random).0);
    let (triangle, diagonal) = (triangle(random), diagonal(random));
    let (a, mut x) = (RandomMatrix::<T>::new(random, &stream, n, n), RandomVector::<T>::new(random, &stream, n));
    blas.trmv(triangle, diagonal, a.view(), &mut x.view_mut())?;
    x.now().assert_is::<T>(&triangular(&a.host, triangle, diagonal).times(&x.host), n, "trmv");
    Ok(())
}

/// A solution is checked by the product that it solves: with a unit diagonal and few rows, which keeps its elements small.
fn trsv<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, n, triangle) = (blas.stream().clone(), 1 + random.below(4), triangle(random));
    let (a, mut x) = (RandomMatrix::<T>::new(random, &stream, n, n), RandomVector::<T>::new(random, &stream, n));
    blas.trsv(triangle, Diagonal::Unit, a.view(), &mut x.view_mut())?;
    let product = triangular(&a.host, triangle, Diagonal::Unit).times(&x.now());
    product.assert_is::<T>(&x.host, 16 * n, "trsv");
    Ok(())
}

fn gemm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, (m, n, k), alpha) = (blas.stream().clone(), sizes(random), random.number::<T>());
    let beta = if random.flip() { random.number::<T>() } else { T::narrow(Complex64::new(0.0, 0.0)) };
    let (a, b) = (RandomMatrix::<T>::new(random, &stream, m, k), RandomMatrix::<T>::new(random, &stream, k, n));
    let mut c = RandomMatrix::<T>::result(random, &stream, m, n);
    blas.gemm(alpha, a.view(), b.view(), beta, &mut c.view_mut())?;
    let expected = a.host.times(&b.host).scaled(alpha.wide()).plus(&c.host.scaled(beta.wide()));
    c.now().assert_is::<T>(&expected, k, "gemm");
    Ok(())
}

fn gemm_strided_batched<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    use curium_blas::{Matrix, MatrixMut};
    use curium_memory::DeviceBuffer;

    let (stream, (m, n, k), count) = (blas.stream().clone(), sizes(random), 1 + random.below(3));
    let strides = (m * k + random.below(2), k * n, m * n + random.below(2));
    let mut elements = |len: usize| -> Vec<T> { (0..len).map(|_| random.number()).collect() };
    let hosts = (elements(strides.0 * count), elements(strides.1 * count), elements(strides.2 * count));
    let a = DeviceBuffer::from_slice(&stream, &hosts.0)?;
    let b = DeviceBuffer::from_slice(&stream, &hosts.1)?;
    let mut c = DeviceBuffer::from_slice(&stream, &hosts.2)?;
    let batches = Batches { count, stride_a: strides.0, stride_b: strides.1, stride_c: strides.2 };
    let one = T::narrow(Complex64::new(1.0, 0.0));
    let (left, right) = (Matrix::row_major(&a, m, k)?, Matrix::column_major(&b, k, n)?);
    blas.gemm_strided_batched(one, left, right, one, &mut MatrixMut::row_major(&mut c, m, n)?, batches)?;
    let found = c.to_vec()?;
    for batch in 0..count {
        let left = Host::from_fn(m, k, |row, column| hosts.0[batch * strides.0 + row * k + column].wide());
        let right = Host::from_fn(k, n, |row, column| hosts.1[batch * strides.1 + column * k + row].wide());
        let of =
            |elements: &[T]| Host::from_fn(m, n, |row, column| elements[batch * strides.2 + row * n + column].wide());
        of(&found).assert_is::<T>(&left.times(&right).plus(&of(&hosts.2)), k, "gemm_strided_batched");
    }
    Ok(())
}

fn geam<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, (m, n, _), alpha, beta) =
        (blas.stream().clone(), sizes(random), random.number::<T>(), random.number::<T>());
    let (a, b) = (RandomMatrix::<T>::new(random, &stream, m, n), RandomMatrix::<T>::new(random, &stream, m, n));
    let mut c = RandomMatrix::<T>::result(random, &stream, m, n);
    blas.geam(alpha, a.view(), beta, b.view(), &mut c.view_mut())?;
    let expected = a.host.scaled(alpha.wide()).plus(&b.host.scaled(beta.wide()));
    c.now().assert_is::<T>(&expected, 3, "geam");
    Ok(())
}

/// The operands of a product with a special matrix on one side.
fn on_side(random: &mut Random) -> (Side, usize, usize, usize) {
    let (m, n, _) = sizes(random);
    if random.flip() { (Side::Left, m, n, m) } else { (Side::Right, m, n, n) }
}

fn product(side: Side, a: &Host, b: &Host) -> Host {
    if side == Side::Left { a.times(b) } else { b.times(a) }
}

fn symm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let ((side, m, n, size), stream, triangle) = (on_side(random), blas.stream().clone(), triangle(random));
    let (alpha, beta, a) =
        (random.number::<T>(), random.number::<T>(), RandomMatrix::<T>::new(random, &stream, size, size));
    let (b, mut c) = (RandomMatrix::<T>::new(random, &stream, m, n), RandomMatrix::<T>::result(random, &stream, m, n));
    blas.symm(alpha, side, triangle, a.view(), b.view(), beta, &mut c.view_mut())?;
    let expected = product(side, &symmetric(&a.host, triangle), &b.host).scaled(alpha.wide());
    c.now().assert_is::<T>(&expected.plus(&c.host.scaled(beta.wide())), size, "symm");
    Ok(())
}

fn hemm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let ((side, m, n, size), stream, triangle) = (on_side(random), blas.stream().clone(), triangle(random));
    let (alpha, beta, a) =
        (random.number::<T>(), random.number::<T>(), RandomMatrix::<T>::new(random, &stream, size, size));
    let (b, mut c) = (RandomMatrix::<T>::new(random, &stream, m, n), RandomMatrix::<T>::result(random, &stream, m, n));
    blas.hemm(alpha, side, triangle, a.view(), b.view(), beta, &mut c.view_mut())?;
    let expected = product(side, &hermitian(&a.host, triangle), &b.host).scaled(alpha.wide());
    c.now().assert_is::<T>(&expected.plus(&c.host.scaled(beta.wide())), size, "hemm");
    Ok(())
}

fn syrk<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, (n, k, _), alpha, beta) =
        (blas.stream().clone(), sizes(random), random.number::<T>(), random.number::<T>());
    let (triangle, a) = (triangle(random), RandomMatrix::<T>::new(random, &stream, n, k));
    let mut c = RandomMatrix::<T>::result(random, &stream, n, n);
    blas.syrk(alpha, a.view(), beta, triangle, &mut c.view_mut())?;
    let sum = a.host.times(&a.host.transposed()).scaled(alpha.wide()).plus(&c.host.scaled(beta.wide()));
    c.now().assert_is::<T>(&sum.or(&c.host, |row, column| is_in(triangle, row, column)), k, "syrk");
    Ok(())
}

fn herk<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, (n, k, _)) = (blas.stream().clone(), sizes(random));
    let (triangle, a) = (triangle(random), RandomMatrix::<T>::new(random, &stream, n, k));
    let mut c = RandomMatrix::<T>::result(random, &stream, n, n);
    blas.herk(T::real(0.5), a.view(), T::real(0.25), triangle, &mut c.view_mut())?;
    let product = a.host.times(&a.host.adjoint()).scaled(Complex64::new(0.5, 0.0));
    let sum = product.plus(&hermitian(&c.host, triangle).scaled(Complex64::new(0.25, 0.0)));
    c.now().assert_is::<T>(&sum.or(&c.host, |row, column| is_in(triangle, row, column)), k, "herk");
    Ok(())
}

fn syr2k<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, (n, k, _), alpha, beta) =
        (blas.stream().clone(), sizes(random), random.number::<T>(), random.number::<T>());
    let (a, b) = (RandomMatrix::<T>::new(random, &stream, n, k), RandomMatrix::<T>::new(random, &stream, n, k));
    let (triangle, mut c) = (triangle(random), RandomMatrix::<T>::result(random, &stream, n, n));
    blas.syr2k(alpha, a.view(), b.view(), beta, triangle, &mut c.view_mut())?;
    let both = a.host.times(&b.host.transposed()).plus(&b.host.times(&a.host.transposed()));
    let sum = both.scaled(alpha.wide()).plus(&c.host.scaled(beta.wide()));
    c.now().assert_is::<T>(&sum.or(&c.host, |row, column| is_in(triangle, row, column)), 2 * k, "syr2k");
    Ok(())
}

fn her2k<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, (n, k, _), alpha) = (blas.stream().clone(), sizes(random), random.number::<T>());
    let (a, b) = (RandomMatrix::<T>::new(random, &stream, n, k), RandomMatrix::<T>::new(random, &stream, n, k));
    let (triangle, mut c) = (triangle(random), RandomMatrix::<T>::result(random, &stream, n, n));
    blas.her2k(alpha, a.view(), b.view(), T::real(0.25), triangle, &mut c.view_mut())?;
    let one = a.host.times(&b.host.adjoint()).scaled(alpha.wide());
    let sum = one.plus(&one.adjoint()).plus(&hermitian(&c.host, triangle).scaled(Complex64::new(0.25, 0.0)));
    c.now().assert_is::<T>(&sum.or(&c.host, |row, column| is_in(triangle, row, column)), 2 * k, "her2k");
    Ok(())
}

fn trmm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let ((side, m, n, size), stream, alpha) = (on_side(random), blas.stream().clone(), random.number::<T>());
    let (triangle, diagonal) = (triangle(random), diagonal(random));
    let (a, b) = (RandomMatrix::<T>::new(random, &stream, size, size), RandomMatrix::<T>::new(random, &stream, m, n));
    let mut c = RandomMatrix::<T>::result(random, &stream, m, n);
    blas.trmm(alpha, side, triangle, diagonal, a.view(), b.view(), &mut c.view_mut())?;
    let expected = product(side, &triangular(&a.host, triangle, diagonal), &b.host).scaled(alpha.wide());
    c.now().assert_is::<T>(&expected, size, "trmm");
    Ok(())
}

/// As for `trsv`.
fn trsm<T: Number>(blas: &mut Blas, random: &mut Random) -> Result<()> {
    let (stream, alpha, triangle) = (blas.stream().clone(), random.number::<T>(), triangle(random));
    let (m, n, side) = (1 + random.below(4), 1 + random.below(4), if random.flip() { Side::Left } else { Side::Right });
    let size = if side == Side::Left { m } else { n };
    let a = RandomMatrix::<T>::new(random, &stream, size, size);
    let mut b = RandomMatrix::<T>::result(random, &stream, m, n);
    blas.trsm(alpha, side, triangle, Diagonal::Unit, a.view(), &mut b.view_mut())?;
    let found = product(side, &triangular(&a.host, triangle, Diagonal::Unit), &b.now());
    found.assert_is::<T>(&b.host.scaled(alpha.wide()), 16 * size, "trsm");
    Ok(())
}

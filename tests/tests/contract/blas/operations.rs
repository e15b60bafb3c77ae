//! Every operation against a reference of higher precision, for random shapes, orders, leading
//! dimensions, transpositions and types.

mod level1;
mod level2;
mod level3;
mod shape;

use std::marker::PhantomData;

use curium_blas::{
    Blas, Complex32, Complex64, DeviceScalar, Error, Grouped, RealElement, Result, Vector,
    VectorMut,
};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver};

use super::random::Random;
use super::reference::Number;
use super::{blas, blas_on};

/// The greatest size of a matrix.
const MOST: usize = 9;

/// The number of random operands of each operation.
const TRIES: usize = 64;

/// A check of one operation with random operands.
pub(super) type Check<T> = fn(&mut Blas, &mut Random) -> Result<PhantomData<T>>;

macro_rules! checks {
    ($($level:ident: $($name:ident)*;)*) => {
        vec![$($((stringify!($name), (|blas, random| $level::$name::<T>(blas, random).map(|()| PhantomData)) as Check<T>)),*),*]
    };
}

/// Returns the checks of the operations for every type of elements, by their names.
pub(super) fn checks<T: Number>() -> Vec<(&'static str, Check<T>)> {
    checks! {
        level1: axpy scal scal_real copy swap rot rot_real rotg dot dot_conjugated nrm2 asum iamax iamin;
        level2: gemv ger ger_conjugated symv hemv syr her syr2 her2 trmv trsv gbmv hbmv tbmv tbsv hpmv hpr hpr2 tpmv tpsv;
        level3: gemm gemm_batched gemm_strided_batched geam dgmm symm hemm syrk herk syr2k her2k trmm trsm trsm_batched;
    }
}

/// Returns the checks of the operations for real numbers, by their names.
pub(super) fn real_checks<T: Number + RealElement + Grouped<Scale = T>>()
-> Vec<(&'static str, Check<T>)> {
    checks! {
        level1: rotm rotmg;
        level2: sbmv spmv spr spr2;
        level3: gemm_grouped;
    }
}

/// Checks each operation with many operands. Combinations of orders that cuBLAS does not support
/// are refused by name, and not all are.
fn check_all<T: Number>(seed: u64, checks: Vec<(&'static str, Check<T>)>) {
    on_driver(|test| {
        let mut blas = blas(test);
        let mut random = Random::new(seed);
        for (name, check) in checks {
            let mut done = 0;
            for _ in 0..TRIES {
                match check(&mut blas, &mut random) {
                    Ok(_) => done += 1,
                    Err(Error::Shape(error)) if error.problem.contains("unsupported by cuBLAS") => {
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
            }
            assert!(
                done >= 2,
                "{name}: {done} of {TRIES} combinations are supported"
            );
        }
    });
}

#[test]
fn operations_on_f32_agree_with_the_reference() {
    check_all::<f32>(1, checks());
    check_all::<f32>(1, real_checks());
}

#[test]
fn operations_on_f64_agree_with_the_reference() {
    check_all::<f64>(2, checks());
    check_all::<f64>(2, real_checks());
}

/// Operations on complex numbers of 32 bits agree with the reference.
#[test]
fn complex32_operations_match_the_reference() {
    check_all::<Complex32>(3, checks());
}

/// Operations on complex numbers of 64 bits agree with the reference.
#[test]
fn complex64_operations_match_the_reference() {
    check_all::<Complex64>(4, checks());
}

/// Factors in device memory are read when the operation runs.
#[driver_test]
fn device_factors_are_read_at_execution(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[10.0_f32, 20.0])?;
    let mut factor = DeviceBuffer::from_slice(&stream, &[0.0_f32])?;
    factor.fill(3.0)?;
    let alpha = DeviceScalar::new(&factor)?;
    blas.axpy(alpha, Vector::new(&x), &mut VectorMut::new(&mut y))?;
    // The mode of the handle changes back.
    blas.axpy(1.0, Vector::new(&x), &mut VectorMut::new(&mut y))?;
    assert_eq!(y.to_vec()?, [14.0, 28.0]);
    Ok(())
}

fn sizes(random: &mut Random) -> (usize, usize, usize) {
    (
        1 + random.below(MOST),
        1 + random.below(MOST),
        1 + random.below(MOST),
    )
}

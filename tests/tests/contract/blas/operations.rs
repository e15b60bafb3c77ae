//! Every operation against a reference of higher precision, for random shapes, orders, leading dimensions, transpositions and types.

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
use curium_tests::on_driver;

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
        level1: axpy scal scal_real copy swap rot rot_real rotg dot dot_conjugated nrm2 asum index_of_max index_of_min;
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

/// Checks each operation with many operands. Combinations of orders that cuBLAS does not support are refused by name, and not all are.
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

#[test]
fn operations_on_complex_numbers_of_32_bits_agree_with_the_reference() {
    check_all::<Complex32>(3, checks());
}

#[test]
fn operations_on_complex_numbers_of_64_bits_agree_with_the_reference() {
    check_all::<Complex64>(4, checks());
}

#[test]
fn factors_in_device_memory_are_read_when_the_operation_runs() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0]).expect("memory suffices");
        let mut y = DeviceBuffer::from_slice(&stream, &[10.0_f32, 20.0]).expect("memory suffices");
        let mut factor = DeviceBuffer::from_slice(&stream, &[0.0_f32]).expect("memory suffices");
        factor
            .as_slice_mut()
            .fill(3.0)
            .expect("the fill is enqueued");
        let alpha = DeviceScalar::new(&factor).expect("there is an element");
        blas.axpy(alpha, Vector::new(&x), &mut VectorMut::new(&mut y))
            .expect("the lengths agree");
        // The mode of the handle changes back.
        blas.axpy(1.0, Vector::new(&x), &mut VectorMut::new(&mut y))
            .expect("the lengths agree");
        assert_eq!(y.to_vec().expect("it can be read"), [14.0, 28.0]);
    });
}

fn sizes(random: &mut Random) -> (usize, usize, usize) {
    (
        1 + random.below(MOST),
        1 + random.below(MOST),
        1 + random.below(MOST),
    )
}

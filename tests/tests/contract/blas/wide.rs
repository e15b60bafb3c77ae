//! Sizes beyond 32 bits call the functions with 64-bit sizes.
//!
//! The tests use a large stride for a vector with one element, and a large leading dimension for a
//! matrix with one column, because these sizes need no memory.

use std::collections::BTreeSet;

use curium_blas::{
    BandLayout, Banded, Batches, Blas, Complex32, Complex64, Diagonal, Error, Matrix, MatrixLayout,
    MatrixMut, ModifiedRotation, Packed, PackedMut, RealElement, Result, Side, Triangle, Vector,
    VectorMut,
};
use curium_memory::DeviceBuffer;
use curium_sim::Simulator;
use curium_tests::{TestDriver, TestResult, simulator_test};

use super::coverage::{listed, without};
use super::cublas;
use super::reference::Number;

/// A stride or leading dimension beyond 32 bits.
const FAR: usize = 1 << 32;

/// Calls every operation with a stride or leading dimension beyond 32 bits.
fn calls<T: Number>(blas: &mut Blas) -> Result<Vec<Result<()>>> {
    let stream = blas.stream().clone();
    let one = T::narrow(Complex64::new(1.0, 0.0));
    let real = T::real(1.0);
    let buffers = || DeviceBuffer::from_slice(&stream, &[one]);
    let from = buffers()?;
    let mut first = buffers()?;
    let mut second = buffers()?;
    let mut result = buffers()?;
    let layout = MatrixLayout::column_major(1, 1).with_leading_dimension(FAR);
    let x = Vector::strided(&from, 1, FAR)?;
    let a = Matrix::new(&from, layout)?;
    let y = &mut VectorMut::strided(&mut first, 1, FAR)?;
    let z = &mut VectorMut::strided(&mut second, 1, FAR)?;
    let c = &mut MatrixMut::new(&mut result, layout)?;
    let up = Triangle::Upper;
    let left = Side::Left;
    let stored = Diagonal::Stored;
    let band = Banded::new(
        &from,
        BandLayout::column_major(1, 1, 0, 0).with_leading_dimension(FAR),
    )?;
    let mut packed_result = buffers()?;
    let packed = Packed::column_major(&from, 1, up)?;
    let p = &mut PackedMut::column_major(&mut packed_result, 1, up)?;
    let batches = Batches {
        count: 1,
        stride_a: 0,
        stride_b: 0,
        stride_c: 1,
    };
    Ok(vec![
        blas.axpy(one, x, y),
        blas.scal(one, y),
        blas.scal_real(real, y),
        blas.copy(x, y),
        blas.swap(y, z),
        blas.rot(y, z, real, one),
        blas.rot_real(y, z, real, real),
        blas.dot(x, x).map(drop),
        blas.dot_conjugated(x, x).map(drop),
        blas.nrm2(x).map(drop),
        blas.asum(x).map(drop),
        blas.index_of_max(x).map(drop),
        blas.index_of_min(x).map(drop),
        blas.gemv(one, a, x, one, y),
        blas.ger(one, x, x, c),
        blas.ger_conjugated(one, x, x, c),
        blas.symv(one, up, a, x, one, y),
        blas.hemv(one, up, a, x, one, y),
        blas.syr(one, x, up, c),
        blas.her(real, x, up, c),
        blas.syr2(one, x, x, up, c),
        blas.her2(one, x, x, up, c),
        blas.trmv(up, stored, a, y),
        blas.trsv(up, stored, a, y),
        blas.gbmv(one, band, x, one, y),
        blas.hbmv(one, up, band, x, one, y),
        blas.tbmv(up, stored, band, y),
        blas.tbsv(up, stored, band, y),
        blas.hpmv(one, packed, x, one, y),
        blas.hpr(real, x, p),
        blas.hpr2(one, x, x, p),
        blas.tpmv(stored, packed, y),
        blas.tpsv(stored, packed, y),
        blas.gemm(one, a, a, one, c),
        blas.gemm_batched(one, &[a], &[a], one, std::slice::from_mut(c)),
        blas.gemm_strided_batched(one, a, a, one, c, batches),
        blas.geam(one, a, one, a, c),
        blas.dgmm(left, a, x, c),
        blas.symm(one, left, up, a, a, one, c),
        blas.hemm(one, left, up, a, a, one, c),
        blas.syrk(one, a, one, up, c),
        blas.herk(real, a, real, up, c),
        blas.syr2k(one, a, a, one, up, c),
        blas.her2k(one, a, a, real, up, c),
        blas.trmm(one, left, up, stored, a, a, c),
        blas.trsm(one, left, up, stored, a, c),
        blas.trsm_batched(one, left, up, stored, &[a], std::slice::from_mut(c)),
    ])
}

/// Calls every operation that exists for real numbers only, with a stride or leading dimension
/// beyond 32 bits.
fn real_calls<T: Number + RealElement>(blas: &mut Blas) -> Result<Vec<Result<()>>> {
    let stream = blas.stream().clone();
    let buffers = || DeviceBuffer::from_slice(&stream, &[T::ONE]);
    let mut first = buffers()?;
    let mut second = buffers()?;
    let y = &mut VectorMut::strided(&mut first, 1, FAR)?;
    let z = &mut VectorMut::strided(&mut second, 1, FAR)?;
    Ok(vec![blas.rotm(y, z, ModifiedRotation::Identity)])
}

/// Returns the missing functions that the calls report.
fn missed(results: Result<Vec<Result<()>>>) -> TestResult<BTreeSet<&'static str>> {
    let results = results?;
    Ok(results
        .into_iter()
        .map(|result: Result<()>| match result {
            Err(Error::Missing(error)) => error.function,
            other => panic!("{other:?} with a function that the library lacks"),
        })
        .collect())
}

/// Sizes beyond 32 bits reach every function with 64 bit sizes.
#[simulator_test]
fn large_sizes_reach_every_64_bit_function(test: &TestDriver, _: &Simulator) -> TestResult {
    let (_, wide) = listed();
    let mut blas = Blas::new(&without(&wide)?, &test.stream())?;
    let mut reached = missed(calls::<f32>(&mut blas))?;
    reached.extend(missed(calls::<f64>(&mut blas))?);
    reached.extend(missed(calls::<Complex32>(&mut blas))?);
    reached.extend(missed(calls::<Complex64>(&mut blas))?);
    reached.extend(missed(real_calls::<f32>(&mut blas))?);
    reached.extend(missed(real_calls::<f64>(&mut blas))?);
    assert_eq!(
        wide.symmetric_difference(&reached).collect::<Vec<_>>(),
        Vec::<&&str>::new()
    );
    Ok(())
}

/// Functions with 64 bit sizes compute the same results.
#[simulator_test]
fn functions_with_64_bit_sizes_agree(test: &TestDriver, _: &Simulator) -> TestResult {
    let mut blas = Blas::new(&cublas(), &test.stream())?;
    for results in [calls::<f32>(&mut blas), real_calls::<f32>(&mut blas)] {
        results?
            .into_iter()
            .for_each(|result| result.expect("the library has the function"));
    }
    let x = DeviceBuffer::from_slice(&test.stream(), &[3.0_f32])?;
    let mut y = DeviceBuffer::from_slice(&test.stream(), &[4.0_f32])?;
    let from = Vector::strided(&x, 1, FAR)?;
    blas.axpy(2.0, from, &mut VectorMut::strided(&mut y, 1, FAR)?)?;
    assert_eq!(y.to_vec()?, [10.0]);
    Ok(())
}

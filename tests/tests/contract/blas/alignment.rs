//! Complex numbers in memory that has the alignment of Rust's type and not that of C's are refused
//! before the library is called.

use curium_blas::{
    Banded, Blas, Complex32, Complex64, DeviceScalar, Diagonal, Matrix, MatrixMut, Packed,
    PackedMut, Triangle, Vector, VectorMut,
};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test};

use super::blas_on;
use super::hostile::assert_refused;

const ONE: Complex64 = Complex64::new(1.0, 0.0);

#[driver_test]
fn misaligned_operands_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas: Blas = blas_on(&stream);
    let bytes = DeviceBuffer::<u8>::zeroed(&stream, 9 * 16)?;
    let odd = bytes.slice(8..8 + 128)?;
    let odd = odd.cast::<f64>()?;
    let odd = odd.cast::<Complex64>()?;
    let mut other = DeviceBuffer::<u8>::zeroed(&stream, 9 * 16)?;
    let mut odd_mut = other.slice_mut(8..8 + 128)?;
    let mut odd_mut = odd_mut.cast_mut::<Complex64>()?;
    let even = DeviceBuffer::<Complex64>::zeroed(&stream, 8)?;
    let mut result = DeviceBuffer::<Complex64>::zeroed(&stream, 4)?;
    let parts = ["misaligned operand", "not a multiple of 16"];
    let x = Vector::strided(&odd, 2, 1)?;
    let two = Vector::strided(&even, 2, 1)?;
    assert_refused(blas.nrm2(x), &parts);
    let y = &mut VectorMut::strided(&mut result, 2, 1)?;
    assert_refused(blas.axpy(ONE, x, y), &["Blas::axpy", parts[0], parts[1]]);
    assert_refused(blas.axpy(DeviceScalar::new(&odd)?, two, y), &parts);
    let a = Matrix::column_major(&odd, 2, 2)?;
    assert_refused(blas.gemv(ONE, a, two, ONE, y), &parts);
    let band = Banded::column_major(&odd, 2, 2, 0, 1)?;
    assert_refused(blas.gbmv(ONE, band, two, ONE, y), &parts);
    let packed = Packed::column_major(&odd, 2, Triangle::Upper)?;
    assert_refused(blas.tpmv(Diagonal::Unit, packed, y), &parts);
    assert_refused(blas.scal(ONE, &mut VectorMut::new(&mut odd_mut)), &parts);
    let to = &mut PackedMut::column_major(&mut odd_mut, 2, Triangle::Upper)?;
    assert_refused(blas.hpr(1.0, two, to), &parts);
    let c = &mut MatrixMut::column_major(&mut result, 2, 2)?;
    assert_refused(
        blas.gemm_batched(ONE, &[a], &[a], ONE, std::slice::from_mut(c)),
        &parts,
    );
    let c = &mut MatrixMut::column_major(&mut odd_mut, 2, 2)?;
    assert_refused(blas.ger(ONE, two, two, c), &parts);
    Ok(())
}

#[driver_test]
fn alignment_follows_the_element(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let memory = DeviceBuffer::from_slice(&stream, &[0.0_f32, 3.0, 4.0, 0.0])?;
    let pairs = memory.slice(1..3)?;
    assert_eq!(blas.nrm2(Vector::new(&pairs))?, 5.0);
    let complex = pairs.cast::<Complex32>()?;
    assert_refused(
        blas.nrm2(Vector::new(&complex)),
        &["misaligned operand", "not a multiple of 8"],
    );
    let pairs = memory.slice(2..4)?;
    let complex = pairs.cast::<Complex32>()?;
    assert_eq!(blas.nrm2(Vector::new(&complex))?, 4.0);
    Ok(())
}

//! Bad operands are errors with their shapes before the library is called.

use curium_blas::{
    BandLayout, Banded, Batches, Blas, Complex32, Diagonal, Error, Matrix, MatrixLayout, MatrixMut,
    ModifiedRotation, Packed, PackedMut, Result, Side, Triangle, Vector, VectorMut,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUresult, Function};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::{blas_on, cublas};

#[track_caller]
pub(super) fn assert_refused<T>(result: Result<T>, parts: &[&str]) {
    let Err(Error::Shape(error)) = result else {
        panic!("the operands are not refused")
    };
    let text = error.to_string();
    assert!(
        parts.iter().all(|part| text.contains(part)),
        "{text} without one of {parts:?}"
    );
}

#[driver_test]
fn views_that_leave_their_memory_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<f32>::zeroed(&stream, 11)?;
    assert_refused(
        Matrix::column_major(&buffer, 3, 4),
        &["3 × 4", "12 elements, 11 available"],
    );
    assert!(
        Matrix::new(
            &buffer,
            MatrixLayout::column_major(1, 4).with_leading_dimension(3)
        )
        .is_ok()
    );
    let overlapping = MatrixLayout::column_major(3, 2).with_leading_dimension(2);
    assert_refused(
        Matrix::new(&buffer, overlapping),
        &["leading dimension too small"],
    );
    let huge = MatrixLayout::row_major(usize::MAX, 2);
    assert_refused(Matrix::new(&buffer, huge), &["too many"]);
    assert_refused(MatrixMut::row_major(&mut buffer, 6, 2), &["6 × 2"]);
    assert_refused(
        Vector::strided(&buffer, 4, 4),
        &["4 elements, stride 4, 11 available"],
    );
    assert_refused(Vector::strided(&buffer, 4, 0), &["stride is 0"]);
    assert_refused(
        VectorMut::strided(&mut buffer, usize::MAX, 2),
        &["memory too small"],
    );
    Ok(())
}

/// Banded and packed views that leave their memory are refused.
#[driver_test]
fn banded_and_packed_views_are_bounds_checked(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<f32>::zeroed(&stream, 11)?;
    assert_refused(
        Banded::column_major(&buffer, 9, 4, 1, 1),
        &["12 elements, 11 available"],
    );
    assert_refused(
        Banded::row_major(&buffer, 4, 9, 2, 0),
        &["12 elements, 11 available"],
    );
    assert!(Banded::column_major(&buffer, 9, 3, 1, 1).is_ok());
    let overlapping = BandLayout::row_major(2, 2, 1, 1).with_leading_dimension(2);
    assert_refused(
        Banded::new(&buffer, overlapping),
        &["leading dimension too small", "at least 3"],
    );
    assert_refused(
        Banded::column_major(&buffer, 2, 2, usize::MAX, usize::MAX),
        &["too many"],
    );
    assert_refused(
        Banded::row_major(&buffer, usize::MAX, 2, 0, 1),
        &["too many"],
    );
    assert_refused(
        Packed::column_major(&buffer, 5, Triangle::Upper),
        &["5 × 5: 15 elements, 11 available"],
    );
    assert_refused(
        Packed::row_major(&buffer, usize::MAX, Triangle::Upper),
        &["too many"],
    );
    assert_refused(
        PackedMut::row_major(&mut buffer, usize::MAX - 1, Triangle::Upper),
        &["too many"],
    );
    assert_refused(
        PackedMut::column_major(&mut buffer, 5, Triangle::Lower),
        &["15 elements"],
    );
    assert!(PackedMut::column_major(&mut buffer, 4, Triangle::Lower).is_ok());
    Ok(())
}

/// Shapes of banded and packed matrices and rotations that do not agree are refused.
#[driver_test]
fn mismatched_banded_and_packed_shapes_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let buffer = DeviceBuffer::<f64>::zeroed(&stream, 12)?;
    let mut result = DeviceBuffer::<f64>::zeroed(&stream, 3)?;
    let mut packed_result = DeviceBuffer::<f64>::zeroed(&stream, 3)?;
    let mut short = DeviceBuffer::<f64>::zeroed(&stream, 2)?;
    let wide = Banded::column_major(&buffer, 3, 4, 1, 1)?;
    let packed = Packed::column_major(&buffer, 2, Triangle::Upper)?;
    let p = &mut PackedMut::column_major(&mut packed_result, 2, Triangle::Upper)?;
    let x = Vector::strided(&buffer, 3, 1)?;
    let y = &mut VectorMut::new(&mut result);
    let z = &mut VectorMut::new(&mut short);
    let upper = Triangle::Upper;
    let unit = Diagonal::Unit;
    assert_refused(
        blas.gbmv(1.0, wide, x, 0.0, y),
        &["Blas::gbmv", "the matrix is 3 × 4"],
    );
    assert_refused(
        blas.hbmv(1.0, upper, wide, x, 0.0, y),
        &["Blas::hbmv", "not square (3 × 4)"],
    );
    assert_refused(
        blas.sbmv(1.0, upper, wide, x, 0.0, y),
        &["Blas::sbmv", "not square (3 × 4)"],
    );
    assert_refused(
        blas.tbmv(upper, unit, wide, y),
        &["Blas::tbmv", "not square (3 × 4)"],
    );
    assert_refused(
        blas.tbsv(upper, unit, wide, y),
        &["Blas::tbsv", "not square (3 × 4)"],
    );
    assert_refused(
        blas.hpmv(1.0, packed, x, 0.0, y),
        &["Blas::hpmv", "the matrix is 2 × 2"],
    );
    assert_refused(
        blas.spmv(1.0, packed, x, 0.0, y),
        &["Blas::spmv", "the matrix is 2 × 2"],
    );
    assert_refused(blas.hpr(1.0, x, p), &["Blas::hpr", "the matrix is 2 × 2"]);
    assert_refused(blas.spr(1.0, x, p), &["Blas::spr", "the matrix is 2 × 2"]);
    assert_refused(
        blas.hpr2(1.0, x, x, p),
        &["Blas::hpr2", "the matrix is 2 × 2"],
    );
    assert_refused(
        blas.spr2(1.0, x, x, p),
        &["Blas::spr2", "the matrix is 2 × 2"],
    );
    assert_refused(
        blas.tpmv(unit, packed, y),
        &["Blas::tpmv", "the matrix is 2 × 2"],
    );
    assert_refused(
        blas.tpsv(unit, packed, y),
        &["Blas::tpsv", "the matrix is 2 × 2"],
    );
    assert_refused(
        blas.rot_real(y, z, 1.0, 0.0),
        &["Blas::rot_real", "x has 3 elements, y has 2"],
    );
    assert_refused(
        blas.rotm(y, z, ModifiedRotation::Identity),
        &["Blas::rotm", "x has 3 elements, y has 2"],
    );
    Ok(())
}

#[driver_test]
fn shapes_that_do_not_agree_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let buffer = DeviceBuffer::<f32>::zeroed(&stream, 12)?;
    let mut result = DeviceBuffer::<f32>::zeroed(&stream, 12)?;
    let matrix = Matrix::column_major(&buffer, 3, 4)?;
    let c = &mut MatrixMut::column_major(&mut result, 3, 3)?;
    assert_refused(
        blas.gemm(1.0, matrix, matrix, 0.0, c),
        &["Blas::gemm", "a is 3 × 4, b is 3 × 4, c is 3 × 3"],
    );
    assert_refused(blas.geam(1.0, matrix, 1.0, matrix, c), &["a is 3 × 4"]);
    let two = Vector::strided(&buffer, 2, 1)?;
    let square = Matrix::column_major(&buffer, 3, 3)?;
    assert_refused(
        blas.dgmm(Side::Left, square, two, c),
        &["Blas::dgmm", "a is 3 × 3, x has 2 elements, side Left"],
    );
    assert_refused(
        blas.symm(1.0, Side::Left, Triangle::Upper, matrix, matrix, 0.0, c),
        &["not square (3 × 4)"],
    );
    assert_refused(
        blas.trsm(1.0, Side::Left, Triangle::Upper, Diagonal::Unit, matrix, c),
        &["not square"],
    );
    assert_refused(
        blas.syrk(1.0, matrix.transposed(), 0.0, Triangle::Upper, c),
        &["a is 4 × 3, c is 3 × 3"],
    );
    let x = Vector::strided(&buffer, 3, 1)?;
    let mut y = DeviceBuffer::<f32>::zeroed(&stream, 2)?;
    let y = &mut VectorMut::new(&mut y);
    assert_refused(blas.axpy(1.0, x, y), &["x has 3 elements, y has 2"]);
    assert_refused(
        blas.gemv(1.0, matrix, x, 0.0, y),
        &["3 × 4", "2 and 3 elements"],
    );
    assert_refused(
        blas.ger(1.0, x, x, c).and_then(|()| {
            blas.ger(
                1.0,
                x,
                x,
                &mut MatrixMut::column_major(&mut DeviceBuffer::<f32>::zeroed(&stream, 6)?, 3, 2)?,
            )
        }),
        &["3 × 2"],
    );
    Ok(())
}

/// Results that overlap or leave their memory are refused in batches.
#[driver_test]
fn overlapping_batch_results_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let buffer = DeviceBuffer::<f32>::zeroed(&stream, 8)?;
    let mut result = DeviceBuffer::<f32>::zeroed(&stream, 8)?;
    let matrix = Matrix::column_major(&buffer, 2, 2)?;
    let mut multiply = |count, stride_a, stride_c| {
        let c = &mut MatrixMut::column_major(&mut result, 2, 2)?;
        blas.gemm_strided_batched(
            1.0,
            matrix,
            matrix,
            0.0,
            c,
            Batches {
                count,
                stride_a,
                stride_b: 0,
                stride_c,
            },
        )
    };
    assert_refused(multiply(2, 4, 3), &["overlap (stride 3"]);
    assert_refused(
        multiply(3, 0, 4),
        &["batches of c", "3 of 2 × 2, stride 4, 8 elements"],
    );
    assert_refused(multiply(2, 5, 4), &["batches of a"]);
    assert_refused(multiply(usize::MAX, 0, 8), &["batches of c"]);
    multiply(2, 4, 4)?;
    multiply(0, usize::MAX, 0)?;
    Ok(())
}

#[driver_test]
fn conjugation_that_cublas_lacks_is_refused_by_name(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let buffer = DeviceBuffer::<Complex32>::zeroed(&stream, 4)?;
    let mut result = DeviceBuffer::<Complex32>::zeroed(&stream, 4)?;
    let matrix = Matrix::column_major(&buffer, 2, 2)?;
    let zero = Complex32::new(0.0, 0.0);
    let one = Complex32::new(1.0, 0.0);
    let c = &mut MatrixMut::column_major(&mut result, 2, 2)?;
    blas.gemm(one, matrix.adjoint(), matrix, zero, c)?;
    assert_refused(
        blas.gemm(one, matrix.conjugated(), matrix, zero, c),
        &["unsupported by cuBLAS"],
    );
    Ok(())
}

#[driver_test]
fn empty_operands_do_nothing(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let mut buffer = DeviceBuffer::<f64>::zeroed(&stream, 2)?;
    let mut result = DeviceBuffer::from_slice(&stream, &[7.0_f64; 4])?;
    let (empty, mut other) = buffer.split_at_mut(1)?;
    let empty = empty.slice(0..0)?;
    let mut other = other.slice_mut(0..0)?;
    let a = Matrix::column_major(&empty, 2, 0)?;
    let b = Matrix::column_major(&empty, 0, 2)?;
    blas.axpy(1.0, Vector::new(&empty), &mut VectorMut::new(&mut other))?;
    assert_eq!(blas.dot(Vector::new(&empty), Vector::new(&empty))?, 0.0);
    assert_eq!(blas.index_of_max(Vector::new(&empty))?, None);
    // A product without inner elements is 0, and its result is scaled all the same.
    blas.gemm(
        1.0,
        a,
        b,
        2.0,
        &mut MatrixMut::column_major(&mut result, 2, 2)?,
    )?;
    assert_eq!(result.to_vec()?, [14.0; 4]);
    Ok(())
}

#[simulator_test(Config::new().with_uninitialized_checks(true))]
fn result_that_is_multiplied_by_zero_is_not_read(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let a = DeviceBuffer::from_slice(&stream, &[1.0_f32; 4])?;
    let mut c = DeviceBuffer::<f32>::uninit(&stream, 4)?;
    let matrix = Matrix::column_major(&a, 2, 2)?;
    blas.gemm(
        1.0,
        matrix,
        matrix,
        0.0,
        &mut MatrixMut::column_major(&mut c, 2, 2)?,
    )?;
    assert_eq!(c.to_vec()?, [2.0; 4]);
    assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    Ok(())
}

/// A failed launch is an error that names the function and nothing leaks.
#[simulator_test]
fn failed_launch_names_the_function(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut blas = Blas::new(&cublas(), &stream)?;
    let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32; 4])?;
    simulator.inject(
        Fault::on(Function::cuLaunchKernel).returns(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    );
    let error = blas
        .scal(2.0, &mut VectorMut::new(&mut x))
        .expect_err("the launch fails");
    assert!(
        error
            .to_string()
            .starts_with("cublasSscal_v2: failed (CUBLAS_STATUS_EXECUTION_FAILED"),
        "{error}"
    );
    blas.scal(3.0, &mut VectorMut::new(&mut x))?;
    assert_eq!(x.to_vec()?, [3.0; 4]);
    Ok(())
}

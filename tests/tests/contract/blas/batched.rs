//! Batches of matrices anywhere in memory: who owns the arrays of pointers, and what is refused.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::Duration;

use curium_blas::{
    Blas, Diagonal, Error, GemmGroup, MathMode, Matrix, MatrixLayout, MatrixMut, Result, Side,
    Triangle,
};
use curium_driver::Graph;
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::blas_on;
use super::coverage::without;
use super::hostile::assert_refused;

/// Adds to each 2 × 2 matrix of `c` the square of that of `a`.
fn multiply(blas: &mut Blas, a: &DeviceBuffer<f32>, c: &mut DeviceBuffer<f32>) -> Result<()> {
    let factors: Vec<_> = a.chunks(4)?.collect();
    let a = factors
        .iter()
        .map(|chunk| Matrix::row_major(chunk, 2, 2))
        .collect::<Result<Vec<_>>>()?;
    let mut results: Vec<_> = c.chunks_mut(4)?.collect();
    let c = results
        .iter_mut()
        .map(|chunk| MatrixMut::row_major(chunk, 2, 2));
    blas.gemm_batched(1.0, &a, &a, 1.0, &mut c.collect::<Result<Vec<_>>>()?)
}

/// Two matrices by rows, and their squares.
const TWO: [f32; 8] = [1.0, 1.0, 0.0, 1.0, 2.0, 0.0, 0.0, 3.0];
const SQUARES: [f32; 8] = [1.0, 2.0, 0.0, 1.0, 4.0, 0.0, 0.0, 9.0];

/// A batch of one buffer is computed at each launch of a graph after its operands are dropped.
#[driver_test]
fn batch_in_a_graph_outlives_its_operands(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let a = DeviceBuffer::from_slice(&stream, &TWO)?;
    let mut c = DeviceBuffer::<f32>::zeroed(&stream, 8)?;
    let graph = Graph::capture(&test.context(), |scope| {
        multiply(&mut blas_on(scope), &a, &mut c)
    });
    let mut executable = graph?.instantiate()?;
    drop(a);
    assert_eq!(c.to_vec()?, [0.0; 8], "nothing runs while it is captured");
    let other = DeviceBuffer::from_slice(&stream, &[100.0_f32; 8])?;
    (0..3).for_each(|_| executable.launch(&stream).expect("launch failed"));
    assert_eq!(c.to_vec()?, SQUARES.map(|value| 3.0 * value));
    drop(other);
    Ok(())
}

#[driver_test]
fn triangular_batch_and_groups_are_captured(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let a = DeviceBuffer::from_slice(&stream, &[2.0_f32, 0.0, 0.0, 4.0])?;
    let mut b = DeviceBuffer::from_slice(&stream, &[8.0_f32, 8.0, 8.0, 8.0])?;
    let mut c = DeviceBuffer::<f32>::zeroed(&stream, 4)?;
    let graph = Graph::capture(&test.context(), |scope| {
        let mut blas = blas_on(scope);
        let a = [Matrix::row_major(&a, 2, 2)?];
        let mut right = MatrixMut::row_major(&mut b, 2, 2)?;
        let results = std::slice::from_mut(&mut right);
        blas.trsm_batched(
            1.0,
            Side::Left,
            Triangle::Lower,
            Diagonal::Stored,
            &a,
            results,
        )?;
        let mut sum = MatrixMut::row_major(&mut c, 2, 2)?;
        let c = std::slice::from_mut(&mut sum);
        blas.gemm_grouped(&mut [GemmGroup {
            alpha: 1.0,
            a: &a,
            b: &a,
            beta: 1.0,
            c,
        }])
    });
    let mut executable = graph?.instantiate()?;
    drop(a);
    (0..2).for_each(|_| executable.launch(&stream).expect("launch failed"));
    assert_eq!(b.to_vec()?, [2.0, 2.0, 0.5, 0.5]);
    assert_eq!(c.to_vec()?, [8.0, 0.0, 0.0, 32.0]);
    Ok(())
}

/// Batches of different sizes in flight do not share pointers and do not wait.
#[driver_test]
fn batches_in_flight_do_not_share_pointers(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let large = DeviceBuffer::from_slice(&stream, &TWO.repeat(60))?;
    let small = DeviceBuffer::from_slice(&stream, &TWO)?;
    let mut large_sum = DeviceBuffer::<f32>::zeroed(&stream, 480)?;
    let mut small_sum = DeviceBuffer::<f32>::zeroed(&stream, 8)?;
    // Pinned memory is allocated, which waits for the device.
    for _ in 0..6 {
        multiply(&mut blas, &small, &mut small_sum)?;
    }
    let (release, released) = mpsc::channel::<()>();
    let (report, was_released) = mpsc::channel();
    drop(stream.launch_host_function(move || {
        report.send(released.recv_timeout(Duration::from_secs(20)).is_ok())
    })?);
    multiply(&mut blas, &small, &mut small_sum)?;
    multiply(&mut blas, &small, &mut small_sum)?;
    release.send(())?;
    for _ in 0..10 {
        multiply(&mut blas, &large, &mut large_sum)?;
        multiply(&mut blas, &small, &mut small_sum)?;
    }
    assert_eq!(
        was_released.recv(),
        Ok(true),
        "the host waited for the stream"
    );
    assert_eq!(small_sum.to_vec()?, SQUARES.map(|value| 18.0 * value));
    assert_eq!(
        large_sum.to_vec()?,
        SQUARES.map(|value| 10.0 * value).repeat(60)
    );
    Ok(())
}

#[simulator_test(Config::new()
            .with_race_checks(true)
            .with_uninitialized_checks(true))]
/// An array of pointers is ordered before and after its operation.
fn pointer_array_is_ordered_with_its_operation(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    let a = DeviceBuffer::from_slice(&stream, &TWO)?;
    let mut c = DeviceBuffer::<f32>::zeroed(&test.stream(), 8)?;
    let mut blas = blas_on(&stream);
    (0..20).for_each(|_| multiply(&mut blas, &a, &mut c).expect("enqueue failed"));
    drop(blas);
    assert_eq!(c.to_vec()?, SQUARES.map(|value| 20.0 * value));
    assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    Ok(())
}

#[driver_test]
fn batches_that_do_not_agree_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let buffer = DeviceBuffer::<f32>::zeroed(&stream, 8)?;
    let mut result = DeviceBuffer::<f32>::zeroed(&stream, 8)?;
    let (first, second) = result.split_at_mut(4)?;
    let mut first = first;
    let mut second = second;
    let square = Matrix::column_major(&buffer, 2, 2)?;
    let wide = Matrix::column_major(&buffer, 2, 4)?;
    let mut c = [
        MatrixMut::column_major(&mut first, 2, 2)?,
        MatrixMut::column_major(&mut second, 2, 2)?,
    ];
    let one = blas.gemm_batched(1.0, &[square], &[square, square], 0.0, &mut c);
    assert_refused(
        one,
        &[
            "Blas::gemm_batched",
            "numbers of matrices differ (a has 1, b has 2, c has 2)",
        ],
    );
    let other = blas.gemm_batched(
        1.0,
        &[square, square.transposed()],
        &[square; 2],
        0.0,
        &mut c,
    );
    assert_refused(
        other,
        &["matrix 1 of a has another layout than matrix 0 (2 × 2)"],
    );
    let shape = blas.gemm_batched(1.0, &[square; 2], &[wide; 2], 0.0, &mut c);
    assert_refused(shape, &["a is 2 × 2, b is 2 × 4, c is 2 × 2"]);
    let solve = |blas: &mut Blas, a: &[Matrix<'_, f32>], b: &mut [MatrixMut<'_, f32>]| {
        blas.trsm_batched(1.0, Side::Left, Triangle::Upper, Diagonal::Unit, a, b)
    };
    assert_refused(
        solve(&mut blas, &[square], &mut c),
        &["Blas::trsm_batched", "a has 1, b has 2"],
    );
    assert_refused(
        solve(&mut blas, &[wide; 2], &mut c),
        &["not square (2 × 4)"],
    );
    solve(&mut blas, &[], &mut [])?;
    blas.gemm_batched::<f32, f32>(1.0, &[], &[], 0.0, &mut [])?;
    blas.gemm_grouped::<f32>(&mut [])?;
    let group = GemmGroup {
        alpha: 1.0,
        a: &[square],
        b: &[square],
        beta: 0.0,
        c: &mut c,
    };
    assert_refused(
        blas.gemm_grouped(&mut [group]),
        &["Blas::gemm_grouped", "a has 1, b has 1, c has 2"],
    );
    Ok(())
}

#[driver_test]
fn misaligned_vector_loads_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let buffer = DeviceBuffer::<f32>::zeroed(&stream, 5)?;
    let mut result = DeviceBuffer::<f32>::zeroed(&stream, 4)?;
    let odd = buffer.slice(1..5)?;
    let odd = [Matrix::column_major(&odd, 2, 2)?];
    let mut c = [MatrixMut::column_major(&mut result, 2, 2)?];
    blas.gemm_batched(1.0, &odd, &odd, 0.0, &mut c)?;
    blas.set_math_mode(MathMode::Tf32)?;
    assert_refused(
        blas.gemm_batched(1.0, &odd, &odd, 0.0, &mut c),
        &["misaligned matrix", "not a multiple of 16"],
    );
    blas.set_math_mode(MathMode::Default)?;
    let group = GemmGroup {
        alpha: 1.0,
        a: &odd,
        b: &odd,
        beta: 0.0,
        c: &mut c,
    };
    assert_refused(
        blas.gemm_grouped(&mut [group]),
        &["misaligned matrix", "not a multiple of 16"],
    );
    Ok(())
}

/// A library before 12.5 has no groups and the error names the version.
#[simulator_test]
fn grouped_batches_require_12_5(test: &TestDriver, _: &Simulator) -> TestResult {
    let lacking = BTreeSet::from([
        "cublasGemmGroupedBatchedEx",
        "cublasGemmGroupedBatchedEx_64",
    ]);
    let mut blas = Blas::new(&without(&lacking)?, &test.stream())?;
    let buffer = DeviceBuffer::<f64>::zeroed(&test.stream(), 1)?;
    let mut result = DeviceBuffer::<f64>::zeroed(&test.stream(), 1)?;
    let a = [Matrix::new(&buffer, MatrixLayout::row_major(1, 1))?];
    let mut c = [MatrixMut::row_major(&mut result, 1, 1)?];
    let actual = blas.gemm_grouped(&mut [GemmGroup {
        alpha: 1.0,
        a: &a,
        b: &a,
        beta: 0.0,
        c: &mut c,
    }]);
    let Err(Error::Missing(error)) = actual else {
        panic!("{actual:?}")
    };
    assert!(
        error.to_string().contains("introduced in CUDA 12.5"),
        "{error}"
    );
    Ok(())
}

#[driver_test]
fn half_precision_groups_are_summed_in_32_bits(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let ones = DeviceBuffer::filled(&stream, 4096, half::f16::from_f32(1.0))?;
    let tenths = DeviceBuffer::filled(&stream, 4096, half::bf16::from_f32(0.5))?;
    let mut sum = DeviceBuffer::<half::f16>::zeroed(&stream, 1)?;
    let mut other = DeviceBuffer::<half::bf16>::zeroed(&stream, 1)?;
    // A sum of 16 bits would end at 2048 and at 256.
    let row = Matrix::row_major(&ones, 1, 4096);
    let column = Matrix::row_major(&ones, 4096, 1);
    let a = [row?];
    let b = [column?];
    let mut c = [MatrixMut::row_major(&mut sum, 1, 1)?];
    blas.gemm_grouped(&mut [GemmGroup {
        alpha: 1.0,
        a: &a,
        b: &b,
        beta: 0.0,
        c: &mut c,
    }])?;
    let row = Matrix::row_major(&tenths, 1, 4096);
    let column = Matrix::row_major(&tenths, 4096, 1);
    let a = [row?];
    let b = [column?];
    let mut c = [MatrixMut::row_major(&mut other, 1, 1)?];
    blas.gemm_grouped(&mut [GemmGroup {
        alpha: 1.0,
        a: &a,
        b: &b,
        beta: 0.0,
        c: &mut c,
    }])?;
    assert_eq!(sum.to_vec()?[0].to_f32(), 4096.0);
    assert_eq!(other.to_vec()?[0].to_f32(), 1024.0);
    Ok(())
}

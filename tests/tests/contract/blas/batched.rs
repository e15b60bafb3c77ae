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
use curium_sim::Config;
use curium_tests::{on_driver, on_simulator};

use super::blas_on;
use super::coverage::without;
use super::hostile::assert_refused;

/// Adds to each 2 × 2 matrix of `c` the square of that of `a`.
fn multiply(blas: &mut Blas, a: &DeviceBuffer<f32>, c: &mut DeviceBuffer<f32>) -> Result<()> {
    let factors: Vec<_> = a.as_slice().chunks(4)?.collect();
    let a = factors
        .iter()
        .map(|chunk| Matrix::row_major(chunk, 2, 2))
        .collect::<Result<Vec<_>>>()?;
    let mut results: Vec<_> = c.as_slice_mut().chunks(4)?.collect();
    let c = results
        .iter_mut()
        .map(|chunk| MatrixMut::row_major(chunk, 2, 2));
    blas.gemm_batched(1.0, &a, &a, 1.0, &mut c.collect::<Result<Vec<_>>>()?)
}

/// Two matrices by rows, and their squares.
const TWO: [f32; 8] = [1.0, 1.0, 0.0, 1.0, 2.0, 0.0, 0.0, 3.0];
const SQUARES: [f32; 8] = [1.0, 2.0, 0.0, 1.0, 4.0, 0.0, 0.0, 9.0];

#[test]
fn batch_of_one_buffer_is_computed_at_each_launch_of_a_graph_after_its_operands_are_dropped() {
    on_driver(|test| {
        let stream = test.stream();
        let a = DeviceBuffer::from_slice(&stream, &TWO).expect("memory suffices");
        let mut c = DeviceBuffer::<f32>::zeroed(&stream, 8).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            multiply(&mut blas_on(scope), &a, &mut c)
        });
        let mut executable = graph
            .expect("it is captured")
            .instantiate()
            .expect("the graph is correct");
        drop(a);
        assert_eq!(
            c.to_vec().expect("it can be read"),
            [0.0; 8],
            "nothing runs while it is captured"
        );
        let other = DeviceBuffer::from_slice(&stream, &[100.0_f32; 8]).expect("memory suffices");
        (0..3).for_each(|_| executable.launch(&stream).expect("it can be launched"));
        assert_eq!(
            c.to_vec().expect("it can be read"),
            SQUARES.map(|value| 3.0 * value)
        );
        drop(other);
    });
}

#[test]
fn triangular_batch_and_groups_are_captured() {
    on_driver(|test| {
        let stream = test.stream();
        let a =
            DeviceBuffer::from_slice(&stream, &[2.0_f32, 0.0, 0.0, 4.0]).expect("memory suffices");
        let mut b =
            DeviceBuffer::from_slice(&stream, &[8.0_f32, 8.0, 8.0, 8.0]).expect("memory suffices");
        let mut c = DeviceBuffer::<f32>::zeroed(&stream, 4).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            let (mut blas, a) = (blas_on(scope), [Matrix::row_major(&a, 2, 2)?]);
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
        let mut executable = graph
            .expect("it is captured")
            .instantiate()
            .expect("the graph is correct");
        drop(a);
        (0..2).for_each(|_| executable.launch(&stream).expect("it can be launched"));
        assert_eq!(b.to_vec().expect("it can be read"), [2.0, 2.0, 0.5, 0.5]);
        assert_eq!(c.to_vec().expect("it can be read"), [8.0, 0.0, 0.0, 32.0]);
    });
}

#[test]
fn batches_of_different_sizes_in_flight_do_not_share_pointers_and_do_not_wait() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let large = DeviceBuffer::from_slice(&stream, &TWO.repeat(60)).expect("memory suffices");
        let small = DeviceBuffer::from_slice(&stream, &TWO).expect("memory suffices");
        let mut large_sum = DeviceBuffer::<f32>::zeroed(&stream, 480).expect("memory suffices");
        let mut small_sum = DeviceBuffer::<f32>::zeroed(&stream, 8).expect("memory suffices");
        // Pinned memory is allocated, which waits for the device.
        for _ in 0..6 {
            multiply(&mut blas, &small, &mut small_sum).expect("it is enqueued");
        }
        let (release, released) = mpsc::channel::<()>();
        let (report, was_released) = mpsc::channel();
        let wait = move || report.send(released.recv_timeout(Duration::from_secs(20)).is_ok());
        drop(stream.launch_host_function(wait).expect("it is enqueued"));
        multiply(&mut blas, &small, &mut small_sum).expect("it is enqueued");
        multiply(&mut blas, &small, &mut small_sum).expect("it is enqueued");
        release.send(()).expect("the stream has not continued");
        for _ in 0..10 {
            multiply(&mut blas, &large, &mut large_sum).expect("it is enqueued");
            multiply(&mut blas, &small, &mut small_sum).expect("it is enqueued");
        }
        assert_eq!(
            was_released.recv(),
            Ok(true),
            "the host waited for the stream"
        );
        assert_eq!(
            small_sum.to_vec().expect("it can be read"),
            SQUARES.map(|value| 18.0 * value)
        );
        assert_eq!(
            large_sum.to_vec().expect("it can be read"),
            SQUARES.map(|value| 10.0 * value).repeat(60)
        );
    });
}

#[test]
fn array_of_pointers_is_ordered_before_and_after_its_operation() {
    on_simulator(
        Config::new()
            .with_race_checks(true)
            .with_uninitialized_checks(true),
        |test, simulator| {
            let stream = test.stream();
            let a = DeviceBuffer::from_slice(&stream, &TWO).expect("memory suffices");
            let mut c = DeviceBuffer::<f32>::zeroed(&test.stream(), 8).expect("memory suffices");
            let mut blas = blas_on(&stream);
            (0..20).for_each(|_| multiply(&mut blas, &a, &mut c).expect("it is enqueued"));
            drop(blas);
            assert_eq!(
                c.to_vec().expect("it can be read"),
                SQUARES.map(|value| 20.0 * value)
            );
            assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
        },
    );
}

#[test]
fn batches_that_do_not_agree_are_refused() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let buffer = DeviceBuffer::<f32>::zeroed(&stream, 8).expect("memory suffices");
        let mut result = DeviceBuffer::<f32>::zeroed(&stream, 8).expect("memory suffices");
        let (first, second) = result.as_slice_mut().split_at(4).expect("there are two");
        let (mut first, mut second) = (first, second);
        let square = Matrix::column_major(&buffer, 2, 2).expect("it fits");
        let wide = Matrix::column_major(&buffer, 2, 4).expect("it fits");
        let mut c = [
            MatrixMut::column_major(&mut first, 2, 2).expect("it fits"),
            MatrixMut::column_major(&mut second, 2, 2).expect("it fits"),
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
        solve(&mut blas, &[], &mut []).expect("an empty batch is valid");
        blas.gemm_batched::<f32, f32>(1.0, &[], &[], 0.0, &mut [])
            .expect("an empty batch is valid");
        blas.gemm_grouped::<f32>(&mut [])
            .expect("an empty batch is valid");
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
    });
}

#[test]
fn vector_loads_of_misaligned_matrices_are_refused() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let buffer = DeviceBuffer::<f32>::zeroed(&stream, 5).expect("memory suffices");
        let mut result = DeviceBuffer::<f32>::zeroed(&stream, 4).expect("memory suffices");
        let odd = buffer.slice(1..5).expect("it is within");
        let odd = [Matrix::column_major(&odd, 2, 2).expect("it fits")];
        let mut c = [MatrixMut::column_major(&mut result, 2, 2).expect("it fits")];
        blas.gemm_batched(1.0, &odd, &odd, 0.0, &mut c)
            .expect("this arithmetic needs no vector loads");
        blas.set_math_mode(MathMode::Tf32).expect("it can be set");
        assert_refused(
            blas.gemm_batched(1.0, &odd, &odd, 0.0, &mut c),
            &["misaligned matrix", "not a multiple of 16"],
        );
        blas.set_math_mode(MathMode::Default)
            .expect("it can be set");
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
    });
}

#[test]
fn library_before_12_5_has_no_groups_and_the_error_names_the_version() {
    on_simulator(Config::new(), |test, _| {
        let lacking = BTreeSet::from([
            "cublasGemmGroupedBatchedEx",
            "cublasGemmGroupedBatchedEx_64",
        ]);
        let mut blas =
            Blas::new(&without(&lacking), &test.stream()).expect("a handle can be created");
        let buffer = DeviceBuffer::<f64>::zeroed(&test.stream(), 1).expect("memory suffices");
        let mut result = DeviceBuffer::<f64>::zeroed(&test.stream(), 1).expect("memory suffices");
        let a = [Matrix::new(&buffer, MatrixLayout::row_major(1, 1)).expect("it fits")];
        let mut c = [MatrixMut::row_major(&mut result, 1, 1).expect("it fits")];
        let found = blas.gemm_grouped(&mut [GemmGroup {
            alpha: 1.0,
            a: &a,
            b: &a,
            beta: 0.0,
            c: &mut c,
        }]);
        let Err(Error::Missing(error)) = found else {
            panic!("{found:?}")
        };
        assert!(
            error.to_string().contains("introduced in CUDA 12.5"),
            "{error}"
        );
    });
}

#[test]
fn groups_of_half_precision_are_summed_in_32_bits() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let ones =
            DeviceBuffer::filled(&stream, 4096, half::f16::from_f32(1.0)).expect("memory suffices");
        let tenths = DeviceBuffer::filled(&stream, 4096, half::bf16::from_f32(0.5))
            .expect("memory suffices");
        let mut sum = DeviceBuffer::<half::f16>::zeroed(&stream, 1).expect("memory suffices");
        let mut other = DeviceBuffer::<half::bf16>::zeroed(&stream, 1).expect("memory suffices");
        // A sum of 16 bits would end at 2048 and at 256.
        let (row, column) = (
            Matrix::row_major(&ones, 1, 4096),
            Matrix::row_major(&ones, 4096, 1),
        );
        let (a, b) = ([row.expect("it fits")], [column.expect("it fits")]);
        let mut c = [MatrixMut::row_major(&mut sum, 1, 1).expect("it fits")];
        blas.gemm_grouped(&mut [GemmGroup {
            alpha: 1.0,
            a: &a,
            b: &b,
            beta: 0.0,
            c: &mut c,
        }])
        .expect("it runs");
        let (row, column) = (
            Matrix::row_major(&tenths, 1, 4096),
            Matrix::row_major(&tenths, 4096, 1),
        );
        let (a, b) = ([row.expect("it fits")], [column.expect("it fits")]);
        let mut c = [MatrixMut::row_major(&mut other, 1, 1).expect("it fits")];
        blas.gemm_grouped(&mut [GemmGroup {
            alpha: 1.0,
            a: &a,
            b: &b,
            beta: 0.0,
            c: &mut c,
        }])
        .expect("it runs");
        assert_eq!(sum.to_vec().expect("it can be read")[0].to_f32(), 4096.0);
        assert_eq!(other.to_vec().expect("it can be read")[0].to_f32(), 1024.0);
    });
}

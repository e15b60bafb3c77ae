//! cuBLAS in captures: operations become nodes, and the graph keeps the handle, the workspace and the operands.

use curium_blas::{
    Banded, Blas, Diagonal, Error, Matrix, MatrixMut, ModifiedRotation, Packed, PackedMut,
    Triangle, Vector, VectorMut,
};
use curium_driver::Graph;
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_tests::{TestDriver, on_driver, on_simulator};

use super::{blas_on, cublas};

/// Captures y = y + 2 · x.
fn captured(test: &TestDriver, x: &DeviceBuffer<f32>, y: &mut DeviceBuffer<f32>) -> Graph {
    let graph = Graph::capture(&test.context(), |scope| {
        let mut blas = blas_on(scope);
        blas.axpy(2.0, Vector::new(x), &mut VectorMut::new(y))
    });
    graph.expect("the operation is captured")
}

#[test]
fn operation_runs_at_each_launch_with_the_operands_of_that_time() {
    on_driver(|test| {
        let stream = test.stream();
        let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0]).expect("memory suffices");
        let mut y = DeviceBuffer::from_slice(&stream, &[0.0_f32, 0.0]).expect("memory suffices");
        let mut executable = captured(test, &x, &mut y)
            .instantiate()
            .expect("the graph is valid");
        assert_eq!(
            y.to_vec().expect("it can be read"),
            [0.0, 0.0],
            "nothing runs while it is captured"
        );
        executable.launch(&stream).expect("it can be launched");
        x.as_slice_mut().fill(10.0).expect("the fill is enqueued");
        executable.launch(&stream).expect("it can be launched");
        assert_eq!(y.to_vec().expect("it can be read"), [22.0, 24.0]);
    });
}

#[test]
fn graph_keeps_operands_that_are_dropped() {
    on_driver(|test| {
        let stream = test.stream();
        let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0]).expect("memory suffices");
        let mut y = DeviceBuffer::from_slice(&stream, &[0.0_f32, 0.0]).expect("memory suffices");
        let mut executable = captured(test, &x, &mut y)
            .instantiate()
            .expect("the graph is valid");
        drop(x);
        // Memory that was freed would be reused by this.
        let other =
            DeviceBuffer::from_slice(&stream, &[100.0_f32, 100.0]).expect("memory suffices");
        executable.launch(&stream).expect("the operands live");
        assert_eq!(y.to_vec().expect("it can be read"), [2.0, 4.0]);
        drop(other);
    });
}

#[test]
fn workspace_that_is_replaced_after_a_capture_lives_as_long_as_the_graph() {
    on_driver(|test| {
        let stream = test.stream();
        let a = DeviceBuffer::from_slice(&stream, &[1.0_f32; 4]).expect("memory suffices");
        let mut c = DeviceBuffer::<f32>::zeroed(&stream, 4).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            let mut blas = blas_on(scope);
            let matrix = Matrix::column_major(&a, 2, 2)?;
            blas.gemm(
                1.0,
                matrix,
                matrix,
                1.0,
                &mut MatrixMut::column_major(&mut c, 2, 2)?,
            )?;
            blas.set_workspace(1 << 12)?;
            blas.gemm(
                1.0,
                matrix,
                matrix,
                1.0,
                &mut MatrixMut::column_major(&mut c, 2, 2)?,
            )
        });
        let mut executable = graph
            .expect("the operations are captured")
            .instantiate()
            .expect("the graph is valid");
        executable.launch(&stream).expect("it can be launched");
        executable.launch(&stream).expect("it can be launched");
        assert_eq!(c.to_vec().expect("it can be read"), [8.0; 4]);
    });
}

#[test]
fn handle_of_another_stream_is_refused_in_a_capture() {
    on_driver(|test| {
        let stream = test.stream();
        let mut blas = blas_on(&stream);
        let x = DeviceBuffer::from_slice(&stream, &[1.0_f32]).expect("memory suffices");
        let mut y = DeviceBuffer::from_slice(&stream, &[1.0_f32]).expect("memory suffices");
        let refused = Graph::capture(&test.context(), |_| {
            blas.axpy(2.0, Vector::new(&x), &mut VectorMut::new(&mut y))
        });
        let error = refused
            .map(drop)
            .expect_err("the graph would not contain it");
        assert!(
            error.to_string().contains("Blas::axpy") && error.to_string().contains("capture scope"),
            "{error}"
        );
        assert_eq!(y.to_vec().expect("it can be read"), [1.0], "it did not run");
    });
}

#[test]
fn operation_that_returns_a_number_is_refused_in_a_capture() {
    on_driver(|test| {
        let stream = test.stream();
        let x = DeviceBuffer::from_slice(&stream, &[1.0_f32]).expect("memory suffices");
        let refused = Graph::capture(&test.context(), |scope| -> Result<(), Error> {
            let mut blas = blas_on(scope);
            blas.nrm2(Vector::new(&x)).map(|_| ())
        });
        let error = refused.map(drop).expect_err("the host cannot wait");
        assert!(error.to_string().contains("Blas::nrm2"), "{error}");
    });
}

#[test]
fn handles_move_to_other_threads_and_streams_wait_for_each_other() {
    on_simulator(Config::new().with_race_checks(true), |test, simulator| {
        let (stream, other) = (test.stream(), test.stream());
        let mut blas = Blas::new(&cublas(), &other).expect("a handle can be created");
        let x = DeviceBuffer::from_slice(&stream, &[1.0_f32; 8]).expect("memory suffices");
        let mut y = DeviceBuffer::<f32>::zeroed(&stream, 8).expect("memory suffices");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..4 {
                    blas.axpy(1.0, Vector::new(&x), &mut VectorMut::new(&mut y))
                        .expect("the lengths agree");
                }
            });
        });
        assert_eq!(y.to_vec().expect("it can be read"), [4.0; 8]);
        assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    });
}

#[test]
fn rotations_are_computed_in_a_capture_and_their_parameters_are_kept() {
    on_driver(|test| {
        let stream = test.stream();
        let mut x = DeviceBuffer::from_slice(&stream, &[3.0_f32]).expect("memory suffices");
        let mut y = DeviceBuffer::from_slice(&stream, &[4.0_f32]).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            let mut blas = blas_on(scope);
            let rotation = blas.rotg(3.0_f32, 4.0)?;
            let (x, y) = (&mut VectorMut::new(&mut x), &mut VectorMut::new(&mut y));
            blas.rot(x, y, rotation.cosine, rotation.sine)?;
            blas.rot_real(x, y, 0.0, 1.0)?;
            blas.rotm(x, y, ModifiedRotation::UnitDiagonal { h21: 2.0, h12: 1.0 })
        });
        let mut executable = graph
            .expect("they are captured")
            .instantiate()
            .expect("the graph is correct");
        executable.launch(&stream).expect("it can be launched");
        // (3, 4), (5, 0), (0, -5), (-5, -5): the last one is (0 - 5, 2 * 0 - 5).
        let (x, y) = (
            x.to_vec().expect("it can be read")[0],
            y.to_vec().expect("it can be read")[0],
        );
        assert!(
            (x + 5.0).abs() < 1e-5 && (y + 5.0).abs() < 1e-5,
            "({x}, {y})"
        );
    });
}

#[test]
fn banded_and_packed_operations_are_captured() {
    on_driver(|test| {
        let stream = test.stream();
        let bands = DeviceBuffer::from_slice(&stream, &[2.0_f32, 2.0]).expect("memory suffices");
        let ones = DeviceBuffer::from_slice(&stream, &[1.0_f32, 1.0]).expect("memory suffices");
        let mut packed = DeviceBuffer::<f32>::zeroed(&stream, 3).expect("memory suffices");
        let mut y = DeviceBuffer::<f32>::zeroed(&stream, 2).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            let mut blas = blas_on(scope);
            let (band, x) = (
                Banded::column_major(&bands, 2, 2, 0, 0)?,
                Vector::new(&ones),
            );
            blas.spr(
                1.0,
                x,
                &mut PackedMut::column_major(&mut packed, 2, Triangle::Upper)?,
            )?;
            let y = &mut VectorMut::new(&mut y);
            blas.gbmv(1.0, band, x, 1.0, y)?;
            blas.tbsv(Triangle::Upper, Diagonal::Stored, band, y)?;
            blas.spmv(
                1.0,
                Packed::column_major(&packed, 2, Triangle::Upper)?,
                x,
                1.0,
                y,
            )
        });
        let mut executable = graph
            .expect("they are captured")
            .instantiate()
            .expect("the graph is correct");
        drop((bands, ones));
        (0..2).for_each(|_| executable.launch(&stream).expect("it can be launched"));
        // The first launch gives 2 / 2 + 2, the second (2 + 3) / 2 + 4.
        assert_eq!(y.to_vec().expect("it can be read"), [6.5, 6.5]);
    });
}

//! cuBLAS in captures: operations become nodes, and the graph keeps the handle, the workspace and
//! the operands.

use curium_blas::{
    Banded, Blas, Diagonal, Error, Matrix, MatrixMut, ModifiedRotation, Packed, PackedMut,
    Triangle, Vector, VectorMut,
};
use curium_driver::{ContextOptions, Function, Graph};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::{blas_on, cublas};

/// Captures y = y + 2 · x.
fn captured(
    test: &TestDriver,
    x: &DeviceBuffer<f32>,
    y: &mut DeviceBuffer<f32>,
) -> TestResult<Graph> {
    let graph = Graph::capture(&test.context(), |scope| {
        let mut blas = blas_on(scope);
        blas.axpy(2.0, Vector::new(x), &mut VectorMut::new(y))
    });
    Ok(graph?)
}

/// An operation runs at each launch with the operands of that time.
#[driver_test]
fn operation_reads_operands_at_each_launch(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[0.0_f32, 0.0])?;
    let mut executable = captured(test, &x, &mut y)?.instantiate()?;
    assert_eq!(y.to_vec()?, [0.0, 0.0], "nothing runs while it is captured");
    executable.launch(&stream)?;
    x.fill(10.0)?;
    executable.launch(&stream)?;
    assert_eq!(y.to_vec()?, [22.0, 24.0]);
    Ok(())
}

#[driver_test]
fn graph_keeps_operands_that_are_dropped(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[0.0_f32, 0.0])?;
    let mut executable = captured(test, &x, &mut y)?.instantiate()?;
    drop(x);
    // Memory that was freed would be reused by this.
    let other = DeviceBuffer::from_slice(&stream, &[100.0_f32, 100.0])?;
    executable.launch(&stream)?;
    assert_eq!(y.to_vec()?, [2.0, 4.0]);
    drop(other);
    Ok(())
}

/// A workspace that is replaced after a capture lives as long as the graph.
#[driver_test]
fn replaced_workspace_lives_as_long_as_its_graph(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let a = DeviceBuffer::from_slice(&stream, &[1.0_f32; 4])?;
    let mut c = DeviceBuffer::<f32>::zeroed(&stream, 4)?;
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
    let mut executable = graph?.instantiate()?;
    executable.launch(&stream)?;
    executable.launch(&stream)?;
    assert_eq!(c.to_vec()?, [8.0; 4]);
    Ok(())
}

/// A handle that exists is used in a capture without being created again, and on its stream
/// afterwards.
#[driver_test]
fn handle_moves_to_a_capture_and_back(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let bytes = blas.workspace_bytes();
    let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0])?;
    let mut y = DeviceBuffer::<f32>::zeroed(&stream, 2)?;
    let graph = Graph::capture(&test.context(), |scope| {
        blas.set_stream(scope)?;
        blas.axpy(2.0, Vector::new(&x), &mut VectorMut::new(&mut y))
    })?;
    blas.set_stream(&stream)?;
    assert_eq!(blas.workspace_bytes(), bytes);
    let mut executable = graph.instantiate()?;
    executable.launch(&stream)?;
    blas.scal(10.0, &mut VectorMut::new(&mut y))?;
    executable.launch(&stream)?;
    assert_eq!(y.to_vec()?, [22.0, 44.0]);
    Ok(())
}

/// The operations of a handle on two streams share its workspace: the second stream waits for the
/// first, also for graphs.
#[simulator_test(Config::new().with_race_checks(true))]
fn moved_handle_keeps_its_workspace(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let streams = [test.stream(), test.stream()];
    let mut blas = Blas::new(&cublas(), &streams[0])?;
    let a = DeviceBuffer::from_slice(&streams[0], &[1.0_f32; 4])?;
    let matrix = Matrix::column_major(&a, 2, 2)?;
    let mut results = [
        DeviceBuffer::<f32>::zeroed(&streams[0], 4)?,
        DeviceBuffer::<f32>::zeroed(&streams[0], 4)?,
        DeviceBuffer::<f32>::zeroed(&streams[0], 4)?,
    ];
    let [first, second, captured] = &mut results;
    let graph = Graph::capture(&test.context(), |scope| {
        blas.set_stream(scope)?;
        let mut target = MatrixMut::column_major(captured, 2, 2)?;
        blas.gemm(1.0, matrix, matrix, 0.0, &mut target)
    })?;
    let mut executable = graph.instantiate()?;
    let allocations = simulator.calls(Function::cuMemAlloc_v2);
    for (stream, target) in streams.iter().zip([first, second]) {
        blas.set_stream(stream)?;
        let mut target = MatrixMut::column_major(target, 2, 2)?;
        blas.gemm(1.0, matrix, matrix, 0.0, &mut target)?;
    }
    executable.launch(&test.stream())?;
    for result in &results {
        assert_eq!(result.to_vec()?, [2.0; 4]);
    }
    assert_eq!(
        simulator.calls(Function::cuMemAlloc_v2),
        allocations,
        "the library did not fall back to a workspace of its own"
    );
    assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    Ok(())
}

#[driver_test]
fn stream_of_another_context_is_refused(test: &TestDriver) -> TestResult {
    let mut blas = blas_on(&test.stream());
    let other = test.device().create_context(ContextOptions::new())?;
    let error = blas
        .set_stream(&other.stream()?)
        .expect_err("the handle belongs to the primary context");
    assert!(
        error
            .to_string()
            .starts_with("Blas::set_stream: the stream belongs to another context"),
        "{error}"
    );
    Ok(())
}

#[driver_test]
fn foreign_stream_handle_is_refused_in_a_capture(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut blas = blas_on(&stream);
    let x = DeviceBuffer::from_slice(&stream, &[1.0_f32])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[1.0_f32])?;
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
    assert_eq!(y.to_vec()?, [1.0], "it did not run");
    Ok(())
}

/// An operation that returns a number is refused in a capture.
#[driver_test]
fn scalar_result_is_refused_in_a_capture(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let x = DeviceBuffer::from_slice(&stream, &[1.0_f32])?;
    let refused = Graph::capture(&test.context(), |scope| -> Result<(), Error> {
        let mut blas = blas_on(scope);
        blas.nrm2(Vector::new(&x)).map(|_| ())
    });
    let error = refused.map(drop).expect_err("the host cannot wait");
    assert!(error.to_string().contains("Blas::nrm2"), "{error}");
    Ok(())
}

/// Handles move to other threads and streams wait for each other.
#[simulator_test(Config::new().with_race_checks(true))]
fn handles_move_between_threads(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut blas = Blas::new(&cublas(), &other)?;
    let x = DeviceBuffer::from_slice(&stream, &[1.0_f32; 8])?;
    let mut y = DeviceBuffer::<f32>::zeroed(&stream, 8)?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..4 {
                blas.axpy(1.0, Vector::new(&x), &mut VectorMut::new(&mut y))
                    .expect("the lengths agree");
            }
        });
    });
    assert_eq!(y.to_vec()?, [4.0; 8]);
    assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    Ok(())
}

/// Rotations are computed in a capture and their parameters are kept.
#[driver_test]
fn rotations_are_captured_with_their_parameters(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut x = DeviceBuffer::from_slice(&stream, &[3.0_f32])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[4.0_f32])?;
    let graph = Graph::capture(&test.context(), |scope| {
        let mut blas = blas_on(scope);
        let rotation = blas.rotg(3.0_f32, 4.0)?;
        let x = &mut VectorMut::new(&mut x);
        let y = &mut VectorMut::new(&mut y);
        blas.rot(x, y, rotation.cosine, rotation.sine)?;
        blas.rot_real(x, y, 0.0, 1.0)?;
        blas.rotm(x, y, ModifiedRotation::UnitDiagonal { h21: 2.0, h12: 1.0 })
    });
    let mut executable = graph?.instantiate()?;
    executable.launch(&stream)?;
    // (3, 4), (5, 0), (0, -5), (-5, -5): the last one is (0 - 5, 2 * 0 - 5).
    let x = x.to_vec()?[0];
    let y = y.to_vec()?[0];
    assert!(
        (x + 5.0).abs() < 1e-5 && (y + 5.0).abs() < 1e-5,
        "({x}, {y})"
    );
    Ok(())
}

#[driver_test]
fn banded_and_packed_operations_are_captured(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let bands = DeviceBuffer::from_slice(&stream, &[2.0_f32, 2.0])?;
    let ones = DeviceBuffer::from_slice(&stream, &[1.0_f32, 1.0])?;
    let mut packed = DeviceBuffer::<f32>::zeroed(&stream, 3)?;
    let mut y = DeviceBuffer::<f32>::zeroed(&stream, 2)?;
    let graph = Graph::capture(&test.context(), |scope| {
        let mut blas = blas_on(scope);
        let band = Banded::column_major(&bands, 2, 2, 0, 0)?;
        let x = Vector::new(&ones);
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
    let mut executable = graph?.instantiate()?;
    drop((bands, ones));
    (0..2).for_each(|_| executable.launch(&stream).expect("launch failed"));
    // The first launch gives 2 / 2 + 2, the second (2 + 3) / 2 + 4.
    assert_eq!(y.to_vec()?, [6.5, 6.5]);
    Ok(())
}

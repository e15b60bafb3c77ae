//! cuFFT in captures: transforms become nodes, and the graph keeps the plan, the workspace and the
//! memory.

use curium_driver::{AsRawStream as _, Graph};
use curium_fft::{Complex64, Error, Plan, Shape};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test};

use super::{cufft, plan};

/// Captures the transform of `input` to `output`.
fn captured(
    test: &TestDriver,
    input: &DeviceBuffer<Complex64>,
    output: &mut DeviceBuffer<Complex64>,
) -> TestResult<Graph> {
    let graph = Graph::capture(&test.context(), |scope| {
        Plan::<Complex64, Complex64>::new(&cufft(), scope, &Shape::new([4]))?.forward(input, output)
    });
    Ok(graph?)
}

/// A transform runs at each launch with the data of that time.
#[driver_test]
fn transform_reads_its_data_at_each_launch(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut input = DeviceBuffer::from_slice(&stream, &[Complex64::from(1.0); 4])?;
    let mut output = DeviceBuffer::<Complex64>::zeroed(&stream, 4)?;
    let mut executable = captured(test, &input, &mut output)?.instantiate()?;
    assert_eq!(
        output.to_vec()?[0],
        Complex64::from(0.0),
        "nothing runs while it is captured"
    );
    executable.launch(&stream)?;
    assert_eq!(output.to_vec()?[0], Complex64::from(4.0));
    input.fill(Complex64::from(2.0))?;
    executable.launch(&stream)?;
    assert_eq!(output.to_vec()?[0], Complex64::from(8.0));
    Ok(())
}

/// A plan that exists is used in a capture without being created again, and on another stream
/// afterwards.
#[driver_test]
fn plan_moves_to_a_capture_and_back(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut plan = Plan::<Complex64, Complex64>::new(&cufft(), &stream, &Shape::new([4]))?;
    let mut data = DeviceBuffer::from_slice(&stream, &[Complex64::from(1.0); 4])?;
    plan.forward_in_place(&mut data)?;
    let graph = Graph::capture(&test.context(), |scope| {
        plan.set_stream(scope)?;
        plan.inverse_in_place(&mut data)
    })?;
    let mut executable = graph.instantiate()?;
    executable.launch(&test.stream())?;
    assert_eq!(data.to_vec()?, [Complex64::from(4.0); 4]);
    let other = test.stream();
    plan.set_stream(&other)?;
    assert_eq!(plan.stream().as_raw(), other.as_raw());
    plan.forward_in_place(&mut data)?;
    assert_eq!(data.to_vec()?[0], Complex64::from(16.0));
    Ok(())
}

#[driver_test]
fn graph_keeps_plan_workspace_and_memory(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let input = DeviceBuffer::from_slice(&stream, &[Complex64::from(1.0); 4])?;
    let mut output = DeviceBuffer::<Complex64>::zeroed(&stream, 4)?;
    let mut plan_after_the_capture = None;
    let graph = Graph::capture(&test.context(), |scope| {
        let outcome = Plan::<Complex64, Complex64>::new(&cufft(), scope, &Shape::new([4]))?;
        plan_after_the_capture
            .insert(outcome)
            .forward(&input, &mut output)
    });
    let mut executable = graph?.instantiate()?;
    drop((input, plan_after_the_capture));
    // Memory that was freed would be reused by these, of the sizes that a workspace may have.
    let reused =
        |size: usize| DeviceBuffer::filled(&stream, size, 9_u8).expect("allocation failed");
    let others: Vec<_> = (4..16)
        .map(|shift| 1 << shift)
        .flat_map(|size| [reused(size), reused(size)])
        .collect();
    let mut other_plan: Plan<Complex64, Complex64> = plan(&stream, &Shape::new([64]));
    let other_input = DeviceBuffer::from_slice(&stream, &[Complex64::from(9.0); 64])?;
    let mut other_output = DeviceBuffer::<Complex64>::zeroed(&stream, 64)?;
    other_plan.forward(&other_input, &mut other_output)?;
    for _ in 0..2 {
        executable.launch(&stream)?;
    }
    assert_eq!(output.to_vec()?[0], Complex64::from(4.0));
    for other in others {
        assert_eq!(
            other.to_vec()?,
            vec![9; other.len()],
            "the transform writes its workspace"
        );
    }
    Ok(())
}

#[driver_test]
fn foreign_stream_plan_is_refused_in_a_capture(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut forward: Plan<Complex64, Complex64> = plan(&stream, &Shape::new([4]));
    let mut data = DeviceBuffer::from_slice(&stream, &[Complex64::from(1.0); 4])?;
    let refused = Graph::capture(&test.context(), |_| -> Result<(), Error> {
        forward.forward_in_place(&mut data)
    });
    let error = refused
        .map(drop)
        .expect_err("the graph would not contain it")
        .to_string();
    assert!(
        error.contains("Plan::forward_in_place") && error.contains("capture scope"),
        "{error}"
    );
    assert_eq!(data.to_vec()?, [Complex64::from(1.0); 4], "it did not run");
    Ok(())
}

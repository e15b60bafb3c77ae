//! cuFFT in captures: transforms become nodes, and the graph keeps the plan, the workspace and the memory.

use curium_driver::Graph;
use curium_fft::{Complex64, Error, Plan, Shape};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, on_driver};

use super::{cufft, plan};

/// Captures the transform of `input` to `output`.
fn captured(
    test: &TestDriver,
    input: &DeviceBuffer<Complex64>,
    output: &mut DeviceBuffer<Complex64>,
) -> Graph {
    let graph = Graph::capture(&test.context(), |scope| {
        Plan::<Complex64, Complex64>::new(&cufft(), scope, &Shape::new([4]))?.forward(input, output)
    });
    graph.expect("it is captured")
}

#[test]
fn transform_runs_at_each_launch_with_the_data_of_that_time() {
    on_driver(|test| {
        let stream = test.stream();
        let mut input =
            DeviceBuffer::from_slice(&stream, &[Complex64::from(1.0); 4]).expect("memory suffices");
        let mut output = DeviceBuffer::<Complex64>::zeroed(&stream, 4).expect("memory suffices");
        let mut executable = captured(test, &input, &mut output)
            .instantiate()
            .expect("the graph is valid");
        assert_eq!(
            output.to_vec().expect("it can be read")[0],
            Complex64::from(0.0),
            "nothing runs while it is captured"
        );
        executable.launch(&stream).expect("it can be launched");
        assert_eq!(
            output.to_vec().expect("it can be read")[0],
            Complex64::from(4.0)
        );
        input
            .as_slice_mut()
            .fill(Complex64::from(2.0))
            .expect("the fill is enqueued");
        executable.launch(&stream).expect("it can be launched");
        assert_eq!(
            output.to_vec().expect("it can be read")[0],
            Complex64::from(8.0)
        );
    });
}

#[test]
fn graph_keeps_plan_workspace_and_memory() {
    on_driver(|test| {
        let stream = test.stream();
        let input =
            DeviceBuffer::from_slice(&stream, &[Complex64::from(1.0); 4]).expect("memory suffices");
        let mut output = DeviceBuffer::<Complex64>::zeroed(&stream, 4).expect("memory suffices");
        let mut plan_after_the_capture = None;
        let graph = Graph::capture(&test.context(), |scope| {
            let made = Plan::<Complex64, Complex64>::new(&cufft(), scope, &Shape::new([4]))?;
            plan_after_the_capture
                .insert(made)
                .forward(&input, &mut output)
        });
        let mut executable = graph
            .expect("it is captured")
            .instantiate()
            .expect("the graph is valid");
        drop((input, plan_after_the_capture));
        // Memory that was freed would be reused by these, of the sizes that a workspace may have.
        let reused =
            |size: usize| DeviceBuffer::filled(&stream, size, 9_u8).expect("memory suffices");
        let others: Vec<_> = (4..16)
            .map(|shift| 1 << shift)
            .flat_map(|size| [reused(size), reused(size)])
            .collect();
        let mut other_plan: Plan<Complex64, Complex64> = plan(&stream, &Shape::new([64]));
        let other_input = DeviceBuffer::from_slice(&stream, &[Complex64::from(9.0); 64])
            .expect("memory suffices");
        let mut other_output =
            DeviceBuffer::<Complex64>::zeroed(&stream, 64).expect("memory suffices");
        other_plan
            .forward(&other_input, &mut other_output)
            .expect("the memory fits");
        for _ in 0..2 {
            executable.launch(&stream).expect("every object is live");
        }
        assert_eq!(
            output.to_vec().expect("it can be read")[0],
            Complex64::from(4.0)
        );
        for other in others {
            assert_eq!(
                other.to_vec().expect("it can be read"),
                vec![9; other.len()],
                "the transform writes its workspace"
            );
        }
    });
}

#[test]
fn plan_of_another_stream_is_refused_in_a_capture() {
    on_driver(|test| {
        let stream = test.stream();
        let mut forward: Plan<Complex64, Complex64> = plan(&stream, &Shape::new([4]));
        let mut data =
            DeviceBuffer::from_slice(&stream, &[Complex64::from(1.0); 4]).expect("memory suffices");
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
        assert_eq!(
            data.to_vec().expect("it can be read"),
            [Complex64::from(1.0); 4],
            "it did not run"
        );
    });
}

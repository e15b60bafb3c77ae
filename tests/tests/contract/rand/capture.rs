//! cuRAND in captures: operations become nodes, and the graph keeps the generator and the memory.

use curium_driver::Graph;
use curium_memory::DeviceBuffer;
use curium_rand::{Generator, Philox4x32, Sobol32};
use curium_sim::Config;
use curium_tests::{on_driver, on_simulator};

use super::{curand, seeded};

#[test]
fn graph_keeps_the_generator_and_the_memory() {
    on_driver(|test| {
        let stream = test.stream();
        let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 256).expect("memory suffices");
        let mut other = DeviceBuffer::<f32>::zeroed(&stream, 256).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            let mut generator = Generator::<Philox4x32>::seeded(&curand(), scope, 1)?;
            generator.uniform(&mut numbers)?;
            generator.uniform(&mut other)
        });
        let mut executable = graph.expect("it is captured").instantiate().expect("the graph is right");
        assert_eq!(numbers.to_vec().expect("it can be read"), [0.0; 256], "nothing runs while it is captured");
        drop(other);
        executable.launch(&stream).expect("it can be launched");
        executable.launch(&stream).expect("it can be launched");
        let drawn = numbers.to_vec().expect("it can be read");
        assert!(drawn.iter().all(|number| *number > 0.0 && *number <= 1.0), "{drawn:?}");
    });
}

#[test]
fn captured_numbers_are_those_of_the_seed() {
    on_driver(|test| {
        let stream = test.stream();
        let mut numbers = DeviceBuffer::<u32>::zeroed(&stream, 256).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            Generator::<Philox4x32>::seeded(&curand(), scope, 1)?.bits(&mut numbers)
        });
        let mut executable = graph.expect("it is captured").instantiate().expect("the graph is right");
        executable.launch(&stream).expect("it can be launched");
        let mut expected = DeviceBuffer::<u32>::zeroed(&stream, 256).expect("memory suffices");
        seeded::<Philox4x32>(&stream, 1).bits(&mut expected).expect("the length fits");
        assert_eq!(numbers.to_vec().expect("it can be read"), expected.to_vec().expect("it can be read"));
    });
}

#[test]
fn generator_of_another_stream_is_refused_in_a_capture() {
    on_driver(|test| {
        let stream = test.stream();
        let mut generator = seeded::<Philox4x32>(&stream, 1);
        let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 4).expect("memory suffices");
        let refused = Graph::capture(&test.context(), |_| generator.uniform(&mut numbers));
        let error = refused.map(drop).expect_err("the graph would miss it").to_string();
        assert!(error.contains("Generator::uniform") && error.contains("capture scope"), "{error}");
        assert_eq!(numbers.to_vec().expect("it can be read"), [0.0; 4], "it did not run");
    });
}

#[test]
fn launches_wait_for_other_streams() {
    on_simulator(Config::new().with_race_checks(true), |test, simulator| {
        let (stream, other) = (test.stream(), test.stream());
        let mut points = DeviceBuffer::<f32>::zeroed(&stream, 300).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            Generator::<Sobol32>::with_dimensions(&curand(), scope, 3)?.uniform(&mut points)
        });
        let mut executable = graph.expect("it is captured").instantiate().expect("the graph is right");
        executable.launch(&other).expect("it can be launched");
        points.as_slice_mut().fill(2.0).expect("the fill is enqueued");
        executable.launch(&other).expect("it can be launched");
        assert!(points.to_vec().expect("it can be read").iter().all(|number| *number <= 1.0));
        assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    });
}

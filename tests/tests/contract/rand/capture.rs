//! cuRAND in captures: operations become nodes, and the graph keeps the generator and the memory.

use curium_driver::Graph;
use curium_memory::DeviceBuffer;
use curium_rand::{Generator, Philox4x32, Sobol32};
use curium_sim::Config;
use curium_tests::{on_driver, on_simulator};

use super::{curand, seeded, with_dimensions};

#[test]
fn graph_keeps_the_generator_and_the_memory() {
    on_driver(|test| {
        let stream = test.stream();
        let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 256).expect("memory suffices");
        let mut other = DeviceBuffer::<f32>::zeroed(&stream, 256).expect("memory suffices");
        let mut generator = seeded::<Philox4x32>(&stream, 1);
        let graph = Graph::capture(stream.context(), |scope| {
            generator.set_stream(scope)?;
            generator.uniform(&mut numbers)?;
            generator.uniform(&mut other)
        });
        let mut executable = graph
            .expect("it is captured")
            .instantiate()
            .expect("the graph is valid");
        assert_eq!(
            numbers.to_vec().expect("it can be read"),
            [0.0; 256],
            "nothing runs while it is captured"
        );
        drop((other, generator));
        executable.launch(&stream).expect("it can be launched");
        executable.launch(&stream).expect("it can be launched");
        let drawn = numbers.to_vec().expect("it can be read");
        assert!(
            drawn.iter().all(|number| *number > 0.0 && *number <= 1.0),
            "{drawn:?}"
        );
    });
}

#[test]
fn captured_numbers_are_those_of_the_seed() {
    on_driver(|test| {
        let stream = test.stream();
        let mut numbers = DeviceBuffer::<u32>::zeroed(&stream, 256).expect("memory suffices");
        let mut generator = seeded::<Philox4x32>(&stream, 1);
        let graph = Graph::capture(stream.context(), |scope| {
            generator.set_stream(scope)?;
            generator.bits(&mut numbers)
        });
        let mut executable = graph
            .expect("it is captured")
            .instantiate()
            .expect("the graph is valid");
        executable.launch(&stream).expect("it can be launched");
        let mut expected = DeviceBuffer::<u32>::zeroed(&stream, 256).expect("memory suffices");
        seeded::<Philox4x32>(&stream, 1)
            .bits(&mut expected)
            .expect("the length fits");
        assert_eq!(
            numbers.to_vec().expect("it can be read"),
            expected.to_vec().expect("it can be read")
        );
    });
}

#[test]
fn generator_of_another_stream_is_refused_in_a_capture() {
    on_driver(|test| {
        let stream = test.stream();
        let mut generator = seeded::<Philox4x32>(&stream, 1);
        let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 4).expect("memory suffices");
        let refused = Graph::capture(&test.context(), |_| generator.uniform(&mut numbers));
        let error = refused
            .map(drop)
            .expect_err("the graph would not contain it")
            .to_string();
        assert!(
            error.contains("Generator::uniform") && error.contains("capture scope"),
            "{error}"
        );
        assert_eq!(
            numbers.to_vec().expect("it can be read"),
            [0.0; 4],
            "it did not run"
        );
    });
}

#[test]
fn launches_wait_for_other_streams() {
    on_simulator(Config::new().with_race_checks(true), |test, simulator| {
        let (stream, other) = (test.stream(), test.stream());
        let mut points = DeviceBuffer::<f32>::zeroed(&stream, 300).expect("memory suffices");
        let mut generator = with_dimensions::<Sobol32>(&stream, 3);
        let graph = Graph::capture(stream.context(), |scope| {
            generator.set_stream(scope)?;
            generator.uniform(&mut points)
        });
        let mut executable = graph
            .expect("it is captured")
            .instantiate()
            .expect("the graph is valid");
        executable.launch(&other).expect("it can be launched");
        points
            .as_slice_mut()
            .fill(2.0)
            .expect("the fill is enqueued");
        executable.launch(&other).expect("it can be launched");
        assert!(
            points
                .to_vec()
                .expect("it can be read")
                .iter()
                .all(|number| *number <= 1.0)
        );
        assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    });
}

#[test]
fn generator_cannot_be_created_or_changed_in_a_capture() {
    on_driver(|test| {
        let stream = test.stream();
        let mut generator = seeded::<Philox4x32>(&stream, 1);
        let created = Graph::capture(stream.context(), |scope| {
            Generator::<Philox4x32>::seeded(&curand(), scope, 1).map(drop)
        });
        let error = created
            .map(drop)
            .expect_err("its state cannot be written")
            .to_string();
        assert!(error.contains("Generator::seeded"), "{error}");
        let changed = Graph::capture(stream.context(), |scope| {
            generator.set_stream(scope)?;
            generator.set_seed(2)
        });
        let error = changed
            .map(drop)
            .expect_err("its state cannot be written")
            .to_string();
        assert!(error.contains("Generator::set_seed"), "{error}");
        generator
            .set_stream(&stream)
            .expect("the capture has ended");
        let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 4).expect("memory suffices");
        generator
            .uniform(&mut numbers)
            .expect("the generator is unchanged");
    });
}

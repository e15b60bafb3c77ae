//! cuRAND in captures: operations become nodes, and the graph keeps the generator and the memory.

use curium_driver::Graph;
use curium_memory::DeviceBuffer;
use curium_rand::{Generator, Philox4x32, Sobol32};
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::{curand, seeded, with_dimensions};

#[driver_test]
fn graph_keeps_the_generator_and_the_memory(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 256)?;
    let mut other = DeviceBuffer::<f32>::zeroed(&stream, 256)?;
    let mut generator = seeded::<Philox4x32>(&stream, 1)?;
    let graph = Graph::capture(stream.context(), |scope| {
        generator.set_stream(scope)?;
        generator.uniform(&mut numbers)?;
        generator.uniform(&mut other)
    });
    let mut executable = graph?.instantiate()?;
    assert_eq!(
        numbers.to_vec()?,
        [0.0; 256],
        "nothing runs while it is captured"
    );
    drop((other, generator));
    executable.launch(&stream)?;
    executable.launch(&stream)?;
    let drawn = numbers.to_vec()?;
    assert!(
        drawn.iter().all(|number| *number > 0.0 && *number <= 1.0),
        "{drawn:?}"
    );
    Ok(())
}

#[driver_test]
fn captured_numbers_follow_the_seed(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut numbers = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
    let mut generator = seeded::<Philox4x32>(&stream, 1)?;
    let graph = Graph::capture(stream.context(), |scope| {
        generator.set_stream(scope)?;
        generator.bits(&mut numbers)
    });
    let mut executable = graph?.instantiate()?;
    executable.launch(&stream)?;
    let mut expected = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
    seeded::<Philox4x32>(&stream, 1)?.bits(&mut expected)?;
    assert_eq!(numbers.to_vec()?, expected.to_vec()?);
    Ok(())
}

/// A generator of another stream is refused in a capture.
#[driver_test]
fn foreign_stream_generator_is_refused_in_a_capture(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut generator = seeded::<Philox4x32>(&stream, 1)?;
    let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 4)?;
    let refused = Graph::capture(&test.context(), |_| generator.uniform(&mut numbers));
    let error = refused
        .map(drop)
        .expect_err("the graph would not contain it")
        .to_string();
    assert!(
        error.contains("Generator::uniform") && error.contains("capture scope"),
        "{error}"
    );
    assert_eq!(numbers.to_vec()?, [0.0; 4], "it did not run");
    Ok(())
}

#[simulator_test(Config::new().with_race_checks(true))]
fn launches_wait_for_other_streams(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut points = DeviceBuffer::<f32>::zeroed(&stream, 300)?;
    let mut generator = with_dimensions::<Sobol32>(&stream, 3)?;
    let graph = Graph::capture(stream.context(), |scope| {
        generator.set_stream(scope)?;
        generator.uniform(&mut points)
    });
    let mut executable = graph?.instantiate()?;
    executable.launch(&other)?;
    points.fill(2.0)?;
    executable.launch(&other)?;
    assert!(points.to_vec()?.iter().all(|number| *number <= 1.0));
    assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    Ok(())
}

/// A generator cannot be created or changed in a capture.
#[driver_test]
fn generator_is_not_changed_in_a_capture(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut generator = seeded::<Philox4x32>(&stream, 1)?;
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
    generator.set_stream(&stream)?;
    let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 4)?;
    generator.uniform(&mut numbers)?;
    Ok(())
}

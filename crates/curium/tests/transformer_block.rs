//! The transformer block of the example agrees with a reference in f64.

#[path = "../examples/17_transformer_block/block/mod.rs"]
mod block;
#[path = "../examples/17_transformer_block/reference.rs"]
mod reference;

use std::thread;

use curium::blas::lt::BlasLt;
use curium::nccl::Communicator;
use curium::prelude::*;
use curium_sim::{Config, Simulator};

use self::block::{Block, Result, Sample, Shape, Tuning};
use self::reference::{Reference, error};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The bound of the error of the output, relative to its largest element: it is the sum of the
/// input and two results of layers, each of which is rounded to bf16.
const OUTPUT_BOUND: f64 = 0.01;
/// The bound of the errors of gradients, which pass through up to seven results that are rounded.
const GRADIENT_BOUND: f64 = 0.02;

const SHAPE: Shape = Shape {
    batch: 2,
    sequence: 16,
    width: 128,
    heads: 2,
    is_causal: true,
};

/// Replays a step, and compares all results with the reference.
#[track_caller]
fn assert_agrees(shape: Shape, tuning: Tuning) {
    let errors =
        compared(shape, tuning).unwrap_or_else(|error| panic!("{shape:?}, {tuning:?}: {error}"));
    for (name, error) in errors {
        let bound = if name == "output" {
            OUTPUT_BOUND
        } else {
            GRADIENT_BOUND
        };
        assert!(
            error <= bound,
            "{shape:?}, {tuning:?}: the error of {name} is {error}, and may be {bound}"
        );
    }
}

/// Returns a driver that reports reads of memory that was not written, and work that the graph does
/// not order.
fn driver(devices: u32) -> Result<Driver> {
    let config = Config::new()
        .with_devices(devices)
        .with_uninitialized_checks(true)
        .with_race_checks(true);
    Ok(Simulator::new(config)?.driver()?)
}

/// Returns the errors of all results.
fn compared(shape: Shape, tuning: Tuning) -> Result<Vec<(&'static str, f64)>> {
    rank_errors(
        &driver(1)?.device(0)?.primary_context()?,
        shape,
        tuning,
        None,
    )
}

/// Returns the errors of all results of a rank, which averages the gradients of parameters over its
/// communicator.
fn rank_errors(
    context: &Context,
    shape: Shape,
    tuning: Tuning,
    communicator: Option<Communicator>,
) -> Result<Vec<(&'static str, f64)>> {
    let stream = context.stream()?;
    let lt = BlasLt::new(&curium_sim_libraries::cublaslt(), context)?;
    let (rank, ranks) = communicator.as_ref().map_or((0, 1), |communicator| {
        (communicator.rank(), communicator.size())
    });
    let mut block = Block::new(&lt, &stream, shape, tuning, &Sample::new(shape, rank))?;
    if let Some(communicator) = communicator {
        block = block.with_ranks(communicator);
    }
    let mut graph = block.capture(context, true)?.instantiate()?;
    // The second replay overwrites the results of the first.
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    let reference = Reference::averaged(shape, rank, ranks);
    let mut errors = vec![
        ("output", error(&block.output.to_vec()?, &reference.output)),
        (
            "input",
            error(&block.input_gradient.to_vec()?, &reference.input_gradient),
        ),
    ];
    let expected = reference.parameter_gradients.named();
    for ((name, found), (_, expected)) in
        block.parameter_gradients.named().into_iter().zip(expected)
    {
        errors.push((name, error(&found.to_vec()?, expected)));
    }
    Ok(errors)
}

/// Output and gradients agree with the reference.
#[test]
fn output_matches_the_reference() {
    assert_agrees(SHAPE, Tuning::Expected);
    assert_agrees(
        Shape {
            is_causal: false,
            ..SHAPE
        },
        Tuning::Expected,
    );
}

#[test]
fn gradients_are_averaged() -> TestResult {
    let driver = driver(2)?;
    let contexts = [0, 1].map(|device| {
        driver
            .device(device)
            .and_then(|device| device.primary_context())
    });
    let contexts = contexts.map(|context| context.expect("there are two devices"));
    let ranks = Communicator::all(&curium_sim_libraries::nccl(), &contexts)?;
    thread::scope(|scope| {
        for (context, communicator) in contexts.iter().zip(ranks) {
            scope.spawn(move || {
                let errors = rank_errors(context, SHAPE, Tuning::Expected, Some(communicator))
                    .expect("computation failed");
                assert_eq!(errors.len(), 14);
                for (name, error) in errors {
                    assert!(error <= GRADIENT_BOUND, "the error of {name} is {error}");
                }
            });
        }
    });
    Ok(())
}

#[test]
fn partial_tiles_agree() {
    // Tiles have 128 and 64 positions; warps have bands of 16.
    for sequence in [1, 17, 65, 130] {
        for is_causal in [true, false] {
            let shape = Shape {
                batch: 1,
                sequence,
                width: 64,
                heads: 1,
                is_causal,
            };
            assert_agrees(shape, Tuning::Expected);
        }
    }
}

#[test]
fn batches_match_the_reference() {
    assert_agrees(
        Shape {
            batch: 3,
            sequence: 33,
            ..SHAPE
        },
        Tuning::Expected,
    );
}

#[test]
fn partial_groups_agree() {
    assert_agrees(
        Shape {
            batch: 1,
            sequence: 8,
            width: 320,
            heads: 5,
            is_causal: true,
        },
        Tuning::Expected,
    );
}

/// Measurements on the simulator choose any of the algorithms, all of which agree.
#[test]
fn measured_algorithms_agree() {
    assert_agrees(
        Shape {
            batch: 1,
            sequence: 8,
            ..SHAPE
        },
        Tuning::Measured,
    );
}

#[test]
fn unsupported_sizes_are_refused() {
    for (shape, part) in [
        (
            Shape { heads: 3, ..SHAPE },
            "the width of a head must be 64",
        ),
        (
            Shape { heads: 8, ..SHAPE },
            "the width of a head must be 64",
        ),
        (
            Shape {
                width: 1088,
                heads: 17,
                ..SHAPE
            },
            "at most 1024",
        ),
        (Shape { heads: 0, ..SHAPE }, "a size is 0"),
        (
            Shape {
                sequence: 0,
                ..SHAPE
            },
            "a size is 0",
        ),
    ] {
        let error = compared(shape, Tuning::Expected).expect_err("the shape is not supported");
        assert!(error.to_string().contains(part), "{error}");
    }
}

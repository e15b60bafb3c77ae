//! The transformer block of the example agrees with a reference in f64.

#[path = "../examples/17_transformer_block/block/mod.rs"]
mod block;
#[path = "../examples/17_transformer_block/reference.rs"]
mod reference;

use curium::blas::lt::BlasLt;
use curium::prelude::*;
use curium_sim::{Config, Simulator};

use self::block::{Block, Options, Result, Sample, Shape, Tuning};
use self::reference::{Reference, error};

/// The bound of the error of the output, relative to its largest element: it is the sum of the input and two results of layers, each of
/// which is rounded to bf16.
const OF_OUTPUT: f64 = 0.01;
/// The bound of the errors of gradients, which pass through up to seven results that are rounded.
const OF_GRADIENTS: f64 = 0.02;

const SHAPE: Shape = Shape { batch: 2, sequence: 16, width: 64, heads: 4, is_causal: true };

const OPTIONS: Options = Options { group: 8, parts: 1, is_forked: true, tuning: Tuning::Expected };

/// Replays a step, and compares all results with the reference.
#[track_caller]
fn assert_agrees(shape: Shape, options: Options) {
    let found = compared(shape, options).unwrap_or_else(|error| panic!("{shape:?}, {options:?}: {error}"));
    for (name, error) in found {
        let bound = if name == "output" { OF_OUTPUT } else { OF_GRADIENTS };
        assert!(error <= bound, "{shape:?}, {options:?}: the error of {name} is {error}, and may be {bound}");
    }
}

/// Returns the errors of all results.
fn compared(shape: Shape, options: Options) -> Result<Vec<(&'static str, f64)>> {
    // Reports reads of memory that was not written, and work that the graph does not order.
    let config = Config::new().with_unwritten_checks(true).with_race_checks(true);
    let driver = Simulator::new(config)?.driver::<Driver>()?;
    let context = driver.device(0)?.primary_context()?;
    let stream = context.stream()?;
    let lt = BlasLt::new(&curium_sim_libraries::cublaslt(), &context)?;
    let sample = Sample::new(shape);
    let mut block = Block::new(&lt, &stream, shape, options, &sample)?;
    let mut graph = block.capture(&context, true)?.instantiate()?;
    // The second replay overwrites the results of the first.
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    let reference = Reference::new(shape, &sample);
    let mut errors = vec![
        ("output", error(&block.output.to_vec()?, &reference.output)),
        ("input", error(&block.input_gradient.to_vec()?, &reference.input_gradient)),
    ];
    let expected = reference.parameter_gradients.named();
    for ((name, found), (_, expected)) in block.parameter_gradients.named().into_iter().zip(expected) {
        errors.push((name, error(&found.to_vec()?, expected)));
    }
    Ok(errors)
}

#[test]
fn output_and_gradients_agree_with_the_reference() {
    assert_agrees(SHAPE, OPTIONS);
    assert_agrees(Shape { is_causal: false, ..SHAPE }, OPTIONS);
}

#[test]
fn attention_by_groups_of_heads_and_work_on_one_stream_have_the_same_results() {
    let options = Options { group: 2, is_forked: false, ..OPTIONS };
    assert_eq!(
        compared(SHAPE, options).expect("it can be computed"),
        compared(SHAPE, OPTIONS).expect("it can be computed")
    );
}

#[test]
fn attention_by_parts_of_the_sequence_agrees_with_the_reference() {
    // The parts of the scores that the mask hides have no value, and the simulator reports reads of them.
    assert_agrees(SHAPE, Options { group: 4, parts: 2, tuning: Tuning::Measured, ..OPTIONS });
    let shape = Shape { batch: 1, sequence: 96, heads: 2, ..SHAPE };
    assert_agrees(shape, Options { group: 2, parts: 4, ..OPTIONS });
}

#[test]
fn rows_of_several_groups_of_elements_and_those_that_end_within_a_group_agree_with_the_reference() {
    let scores = Shape { batch: 1, sequence: 264, width: 8, heads: 1, is_causal: true };
    assert_agrees(scores, Options { group: 1, ..OPTIONS });
    let activations = Shape { batch: 1, sequence: 8, width: 272, heads: 1, is_causal: true };
    assert_agrees(activations, Options { group: 1, ..OPTIONS });
}

#[test]
fn sizes_that_the_kernels_do_not_support_are_refused() {
    let (few, none) = (Options { group: 3, ..OPTIONS }, Options { parts: 0, ..OPTIONS });
    let parts = Options { parts: 4, ..OPTIONS };
    for (shape, options, part) in [
        (Shape { sequence: 12, ..SHAPE }, OPTIONS, "multiple of 8 positions"),
        (SHAPE, parts, "multiple of 8 positions"),
        (Shape { sequence: 32, is_causal: false, ..SHAPE }, parts, "for a causal mask"),
        (Shape { width: 72, ..SHAPE }, OPTIONS, "multiple of 8"),
        (Shape { sequence: 2056, ..SHAPE }, OPTIONS, "at most 2048"),
        (Shape { heads: 0, ..SHAPE }, OPTIONS, "a size is 0"),
        (SHAPE, none, "a size is 0"),
        (SHAPE, few, "group 3 does not divide"),
    ] {
        let error = compared(shape, options).expect_err("the shape is not supported");
        assert!(error.to_string().contains(part), "{error}");
    }
}

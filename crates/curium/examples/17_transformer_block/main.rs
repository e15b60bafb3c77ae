//! A transformer block, forward and backward, in bf16: products with cuBLASLt, own kernels for
//! attention and normalization, and one graph.
//!
//! A launcher, as in `curium run --ranks 2 -- 17_transformer_block`, gives each rank a GPU and a
//! sample of its own, and the ranks average their gradients within the graph.
//!
//! Without `--bench`, compares the output and all gradients with a reference on the CPU. With it,
//! measures steps.
//!
//! Options: `--batch`, `--sequence`, `--width` and `--heads`, with 64 elements in each head;
//! `--full` for attention without a causal mask; `--tune` to measure the algorithms of the
//! products; `--device`.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod bench;
mod block;
#[path = "../device/mod.rs"]
mod device;
mod reference;

use curium::blas::lt::{BlasLt, CuBlasLt};
use curium::nccl::{self, Communicator, CommunicatorOptions, Nccl, Rendezvous};

use self::block::{Block, Result, Sample, Shape, Tuning};
use self::reference::{Reference, error};

/// The bound of the error of each result, relative to its largest element.
const BOUND: f64 = 0.02;

fn main() -> Result<()> {
    let shape = Shape {
        batch: number("--batch")?.unwrap_or(2),
        sequence: number("--sequence")?.unwrap_or(16),
        width: number("--width")?.unwrap_or(128),
        heads: number("--heads")?.unwrap_or(2),
        is_causal: !has("--full"),
    };
    let tuning = if has("--tune") {
        Tuning::Measured
    } else {
        Tuning::Expected
    };
    let mut rendezvous = match Rendezvous::from_environment() {
        Ok(rendezvous) => Some(rendezvous),
        Err(nccl::RendezvousError::NoLauncher) => None,
        Err(error) => return Err(error.into()),
    };
    let rank = rendezvous.as_ref().map_or(0, Rendezvous::rank);
    let device = rendezvous.as_ref().map_or(0, Rendezvous::local_rank);
    let ranks = rendezvous.as_ref().map_or(1, Rendezvous::world_size);

    let context = device::driver()?.device(device)?.primary_context()?;
    let name = context.device().name()?;
    let is_simulated = name.contains("Simulator");
    let library = if is_simulated {
        curium_sim_libraries::cublaslt()
    } else {
        CuBlasLt::load()?
    };
    let lt = BlasLt::new(&library, &context)?;
    let stream = context.stream()?;
    let mut block = Block::new(&lt, &stream, shape, tuning, &Sample::new(shape, rank))?;
    if let Some(rendezvous) = &mut rendezvous {
        let library = if is_simulated {
            curium_sim_libraries::nccl()
        } else {
            Nccl::load()?
        };
        let ranks =
            Communicator::exchanged(&library, &context, rendezvous, CommunicatorOptions::new())?;
        block = block.with_ranks(ranks);
    }
    if has("--bench") {
        println!("rank {rank}: {name}, {library:?}, {shape:?}, {tuning:?}");
        return bench::run(&mut block, &context, &stream, shape);
    }
    block
        .capture(&context, true)?
        .instantiate()?
        .launch(&stream)?;
    compare(&block, &Reference::averaged(shape, rank, ranks))
}

/// Compares all results with the reference.
fn compare(block: &Block, reference: &Reference) -> Result<()> {
    let gradients = block
        .parameter_gradients
        .named()
        .into_iter()
        .zip(reference.parameter_gradients.named());
    let gradients = gradients.map(|((name, found), (_, expected))| (name, found, expected));
    let results = [
        ("output", &block.output, &reference.output),
        ("input", &block.input_gradient, &reference.input_gradient),
    ];
    for (name, found, expected) in results.into_iter().chain(gradients) {
        let error = error(&found.to_vec()?, expected);
        println!("{name:18} error {error:.5}");
        if error.is_nan() || error > BOUND {
            return Err(format!("the error of {name} exceeds {BOUND}").into());
        }
    }
    println!("the output and 13 gradients agree with the reference");
    Ok(())
}

fn has(option: &str) -> bool {
    std::env::args().any(|argument| argument == option)
}

fn number(option: &str) -> Result<Option<usize>> {
    let text = std::env::args()
        .skip_while(|argument| argument != option)
        .nth(1);
    text.map(|text| {
        text.parse()
            .map_err(|_| format!("{option} {text}: not a number").into())
    })
    .transpose()
}

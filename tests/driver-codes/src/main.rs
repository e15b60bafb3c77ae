//! Compares the error codes of the driver API on the simulator and on a GPU.
//!
//! `driver-codes run LOG` makes random sequences of calls of every function with valid and invalid
//! arguments, and writes each call and its code to a log. A seed determines the sequences: no
//! result changes the calls that follow. `CURIUM_TEST_DRIVER=cuda` selects this machine's driver
//! instead of the simulator. `driver-codes compare SIMULATOR GPU` prints the differences of two
//! logs. `driver-codes digest GPU DIGEST` keeps only the codes of a GPU: the digests, such as
//! `h200-1.digest` of seed 1, are compared by the tests.
//!
//! Arguments are made for the types in the bindings, so a new function is covered without an entry
//! in a list. What the types do not contain is listed in `knowledge.rs` and `records.rs`.
//! Differences that stay are listed in `expected.txt`, with their reasons.
//!
//! Invalid arguments may crash a driver or make it wait forever. Each sequence therefore runs in
//! its own process with a time limit, and a line of the log begins before its call. A crash or hang
//! of a GPU's driver is no difference; the rest of the sequence is not compared.

mod bindings;
mod call;
mod compare;
mod digest;
mod images;
mod knowledge;
mod log;
mod plan;
mod records;
mod run;
mod sequence;
mod value;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

#[derive(Parser)]
#[command(about = "Compares the error codes of the driver API on the simulator and on a GPU.")]
enum Arguments {
    /// Run sequences, and write their log.
    Run(run::Run),
    /// Compare the log of the simulator with that of a GPU, or with its digest.
    Compare(compare::Compare),
    /// Digest the log of a GPU.
    Digest(digest::Digest),
    /// Run one sequence in this process.
    #[command(hide = true)]
    Sequence {
        seed: u64,
        number: u64,
        calls: usize,
    },
}

fn main() -> Result<ExitCode> {
    match Arguments::parse() {
        Arguments::Run(run) => run.run()?,
        Arguments::Digest(digest) => digest.run()?,
        Arguments::Compare(compare) => {
            if !compare.run()? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Arguments::Sequence {
            seed,
            number,
            calls,
        } => sequence::run(seed, number, calls)?,
    }
    Ok(ExitCode::SUCCESS)
}

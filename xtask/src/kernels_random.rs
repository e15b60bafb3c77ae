//! `cargo xtask kernels-random`: runs random kernels in Rust on the simulator, and compares them
//! with an interpreter.

use anyhow::{Result, ensure};

use crate::cargo;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The number of programs.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// The seed of the first program; each has the next one. A program that fails is repeated with
    /// its seed and `--count 1`.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The number of wrong programs, which the compiler must refuse.
    #[arg(long, default_value_t = 50)]
    wrong: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let work = cargo::target_folder()?.join("kernels-random");
    let status = cargo::cargo()
        .args(["run", "--package", "curium-test-kernels-random", "--"])
        .arg(format!("--count={}", options.count))
        .arg(format!("--seed={}", options.seed))
        .arg(format!("--wrong={}", options.wrong))
        .arg("--work")
        .arg(work)
        .status()?;
    ensure!(status.success(), "the random kernels ended with {status}");
    Ok(())
}

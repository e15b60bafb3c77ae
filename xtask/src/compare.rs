//! `cargo xtask compare`: measures Curium against other CUDA crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::{cargo, sim};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measure only benchmarks whose IDs contain this text, such as `launch`.
    filter: Option<String>,
    /// Take fewer samples of each benchmark.
    #[arg(long)]
    quick: bool,
    /// Run on the simulator with fewer samples: this checks that everything works, while the times
    /// are meaningless.
    #[arg(long)]
    simulator: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut compare = Command::new(build()?);
    compare.args(&options.filter);
    if options.simulator {
        sim::run(&sim::Options::default())?;
        compare.env("LD_LIBRARY_PATH", cargo::target_folder()?.join("sim"));
    }
    if options.simulator || options.quick {
        compare.arg("--quick");
    }
    let status = compare.status().context("the comparison cannot be run")?;
    ensure!(status.success(), "the comparison ended with {status}");
    Ok(())
}

/// Builds the program. It is outside the workspace, because the other crates are not dependencies
/// of Curium.
pub(crate) fn build() -> Result<PathBuf> {
    let folder = cargo::target_folder()?.join("compare");
    let toolkit = folder.join("toolkit");
    link_stub(&toolkit.join("lib64/libcuda.so"))?;
    let mut cargo = cargo::cargo();
    cargo
        .current_dir(crate::root().join("outside/compare"))
        .args(["build", "--release", "--locked"]);
    cargo
        .env("CUDA_LIBRARY_PATH", toolkit)
        .env("CARGO_TARGET_DIR", &folder);
    let status = cargo.status().context("cargo cannot be run")?;
    ensure!(status.success(), "the comparison does not build");
    Ok(folder.join("release/compare"))
}

/// Builds the stub library that one of the crates requires at link time: the driver's name and
/// functions without effect.
fn link_stub(path: &Path) -> Result<()> {
    let folder = path.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder)?;
    let functions: String = sim::functions()?
        .iter()
        .map(|(name, _)| format!("void {name}(void) {{}}\n"))
        .collect();
    let source = folder.join("stub.c");
    if fs::read_to_string(&source).is_ok_and(|text| text == functions) && path.exists() {
        return Ok(());
    }
    fs::write(&source, functions)?;
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler
        .args(["-shared", "-fno-builtin", "-Wl,-soname,libcuda.so.1", "-o"])
        .arg(path)
        .arg(&source);
    let status = compiler.stdin(Stdio::null()).status();
    let status =
        status.with_context(|| format!("{} cannot be run", compiler.get_program().display()))?;
    ensure!(status.success(), "the compiler ended with {status}");
    Ok(())
}

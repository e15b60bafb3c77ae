//! `cargo xtask outside`: other projects' programs, on the simulator's `libcuda.so.1`.
//!
//! Each program is a published package. First a small program in this repository computes with it
//! and checks the results. Then the package's own tests run, if it contains them, or tests in this
//! repository. Their results are compared with `outside/expected.toml`.

mod cuda_python;
mod cupy;
mod drjit;
mod expected;
mod halide;
mod llama;
mod nccl4py;
mod numba;
mod nvcc;
mod page;
mod pycuda;
mod pytest;
mod python;
mod quadrants;
mod repository;
mod rust;
mod tinygrad;
mod triton;
mod tvm;
mod warp;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use comfy_table::{Table, presets};

use self::expected::{Expected, Outcomes};
use self::python::{
    CUDA_12, CUDA_13, CUDA_PYTHON, DRJIT, Environment, HALIDE, LLAMA, NCCL, QUADRANTS, TRITON, TVM,
};
use self::repository::Repository;
use self::tinygrad::Renderer;
use self::triton::Device;
use crate::{cargo, sim, stale};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run these programs only.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Run the small programs only, and leave the packages' own tests out.
    #[arg(long)]
    quick: bool,
    /// Continue an interrupted run: tests that pytest ran to their end are not run again.
    #[arg(long, conflicts_with = "quick")]
    resume: bool,
    /// Write `docs/outside.md`, the page of the expected results, and run nothing.
    #[arg(long, conflicts_with_all = ["names", "quick", "resume"])]
    page: bool,
}

/// A package that is run on the simulator.
struct Program {
    name: &'static str,
    /// The packages in Python that the program needs.
    environment: Environment,
    /// Runs the small program of this repository.
    run: fn(&Folder) -> Result<()>,
    /// Runs the package's own tests, or tests of this repository.
    test: Option<Test>,
    /// The repository with the tests, if the package leaves them out.
    repository: Option<&'static Repository>,
}

type Test = fn(&Folder, &Expected) -> Result<Outcomes>;

const fn program(
    name: &'static str,
    environment: Environment,
    run: fn(&Folder) -> Result<()>,
    test: Option<Test>,
) -> Program {
    Program {
        name,
        environment,
        run,
        test,
        repository: None,
    }
}

impl Program {
    const fn with_tests_in(self, repository: &'static Repository) -> Self {
        Self {
            repository: Some(repository),
            ..self
        }
    }
}

static PROGRAMS: [Program; 19] = [
    program(
        "cuda-bindings",
        CUDA_PYTHON,
        |folder| python::run(folder, "bindings.py"),
        Some(cuda_python::test_bindings),
    )
    .with_tests_in(&repository::CUDA_PYTHON),
    program(
        "cuda-core",
        CUDA_PYTHON,
        |folder| python::run(folder, "core.py"),
        Some(cuda_python::test_core),
    )
    .with_tests_in(&repository::CUDA_PYTHON),
    program("drjit", DRJIT, drjit::run, Some(drjit::test)).with_tests_in(&repository::DRJIT),
    program("nccl4py", NCCL, nccl4py::run, Some(nccl4py::test)),
    program(
        "numba-cuda",
        CUDA_13,
        |folder| python::run(folder, "arrays.py"),
        Some(numba::test),
    ),
    program(
        "cudarc",
        CUDA_13,
        |folder| rust::run(folder, "cudarc"),
        Some(rust::test_cudarc),
    ),
    program(
        "cust",
        CUDA_13,
        |folder| rust::run(folder, "cust"),
        Some(rust::test_cust),
    ),
    program("nvcc", CUDA_13, nvcc::run, Some(nvcc::test)),
    program("pycuda", CUDA_13, pycuda::run, Some(pycuda::test)),
    program("llama.cpp", LLAMA, llama::run, Some(llama::test)),
    program(
        "triton",
        TRITON,
        |folder| triton::run(folder, Device::H100),
        Some(|folder, expected| triton::test(folder, expected, Device::H100)),
    ),
    program(
        "triton-b200",
        TRITON,
        |folder| triton::run(folder, Device::B200),
        Some(|folder, expected| triton::test(folder, expected, Device::B200)),
    ),
    program("halide", HALIDE, halide::run, Some(halide::test)),
    program("tvm", TVM, tvm::run, Some(tvm::test)),
    program(
        "quadrants",
        QUADRANTS,
        quadrants::run,
        Some(quadrants::test),
    )
    .with_tests_in(&repository::QUADRANTS),
    program("warp", CUDA_13, warp::run, Some(warp::test)),
    program("cupy", CUDA_12, cupy::run, Some(cupy::test)),
    program(
        "tinygrad",
        CUDA_12,
        |folder| tinygrad::run(folder, Renderer::Cuda),
        Some(|folder, expected| tinygrad::test(folder, expected, Renderer::Cuda)),
    ),
    program(
        "tinygrad-ptx",
        CUDA_12,
        |folder| tinygrad::run(folder, Renderer::Ptx),
        Some(|folder, expected| tinygrad::test(folder, expected, Renderer::Ptx)),
    ),
];

/// The variable for programs that use several devices.
const DEVICES: (&str, &str) = ("CURIUM_SIM_DEVICES", "4");

/// The variables that enable the optional checks of the simulator.
const CHECKS: [(&str, &str); 2] = [
    ("CURIUM_SIM_RACES", "on"),
    ("CURIUM_SIM_UNINITIALIZED", "on"),
];

/// The folders that a run reads and writes.
struct Folder {
    /// The folder in the repository.
    sources: PathBuf,
    /// The output folder, below cargo's target folder.
    built: PathBuf,
    /// The folder of the simulator's `libcuda.so.1`.
    driver: PathBuf,
    /// The packages in Python.
    environment: Environment,
    /// `true` if the outcomes that an interrupted run left there are kept.
    resume: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let expected = expected::read(&crate::root().join("outside"))?;
    if options.page {
        return stale::write(&page::files(&expected));
    }
    let chosen = chosen(&options.names)?;
    sim::run(&sim::Options::default())?;
    let target = cargo::target_folder()?;
    let folder = |environment| Folder {
        sources: crate::root().join("outside"),
        built: target.join("outside"),
        driver: target.join("sim"),
        environment,
        resume: options.resume,
    };
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "program",
        "version",
        "numbers",
        "own tests",
        "time",
    ]);
    let mut failed = Vec::new();
    for program in chosen {
        println!("\n== {}", program.name);
        let folder = folder(program.environment);
        if let Some(reason) = python::prepare(&folder)? {
            println!("skipped: {reason}");
            continue;
        }
        let expected = expected.find(program.name)?;
        let start = Instant::now();
        let outcome = attend(program, expected, &folder, options);
        let (numbers, tests) = match &outcome {
            Ok(tests) => ("right", tests.clone()),
            Err(_) => ("FAILED", String::new()),
        };
        let time = format!("{:.0} s", start.elapsed().as_secs_f64());
        table.add_row([
            program.name,
            expected.version.as_str(),
            numbers,
            tests.as_str(),
            time.as_str(),
        ]);
        if let Err(error) = outcome {
            println!("{error:#}");
            failed.push(program.name);
        }
    }
    println!("\n{table}");
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Runs one program and its tests, and returns the table entry of the tests.
fn attend(
    program: &Program,
    expected: &Expected,
    folder: &Folder,
    options: &Options,
) -> Result<String> {
    (program.run)(folder).context("the numbers")?;
    let Some(test) = program.test else {
        return Ok("carries none".to_owned());
    };
    if options.quick {
        return Ok("left out".to_owned());
    }
    if let Some(repository) = program.repository
        && let Some(reason) = repository.prepare(folder)?
    {
        println!("the tests are skipped: {reason}");
        return Ok("skipped".to_owned());
    }
    expected.compare(&test(folder, expected)?)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Program>> {
    let available: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
    if let Some(unknown) = names
        .iter()
        .find(|name| !available.contains(&name.as_str()))
    {
        bail!(
            "there is no program `{unknown}`; the programs are {}",
            available.join(", ")
        );
    }
    let is_chosen =
        |program: &&Program| names.is_empty() || names.iter().any(|name| name == program.name);
    Ok(PROGRAMS.iter().filter(is_chosen).collect())
}

impl Folder {
    /// Compiles the kernels with NVRTC, and returns the path of the PTX.
    fn ptx(&self) -> Result<PathBuf> {
        let path = self.built.join("kernels.ptx");
        run_all(python::command(self, "bindings.py")?.arg(&path))?;
        Ok(path)
    }
}

/// The command with the simulator as the driver, and other libraries after it.
fn with_driver(command: &mut Command, folder: &Folder, libraries: &[&Path]) -> Result<()> {
    let paths = std::iter::once(folder.driver.as_path()).chain(libraries.iter().copied());
    command.env("LD_LIBRARY_PATH", std::env::join_paths(paths)?);
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CURIUM_SIM_"))
    {
        command.env_remove(name);
    }
    Ok(())
}

fn run_all(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{command:?} cannot be run"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_programs_are_run_unless_some_are_named() {
        assert_eq!(
            names(&chosen(&[]).expect("all are known")).len(),
            PROGRAMS.len()
        );
        assert_eq!(
            names(&chosen(&["cust".to_owned()]).expect("unknown program")),
            ["cust"]
        );
        assert!(chosen(&["mystery".to_owned()]).is_err());
    }

    fn names(chosen: &[&Program]) -> Vec<&'static str> {
        chosen.iter().map(|program| program.name).collect()
    }

    #[test]
    fn programs_and_expectations_match() {
        let expected = expected::read(&crate::root().join("outside")).expect("the file is correct");
        assert_eq!(expected.program.len(), PROGRAMS.len());
        for program in &PROGRAMS {
            let of_it = expected
                .find(program.name)
                .expect("no expectation of the program");
            assert_eq!(of_it.passed > 0, program.test.is_some(), "{}", program.name);
        }
    }
}

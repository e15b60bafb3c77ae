//! Measures the kernels of this package beside the same algorithms in CUDA C++, compiled by nvcc
//! and by NVRTC.
//!
//! ```text
//! cargo bench -p curium-test-kernels --bench beside_cuda [FILTER …]
//! ```
//!
//! For each kernel and compiler it prints the median of 20 launches in microseconds with the
//! quartiles, the ratio of Rust to nvcc (or to NVRTC, if there is no nvcc), registers and local
//! memory per thread, and the size of the PTX. The outputs must agree. The sources in CUDA C++ are
//! in the folder `cuda`. nvcc is searched on the `PATH` and in `/usr/local/cuda*/bin`.
//!
//! To add a kernel, add an [`Entry`](entries::Entry) to a table in `entries`, and its twin to a
//! file in `cuda`.
//!
//! | option | effect |
//! |---|---|
//! | `--small` | small sizes and a single launch, which is also compared with a reference on the host |
//! | `--simulator` | runs on the simulator, which implies `--small` |
//! | `--no-cuda` | without CUDA C++, the default on the simulator |
//! | `--cuda` | with CUDA C++ on the simulator too, compiled by NVRTC |
//! | `--output FOLDER` | writes `beside_cuda.json` |
//!
//! `cargo test` runs it with `--simulator`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod bench;
mod cuda;
mod entries;
mod report;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use curium_driver::{Device, Driver};
use curium_sim::Config;

use crate::bench::Bench;
use crate::cuda::Twins;
use crate::report::Report;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The options of the command line.
#[derive(Debug, Default)]
struct Options {
    is_small: bool,
    is_simulator: bool,
    with_cuda: Option<bool>,
    output: Option<PathBuf>,
    filters: Vec<String>,
}

impl Options {
    /// Parses the command line. `None` if there is nothing to run.
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self {
            is_simulator: true,
            ..Self::default()
        };
        while let Some(argument) = arguments.next() {
            match &*argument {
                // Passed by `cargo bench`.
                "--bench" | "--gpu" => options.is_simulator = false,
                "--small" => options.is_small = true,
                "--simulator" | "--sim" => options.is_simulator = true,
                "--cuda" => options.with_cuda = Some(true),
                "--no-cuda" => options.with_cuda = Some(false),
                "--output" => {
                    let folder = arguments.next().ok_or("--output needs a folder")?;
                    options.output = Some(folder.into());
                }
                // Test runners ask for a list of tests.
                "--list" => return Ok(None),
                other if other.starts_with("--") => {
                    return Err(format!("unknown option {other}").into());
                }
                filter => options.filters.push(filter.to_owned()),
            }
        }
        options.is_small |= options.is_simulator;
        Ok(Some(options))
    }
}

fn main() -> ExitCode {
    let result = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => run(&options),
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => Err(error),
    };
    match result {
        Ok(report) if report.is_success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures the kernels, prints the table and writes the file.
fn run(options: &Options) -> Result<Report> {
    let report = if options.is_simulator {
        // With race checks and checks for uninitialized memory.
        curium_sim::test_with(Config::new(), |device: Device| measure(options, &device))?
    } else {
        measure(options, &Driver::load()?.device(0)?)?
    };
    if let Some(folder) = &options.output {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("beside_cuda.json"), report.to_json())?;
    }
    Ok(report)
}

fn measure(options: &Options, device: &Device) -> Result<Report> {
    let with_cuda = options.with_cuda.unwrap_or(!options.is_simulator);
    let twins = if with_cuda {
        Twins::compile(device, options.is_simulator)?
    } else {
        Twins::none()
    };
    let bench = Bench::new(device, twins, options.is_small)?;
    let mut report = Report::new(device, &bench)?;
    println!("{}", report.header());
    let capability = device.compute_capability()?;
    for entry in entries::all().filter(|entry| entry.runs_on(capability)) {
        let is_selected = |filter: &String| entry.name.contains(&**filter);
        if options.filters.is_empty() || options.filters.iter().any(is_selected) {
            let row = bench
                .run(entry)
                .map_err(|error| format!("{}: {error}", entry.name))?;
            println!("{row}");
            report.push(row);
        }
    }
    println!("{}", report.summary());
    Ok(report)
}

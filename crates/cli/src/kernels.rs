//! `curium kernels`: kernels in Rust, compiled to PTX.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use curium_kernel_build::{Kernels, Panics, Target};

use crate::terminal::ColorChoice;

/// Compile kernels in Rust to PTX
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the kernels are compiled, or the prebuilt PTX is current
  1  the kernels do not compile, a part of the toolchain is missing, or the prebuilt PTX is stale
  2  the command line is wrong")]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Compile the kernels of a package to PTX files
    Build(BuildOptions),
    /// Compare the prebuilt PTX of packages with what the compiler writes
    Check(CargoOptions),
    /// Write the prebuilt PTX of packages
    Update(CargoOptions),
}

#[derive(clap::Args)]
struct BuildOptions {
    /// The folder of the package
    #[arg(default_value = ".")]
    package: PathBuf,
    /// A module with kernels; otherwise the library of the package consists of kernels
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// The file that declares the module, relative to the package
    #[arg(
        long,
        value_name = "FILE",
        default_value = "src/lib.rs",
        requires = "module"
    )]
    file: PathBuf,
    /// A GPU architecture, sm_70 to sm_121a (repeatable)
    #[arg(long = "target", value_name = "ARCHITECTURE", default_value = "sm_80")]
    targets: Vec<String>,
    /// The version of PTX [default: the oldest that has the architecture, and at least 7.8]
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    ptx: Option<(u32, u32)>,
    /// The effect of a panic
    #[arg(long, value_enum, default_value_t = PanicChoice::Message, value_name = "CHOICE")]
    panics: PanicChoice,
    /// Round `a * b + c` once where the compiler decides to. Unsound if code of a block branches on
    /// such a value
    #[arg(long)]
    contract: bool,
    /// A dependency of the package that the module uses (repeatable)
    #[arg(long = "dependency", value_name = "NAME")]
    dependencies: Vec<String>,
    /// The folder for the PTX files
    #[arg(long, short, value_name = "FOLDER", default_value = ".")]
    output: PathBuf,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PanicChoice {
    /// Print the message, and end the launch
    Message,
    /// End the launch
    Trap,
}

#[derive(clap::Args)]
struct CargoOptions {
    /// Arguments for `cargo check`, such as `--workspace`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

fn parse_version(text: &str) -> Result<(u32, u32), String> {
    let numbers = text
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    numbers.ok_or_else(|| format!("`{text}` is no version such as 8.0"))
}

pub(crate) fn run(options: &Options, _: ColorChoice) -> Result<ExitCode> {
    match &options.action {
        Action::Build(options) => build(options).map(|()| ExitCode::SUCCESS),
        Action::Check(options) => cargo(options, "check"),
        Action::Update(options) => cargo(options, "update"),
    }
}

fn build(options: &BuildOptions) -> Result<()> {
    let mut kernels = match &options.module {
        Some(module) => Kernels::module(&options.file, module),
        None => Kernels::package(),
    };
    kernels = kernels
        .targets([])
        .dependencies(options.dependencies.iter().map(String::as_str))
        .panics(match options.panics {
            PanicChoice::Message => Panics::Message,
            PanicChoice::Trap => Panics::Trap,
        });
    if options.contract {
        // SAFETY: the help of the option states the condition to the user.
        kernels = unsafe { kernels.contract(true) };
    }
    for name in &options.targets {
        let mut target = Target::new(name)?;
        if let Some((major, minor)) = options.ptx {
            target = target.with_ptx_version(major, minor)?;
        }
        kernels = kernels.target(target);
    }
    let output = kernels.build(
        &options.package,
        &options.package.join("target/curium-kernels"),
    )?;
    let name = options.module.as_deref().unwrap_or("kernels");
    fs::create_dir_all(&options.output).with_context(|| options.output.display().to_string())?;
    for image in &output.images {
        let path = options.output.join(format!("{name}.{}.ptx", image.target));
        fs::write(&path, &image.ptx).with_context(|| path.display().to_string())?;
        writeln!(
            io::stdout().lock(),
            "{}: {}",
            path.display(),
            output.kernels.join(", ")
        )?;
    }
    Ok(())
}

/// Runs `cargo check`, whose build scripts compile the kernels.
fn cargo(options: &CargoOptions, mode: &str) -> Result<ExitCode> {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(program)
        .arg("check")
        .args(&options.arguments)
        .env("CURIUM_KERNELS", mode)
        .status()
        .context("cargo could not be started")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

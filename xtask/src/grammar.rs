//! `cargo xtask grammar`: compares the PTX that the simulator accepts with `ptxas`.

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};

use crate::cargo::cargo;
use crate::package::{CudaVersion, Pins};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The number of random forms.
    #[arg(long, default_value_t = 600)]
    forms: u64,
    /// The seed of the generator, or `time` for a new one.
    #[arg(long, default_value = "1")]
    seed: String,
}

impl Options {
    /// Creates the options of the short run with a fixed seed, or of the long run with a new seed
    /// each time.
    pub(crate) fn for_ci(is_thorough: bool) -> Self {
        let (forms, seed) = if is_thorough {
            (40_000, "time")
        } else {
            (600, "1")
        };
        Self {
            forms,
            seed: seed.to_owned(),
        }
    }

    fn seed(&self) -> Result<u64> {
        if self.seed == "time" {
            return Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs());
        }
        self.seed.parse().context("the seed is a number or `time`")
    }
}

/// Runs the tests with the pinned assemblers.
pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed()?;
    for version in &Pins::read()?.ptxas {
        println!("ptxas of CUDA {}, seed {seed}", version.version);
        let mut command = cargo();
        command.args(["test", "-p", "curium-sim", "--test", "grammar"]);
        command
            .env("CURIUM_PTXAS", assembler(version)?)
            .env("CURIUM_GRAMMAR_SEED", seed.to_string());
        command.env("CURIUM_GRAMMAR_FORMS", options.forms.to_string());
        let status = command.status().context("cargo cannot be run")?;
        ensure!(status.success(), "the simulator and ptxas differ");
    }
    Ok(())
}

/// Returns the assembler of a package, which can be executed.
pub(crate) fn assembler(version: &CudaVersion) -> Result<PathBuf> {
    let path = version
        .package
        .folder_with(|name| name == "ptxas")?
        .join("ptxas");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(path)
}

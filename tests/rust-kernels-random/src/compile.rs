//! Compiles crates of programs to PTX.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use curium_kernel_build::{Diagnostic, Error, Kernels};

use crate::print;

/// The name of the crate of programs.
const NAME: &str = "curium-random-kernels";

/// Compiles one crate after another, in a folder of its own.
pub(crate) struct Compiler {
    package: tempfile::TempDir,
    out: PathBuf,
}

/// The result of a compilation.
pub(crate) enum Compiled {
    Ptx(String),
    /// rustc refused the programs.
    Rejected(Vec<Diagnostic>),
    /// The compiler of kernels refused what rustc accepts.
    Refused(String),
    /// The message of another failure.
    Failed(String),
    /// The toolchain lacks a part.
    Missing(String),
}

impl Compiler {
    /// `work` is a folder in which dependencies remain compiled, and `kernel_crate` a copy of
    /// `curium-kernel`.
    pub(crate) fn new(work: &Path, kernel_crate: Option<&Path>) -> Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let package = tempfile::tempdir()?;
        let device = kernel_crate.map_or_else(|| repository.join("crates/kernel"), Path::to_owned);
        let device = device.canonicalize()?;
        let manifest = format!(
            "[package]\nname = \"{NAME}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\ncurium-kernel = {{ path = {:?} }}\n\n[workspace]\n",
            device.display().to_string()
        );
        fs::create_dir(package.path().join("src"))?;
        fs::write(package.path().join("Cargo.toml"), manifest)?;
        fs::write(package.path().join("src/lib.rs"), print::HEADER)?;
        fs::copy(
            repository.join("Cargo.lock"),
            package.path().join("Cargo.lock"),
        )?;
        fs::copy(
            repository.join("rust-toolchain.toml"),
            package.path().join("rust-toolchain.toml"),
        )?;
        Ok(Self {
            package,
            out: work.join("build/random/out"),
        })
    }

    /// Compiles modules.
    pub(crate) fn compile(&self, modules: &[String]) -> Result<Compiled> {
        let text = print::HEADER.to_owned() + &modules.concat();
        let source = self.package.path().join("src/lib.rs");
        fs::write(&source, text).with_context(|| source.display().to_string())?;
        let kernels = Kernels::package().targets(["sm_80"]).debug_lines(false);
        Ok(match kernels.build(self.package.path(), &self.out) {
            Ok(output) => {
                let image = output.images.into_iter().next();
                Compiled::Ptx(image.context("there is no image")?.ptx)
            }
            Err(Error::Toolchain(message)) => Compiled::Missing(message),
            Err(Error::Compile(diagnostics)) => Compiled::Rejected(diagnostics),
            Err(error @ Error::Refused(_)) => Compiled::Refused(error.to_string()),
            Err(error) => Compiled::Failed(error.to_string()),
        })
    }
}

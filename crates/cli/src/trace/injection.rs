//! The library that the driver loads into traced programs: located, or built from its sources.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::simulator;

/// The name of the library.
const NAME: &str = "libcurium_trace.so";

/// Returns the library: the named one, the one beside this program, or one that is built now.
pub(super) fn library(named: Option<&Path>) -> Result<PathBuf> {
    let path = match named {
        Some(path) => path.to_path_buf(),
        None => {
            let program = env::current_exe().context("the path of this program is unknown")?;
            match beside(&program).into_iter().find(|path| path.is_file()) {
                Some(path) => path,
                None => build(&program)?,
            }
        }
    };
    ensure!(path.is_file(), "there is no file {}", path.display());
    Ok(std::path::absolute(path)?)
}

/// Returns the candidates: the folder of the program and the one above, as in cargo's target
/// folder.
fn beside(program: &Path) -> Vec<PathBuf> {
    let folders = program.ancestors().skip(1).take(2);
    folders.map(|folder| folder.join(NAME)).collect()
}

/// Builds the library from the sources of this workspace, into the target folder of this program.
fn build(program: &Path) -> Result<PathBuf> {
    ensure!(
        simulator::has_sources("diagnostics"),
        "{NAME}: not found beside this program; build the package curium-diagnostics with the feature `injection` as a cdylib in a \
         checkout of Curium, and name it with --injection"
    );
    let target = simulator::target_folder(program)?;
    writeln!(io::stderr(), "building {NAME} (once)")?;
    let built = simulator::build_shared_library("curium-diagnostics", "injection", target, &[])?;
    let library = target.join(NAME);
    fs::copy(&built, &library)
        .with_context(|| format!("{} could not be copied", built.display()))?;
    Ok(library)
}

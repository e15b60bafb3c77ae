//! The simulator's library: located, or built from its sources.

#[cfg(unix)]
mod libraries;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The soname of the driver.
const NAME: &str = "libcuda.so.1";
/// The variables of Curium's wrappers for the path of a library, each with the library's name.
pub(crate) const VARIABLES: [(&str, &str); 5] = [
    ("CURIUM_CUBLAS_PATH", "libcublas.so.13"),
    ("CURIUM_CUBLASLT_PATH", "libcublasLt.so.13"),
    ("CURIUM_CUFFT_PATH", "libcufft.so.12"),
    ("CURIUM_CURAND_PATH", "libcurand.so.10"),
    ("CURIUM_NCCL_PATH", "libnccl.so.2"),
];

/// The workspace in which this program was built.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the simulator's library: the named one, the one beside this program, or one that is built now.
pub(crate) fn library(named: Option<&Path>) -> Result<PathBuf> {
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
    let name = path.file_name();
    ensure!(
        name.is_some_and(|name| name == NAME),
        "the library must be called {NAME} ({})",
        path.display()
    );
    Ok(std::path::absolute(path)?)
}

/// Returns the candidates: the folder of the program and the one above, and the folder `sim` in each, as in cargo's target folder.
fn beside(program: &Path) -> Vec<PathBuf> {
    let folders = program.ancestors().skip(1).take(2);
    folders
        .flat_map(|folder| [folder.join("sim").join(NAME), folder.join(NAME)])
        .collect()
}

/// Builds the library from the sources of this workspace, into the target folder of this program.
fn build(program: &Path) -> Result<PathBuf> {
    let workspace = Path::new(WORKSPACE);
    ensure!(
        workspace.join("crates/sim-libraries/Cargo.toml").is_file(),
        "{NAME} of the simulator: not found beside this program; build it with `cargo xtask sim` in a checkout of Curium, and name it \
         with --simulator"
    );
    let target = program
        .ancestors()
        .nth(2)
        .context("this program is not in a target folder")?;
    writeln!(
        io::stderr(),
        "building the simulator's {NAME} (once; takes a few minutes)"
    )?;
    let status = cargo(workspace, target)
        .status()
        .context("cargo could not be started")?;
    ensure!(
        status.success(),
        "cargo failed to build the simulator's {NAME} ({status})"
    );
    let library = target.join("sim").join(NAME);
    fs::create_dir_all(target.join("sim"))?;
    let built = target.join("release/libcurium_sim_libraries.so");
    fs::copy(&built, &library)
        .with_context(|| format!("{} could not be copied", built.display()))?;
    #[cfg(unix)]
    libraries::create(&library).context("the simulated libraries could not be created")?;
    Ok(library)
}

fn cargo(workspace: &Path, target: &Path) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    cargo.current_dir(workspace).args([
        "rustc",
        "--release",
        "--package",
        "curium-sim-libraries",
        "--lib",
        "--features",
        "export",
    ]);
    cargo
        .args(["--crate-type", "cdylib", "--target-dir"])
        .arg(target);
    cargo.args(["--", "-C", "link-arg=-Wl,-soname,libcuda.so.1"]);
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_searched_for_in_the_target_folder() {
        let paths = beside(Path::new("/project/target/release/curium"));
        assert!(
            paths.contains(&PathBuf::from("/project/target/sim/libcuda.so.1")),
            "{paths:?}"
        );
        assert!(
            paths.contains(&PathBuf::from("/project/target/release/libcuda.so.1")),
            "{paths:?}"
        );
    }

    #[test]
    fn library_with_another_name_is_refused() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let error = library(Some(&manifest))
            .expect_err("this is no driver")
            .to_string();
        assert!(error.contains("must be called libcuda.so.1"), "{error}");
    }
}

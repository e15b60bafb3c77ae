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
pub(crate) const VARIABLES: [(&str, &str); 6] = [
    ("CURIUM_CUBLAS_PATH", "libcublas.so.13"),
    ("CURIUM_CUBLASLT_PATH", "libcublasLt.so.13"),
    ("CURIUM_CUFFT_PATH", "libcufft.so.12"),
    ("CURIUM_CUPTI_PATH", "libcupti.so.13"),
    ("CURIUM_CURAND_PATH", "libcurand.so.10"),
    ("CURIUM_NCCL_PATH", "libnccl.so.2"),
];

/// The workspace in which this program was built.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the simulator's library: the named one, the one beside this program, or one that is
/// built now.
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

/// Returns the candidates: the folder of the program and the one above, and the folder `sim` in
/// each, as in cargo's target folder.
fn beside(program: &Path) -> Vec<PathBuf> {
    let folders = program.ancestors().skip(1).take(2);
    folders
        .flat_map(|folder| [folder.join("sim").join(NAME), folder.join(NAME)])
        .collect()
}

/// Builds the library from the sources of this workspace, into the target folder of this program.
fn build(program: &Path) -> Result<PathBuf> {
    ensure!(
        has_sources("sim-libraries"),
        "{NAME} of the simulator: not found beside this program; build it with `cargo xtask sim` in a checkout of Curium, and name it \
         with --simulator"
    );
    let target = target_folder(program)?;
    writeln!(
        io::stderr(),
        "building the simulator's {NAME} (once; takes a few minutes)"
    )?;
    let soname = ["--", "-C", "link-arg=-Wl,-soname,libcuda.so.1"];
    let built = build_shared_library("curium-sim-libraries", "export", target, &soname)?;
    let library = target.join("sim").join(NAME);
    fs::create_dir_all(target.join("sim"))?;
    fs::copy(&built, &library)
        .with_context(|| format!("{} could not be copied", built.display()))?;
    #[cfg(unix)]
    libraries::create(&library).context("the simulated libraries could not be created")?;
    Ok(library)
}

/// Returns the target folder of this program.
pub(crate) fn target_folder(program: &Path) -> Result<&Path> {
    program
        .ancestors()
        .nth(2)
        .context("this program is not in a target folder")
}

/// Returns `true` if this program can build the packages that it was built with.
pub(crate) fn has_sources(package: &str) -> bool {
    let crates = Path::new(WORKSPACE).join("crates");
    crates.join(package).join("Cargo.toml").is_file()
}

/// Builds a package of this workspace with a feature as a shared library, and returns its path.
pub(crate) fn build_shared_library(
    package: &str,
    feature: &str,
    target: &Path,
    compiler: &[&str],
) -> Result<PathBuf> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    cargo
        .current_dir(WORKSPACE)
        .args(["rustc", "--release", "--package", package, "--lib"])
        .args(["--features", feature, "--crate-type", "cdylib"])
        .arg("--target-dir")
        .arg(target)
        .args(compiler);
    let status = cargo.status().context("cargo could not be started")?;
    ensure!(
        status.success(),
        "cargo failed to build the shared library of {package} ({status})"
    );
    let name = package.replace('-', "_");
    Ok(target.join(format!("release/lib{name}.so")))
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

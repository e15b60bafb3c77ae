//! llama.cpp's CUDA backend, as it is released for Node.js: machine code and PTX, linked to the
//! shared CUDA runtime and to cuBLAS. The package contains no tests: those of `outside/llama`
//! compare ggml's operations on this backend with those on its CPU backend.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{Folder, python, run_all};

const VERSION: &str = "3.22.1";
const ARCHIVE: &str =
    "https://registry.npmjs.org/@node-llama-cpp/linux-x64-cuda/-/linux-x64-cuda-3.22.1.tgz";
const SHA256: &str = "d6cd3ff39a43b024816952e0bc6452d6711608d26256ff6eb0fe8cf7ff55bb2c";
/// The folder of the libraries in the archive.
const LIBRARIES: &str = "package/bins/linux-x64-cuda";
/// A program in Python that fetches a file.
const FETCH: &str =
    "import sys, urllib.request; urllib.request.urlretrieve(sys.argv[1], sys.argv[2])";

/// Runs a few of the operations.
pub(super) fn run(folder: &Folder) -> Result<()> {
    suite(folder).run_selected(folder, "test_operations.py", "add-f32 or mul_mat-q4_0")
}

/// Runs the tests of this repository.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    pytest::test(folder, expected, &suite(folder))
}

fn suite(folder: &Folder) -> Suite {
    Suite::from_repository(folder, "llama", interpreter)
}

fn interpreter(folder: &Folder) -> Result<Command> {
    let mut python = python::simulated_interpreter(folder)?;
    python
        .env("GGML_FOLDER", libraries(folder)?)
        .env("CURIUM_SIM_RACES", "on");
    Ok(python)
}

/// Returns the folder of the libraries; fetches them on first use.
fn libraries(folder: &Folder) -> Result<PathBuf> {
    let unpacked = folder.built.join(format!("llama-{VERSION}"));
    if unpacked.is_dir() {
        return Ok(unpacked.join(LIBRARIES));
    }
    let work = folder
        .built
        .join(format!("llama-{VERSION}.{}", std::process::id()));
    fs::create_dir_all(&work)?;
    let archive = work.join("archive.tgz");
    let mut python = Command::new(python::environment(folder).join("bin/python"));
    run_all(python.args(["-c", FETCH, ARCHIVE]).arg(&archive))
        .context("the package cannot be fetched (offline?)")?;
    let digest: String = Sha256::digest(fs::read(&archive)?)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    ensure!(
        digest == SHA256,
        "{ARCHIVE} has the SHA-256 {digest} instead of {SHA256}"
    );
    run_all(
        Command::new("tar")
            .arg("xzf")
            .arg(&archive)
            .arg("-C")
            .arg(&work),
    )?;
    fs::remove_file(archive)?;
    fs::rename(work, &unpacked)?;
    Ok(unpacked.join(LIBRARIES))
}

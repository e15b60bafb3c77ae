//! cuBLAS, cuRAND and cuFFT of the simulator, for a program in C.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{SIMULATOR, folder};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/c/libraries.c");

/// The libraries with the sonames of each CUDA version.
const VERSIONS: [[&str; 3]; 3] = [
    ["libcublas.so.11", "libcufft.so.10", "libcurand.so.10"],
    ["libcublas.so.12", "libcufft.so.11", "libcurand.so.10"],
    ["libcublas.so.13", "libcufft.so.12", "libcurand.so.10"],
];

/// Builds a library like NVIDIA's, whose symbols have its name as their version.
fn versioned_library(path: &Path, name: &str) -> Result<()> {
    let source = match name.split('.').next() {
        Some("libcublas") => {
            "cublasCreate_v2 cublasSgemm_v2 cublasSgeqrfBatched cublasGetStatusName"
        }
        Some("libcufft") => "cufftPlan1d cufftExecC2C",
        _ => "curandCreateGenerator curandGenerateUniform",
    };
    let functions: String = source
        .split(' ')
        .map(|function| format!("void {function}(void) {{}}\n"))
        .collect();
    let text = path.with_extension("c");
    let script = path.with_extension("map");
    std::fs::write(&text, functions)?;
    std::fs::write(&script, format!("{name} {{ global: *; }};\n"))?;
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([path, &text])
        .arg(format!("-Wl,-soname,{name}"))
        .arg(format!("-Wl,--version-script={}", script.display()))
        .status()?;
    ensure!(status.success(), "cc ended with {status}");
    Ok(())
}

/// A program that was linked to NVIDIA's libraries of any CUDA version computes with the
/// simulator's. A function that is not simulated returns the library's code, and is reported once.
#[test]
fn program_in_c_uses_simulated_libraries() -> Result<()> {
    let simulator = SIMULATOR.parent().context("a file lies in a folder")?;
    for names in VERSIONS {
        let folder = folder(names[0]);
        let program = folder.join("program");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
            .args([&program, Path::new(SOURCE)]);
        for name in names {
            let library = folder.join(name);
            versioned_library(&library, name)?;
            compiler.arg(library);
        }
        let status = compiler
            .arg("-L")
            .arg(simulator)
            .args(["-lcuda", "-lm"])
            .status()?;
        ensure!(status.success(), "cc ended with {status}");
        let output = Command::new(&program)
            .env("LD_LIBRARY_PATH", simulator)
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{errors}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "product: 7 10 15 22\n\
             uniform: 16 1\n\
             spectrum: 0 0 0 8 0 0 0 0 0 0 0 0 0 8 0 0\n\
             factorization: CUBLAS_STATUS_NOT_SUPPORTED\n",
            "{names:?}"
        );
        assert_eq!(
            errors, "curium-sim: cublasSgeqrfBatched: not simulated\n",
            "{names:?}"
        );
    }
    Ok(())
}

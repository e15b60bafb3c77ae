//! Compilation of CUDA C++ in build scripts.
//!
//! Add `curium-nvrtc` to the `[build-dependencies]`, and this to `build.rs`:
//!
//! ```no_run
//! use curium_nvrtc::{Architecture, CompileOptions, build};
//!
//! let options = CompileOptions::new().with_architecture(Architecture::new(7, 5));
//! build::compile("kernels/saxpy.cu", &options);
//! ```
//!
//! and this to the program:
//!
//! ```ignore
//! curium::kernels! {
//!     pub struct Kernels include "saxpy.ptx" {
//!         pub fn saxpy(a: f32, x: &[f32], y: &mut [f32], n: u32);
//!     }
//! }
//! ```
#![expect(
    clippy::print_stdout,
    reason = "this is how a build script speaks to Cargo"
)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::{CompileOptions, Error, Nvrtc, Program, Result};

/// Compiles the CUDA C++ file `path`, relative to the package, to a file of the same name in `OUT_DIR`, and returns its
/// path. The file is a `.ptx` file, or a `.cubin` file if the architecture is real. Cargo prints the warnings, and
/// reruns the script when the source or the NVRTC changes. Kernels require `extern "C"` to keep their names.
///
/// # Panics
///
/// Panics if NVRTC is not found, the source does not compile, or this is not a build script.
pub fn compile(path: impl AsRef<Path>, options: &CompileOptions) -> PathBuf {
    let path = path.as_ref();
    try_compile(path, options).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compiles like [`compile`], and returns an error instead of a panic.
///
/// # Errors
///
/// The errors of [`Nvrtc::load`] and [`Nvrtc::compile`], and [`Error::File`] if a file cannot be read or written.
pub fn try_compile(path: &Path, options: &CompileOptions) -> Result<PathBuf> {
    println!("cargo::rerun-if-changed={}", path.display());
    println!("cargo::rerun-if-env-changed=CURIUM_NVRTC_PATH");
    let folder = std::env::var_os("OUT_DIR")
        .ok_or_else(|| file_error("OUT_DIR", "it is set in build scripts only"))?;
    compile_into(&Nvrtc::load()?, path, options, &folder)
}

fn compile_into(
    nvrtc: &Nvrtc,
    path: &Path,
    options: &CompileOptions,
    folder: &OsString,
) -> Result<PathBuf> {
    let compiled = nvrtc.compile(&Program::from_file(path)?, options)?;
    for line in compiled.diagnostics().iter().flat_map(|diagnostic| {
        diagnostic
            .to_string()
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    }) {
        println!("cargo::warning={line}");
    }
    let name = path
        .file_stem()
        .ok_or_else(|| file_error(&path.display().to_string(), "it does not name a file"))?;
    let (extension, bytes) = match compiled.cubin() {
        Ok(cubin) => ("cubin", cubin),
        Err(_) => ("ptx", compiled.ptx()?.as_bytes()),
    };
    let output = Path::new(folder).join(name).with_extension(extension);
    std::fs::write(&output, bytes).map_err(|error| Error::File {
        path: output.display().to_string().into(),
        error,
    })?;
    Ok(output)
}

fn file_error(path: &str, reason: &str) -> Error {
    Error::File {
        path: path.into(),
        error: std::io::Error::other(reason),
    }
}

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
//!
//! Cargo reruns the script when one of these changes:
//!
//! - the source, and every header that it may include, on any branch of a condition,
//! - anything in the folders of [`CompileOptions::with_include_path`],
//! - the folder of a file whose `#include "name"` is found in another folder or not at all, because
//!   the header may appear there. A folder that contains `OUT_DIR` is not watched, because it
//!   changes with every build: keep sources in a subfolder of the package, such as `kernels`,
//! - the environment variables with which NVRTC and CUDA's headers are found.
#![expect(
    clippy::print_stdout,
    reason = "this is how a build script speaks to Cargo"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::includes::Includes;
use crate::{CompileOptions, CompiledProgram, Error, Nvrtc, Program, Result};

/// The environment variables that determine which NVRTC and which headers are used.
const VARIABLES: [&str; 6] = [
    "CURIUM_NVRTC_PATH",
    "CURIUM_CUDA_INCLUDE_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CONDA_PREFIX",
    "VIRTUAL_ENV",
];

/// Compiles the CUDA C++ file `path`, relative to the package, to a file of the same name in
/// `OUT_DIR`, and returns its path. The file is a `.ptx` file, or a `.cubin` file if the
/// architecture is real. Cargo prints the warnings, and reruns the script when the source or a
/// header changes: see the [module](self). Kernels require `extern "C"` to keep their names.
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
/// The errors of [`Nvrtc::load`] and [`Nvrtc::compile`], and [`Error::File`] if a file cannot be
/// read or written.
pub fn try_compile(path: &Path, options: &CompileOptions) -> Result<PathBuf> {
    println!("cargo::rerun-if-changed={}", path.display());
    for variable in VARIABLES {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let folder = std::env::var_os("OUT_DIR")
        .map(PathBuf::from)
        .ok_or_else(|| file_error("OUT_DIR", "it is set in build scripts only"))?;
    let program = Program::from_file(path)?;
    // Before the compilation, whose failure also depends on the headers.
    for path in watched_paths(&program, options, &folder) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let compiled = Nvrtc::load()?.compile(&program, options)?;
    print_warnings(&compiled);
    write_output(&compiled, path, &folder)
}

/// Returns the paths other than the source whose changes may change the output.
fn watched_paths(program: &Program, options: &CompileOptions, output: &Path) -> BTreeSet<PathBuf> {
    let includes = Includes::scan(program, &options.to_arguments());
    includes
        .paths()
        .map(|path| {
            if path.as_os_str().is_empty() {
                Path::new(".")
            } else {
                path
            }
        })
        .filter(|path| !overlaps(path, output))
        .map(Path::to_path_buf)
        .collect()
}

/// Returns `true` if `path` contains `output` or lies in it. The script itself changes such a path.
fn overlaps(path: &Path, output: &Path) -> bool {
    match (path.canonicalize(), output.canonicalize()) {
        (Ok(path), Ok(output)) => output.starts_with(&path) || path.starts_with(&output),
        _ => false,
    }
}

fn print_warnings(compiled: &CompiledProgram) {
    for diagnostic in compiled.diagnostics() {
        for line in diagnostic.to_string().lines() {
            println!("cargo::warning={line}");
        }
    }
}

/// Writes the cubin or the PTX to `folder`.
fn write_output(compiled: &CompiledProgram, source: &Path, folder: &Path) -> Result<PathBuf> {
    let name = source
        .file_stem()
        .ok_or_else(|| file_error(&source.display().to_string(), "it does not name a file"))?;
    let (extension, bytes) = match compiled.cubin() {
        Ok(cubin) => ("cubin", cubin),
        Err(_) => ("ptx", compiled.ptx()?.as_bytes()),
    };
    let output = folder.join(name).with_extension(extension);
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    type TestResult = std::result::Result<(), Box<dyn std::error::Error>>;

    #[test]
    fn headers_and_include_folders_are_watched() -> TestResult {
        let package = tempfile::tempdir()?;
        for folder in ["kernels", "include", "target/out"] {
            fs::create_dir_all(package.path().join(folder))?;
        }
        fs::write(package.path().join("kernels/k.h"), "#include <deep.h>")?;
        fs::write(package.path().join("include/deep.h"), "")?;
        let source = package.path().join("kernels/k.cu");
        fs::write(&source, "#include \"k.h\"\n")?;
        let options = CompileOptions::new().with_include_path(package.path().join("include"));
        let output = package.path().join("target/out");
        let watched = watched_paths(&Program::from_file(&source)?, &options, &output);
        let expected = ["include", "include/deep.h", "kernels/k.h"];
        let expected: BTreeSet<_> = expected.map(|path| package.path().join(path)).into();
        assert_eq!(watched, expected);
        Ok(())
    }

    /// Each build changes such a folder, so that the script would always run again.
    #[test]
    fn output_folders_are_not_watched() -> TestResult {
        let package = tempfile::tempdir()?;
        let output = package.path().join("target/out");
        let bundled = output.join("headers");
        fs::create_dir_all(&bundled)?;
        fs::write(bundled.join("cuda_fp16.h"), "")?;
        let source = package.path().join("k.cu");
        fs::write(&source, "#include \"missing.h\"\n#include <cuda_fp16.h>\n")?;
        let options = CompileOptions::new()
            .with_include_path(package.path())
            .with_include_path(&bundled);
        let watched = watched_paths(&Program::from_file(&source)?, &options, &output);
        assert_eq!(watched, BTreeSet::new());
        Ok(())
    }
}

//! Loads NVIDIA's libraries.

use std::fmt;

use curium::blas::CuBlas;
use curium::blas::lt::CuBlasLt;
use curium::fft::CuFft;
use curium::nvrtc::Nvrtc;
use curium::rand::CuRand;
use curium::sys::load::{LibraryError, LibraryVersion, LoadError};
use curium::sys::nccl::Nccl;

use crate::doctor::environment::{Environment, OptionalLibrary};
use crate::loaded;

/// Loads each library that programs may use, and records the result.
pub(super) fn load(environment: &mut Environment) {
    environment.nvrtc = Nvrtc::load().ok().map(|nvrtc| nvrtc.version().to_string());
    let cublas = CuBlas::load().map(|library| library.version());
    let cublaslt = CuBlasLt::load().map(|library| library.version());
    let curand = CuRand::load().map(|library| library.version());
    let cufft = CuFft::load().map(|library| library.version());
    let nccl = Nccl::load().map(|library| library.version());
    environment.libraries = vec![
        library("cuBLAS", "libcublas.so", cublas),
        library("cuBLASLt", "libcublasLt.so", cublaslt),
        library("cuRAND", "libcurand.so", curand),
        library("cuFFT", "libcufft.so", cufft),
        library("NCCL", "libnccl.so", nccl),
    ];
}

fn library<C: fmt::Debug>(
    name: &str,
    prefix: &str,
    version: Result<LibraryVersion, LibraryError<C>>,
) -> OptionalLibrary {
    let name = name.to_owned();
    match version {
        Ok(version) => OptionalLibrary {
            name,
            version: Some(version.to_string()),
            path: loaded::library(prefix),
            rejected: Vec::new(),
        },
        Err(error) => OptionalLibrary {
            name,
            version: None,
            path: None,
            rejected: match error {
                LibraryError::Load(error) => rejections(&error),
                error => vec![error.to_string()],
            },
        },
    }
}

/// Returns the reasons why files were rejected that exist. Names that are nowhere are no reason.
fn rejections(error: &LoadError) -> Vec<String> {
    let attempts = error.attempts.iter().map(ToString::to_string);
    attempts
        .filter(|attempt| !attempt.contains("No such file or directory"))
        .collect()
}

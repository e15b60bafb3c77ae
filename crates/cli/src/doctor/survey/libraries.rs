//! Loads NVIDIA's libraries.

#[cfg(feature = "full")]
use curium::nvrtc::Nvrtc;
#[cfg(feature = "full")]
use curium::sys::load::LoadError;
#[cfg(feature = "full")]
use curium::{blas, fft, nccl, rand};

use crate::doctor::environment::OptionalLibrary;
#[cfg(feature = "full")]
use crate::loaded;

/// Returns `None`: this build does not load NVRTC.
#[cfg(not(feature = "full"))]
pub(super) fn nvrtc() -> Option<String> {
    None
}

/// Returns the CUDA version of NVRTC, if it is found.
#[cfg(feature = "full")]
pub(super) fn nvrtc() -> Option<String> {
    Nvrtc::load().ok().map(|nvrtc| nvrtc.version().to_string())
}

/// Returns no library: this build does not load them.
#[cfg(not(feature = "full"))]
pub(super) fn libraries() -> Vec<OptionalLibrary> {
    Vec::new()
}

/// Loads each library that programs may use.
#[cfg(feature = "full")]
pub(super) fn libraries() -> Vec<OptionalLibrary> {
    macro_rules! library {
        ($name:literal, $prefix:literal, $library:ty, $error:path) => {
            library(
                $name,
                $prefix,
                <$library>::load().map(|library| library.version().to_string()),
                |error| match error {
                    $error(error) => rejections(&error),
                    other => vec![other.to_string()],
                },
            )
        };
    }
    vec![
        library!("cuBLAS", "libcublas.so", blas::CuBlas, blas::Error::Load),
        library!("cuBLASLt", "libcublasLt.so", blas::lt::CuBlasLt, blas::Error::Load),
        library!("cuRAND", "libcurand.so", rand::CuRand, rand::Error::Load),
        library!("cuFFT", "libcufft.so", fft::CuFft, fft::Error::Load),
        library!("NCCL", "libnccl.so", nccl::Nccl, nccl::Error::Load),
    ]
}

#[cfg(feature = "full")]
fn library<E>(
    name: &str,
    prefix: &str,
    found: Result<String, E>,
    rejected: impl FnOnce(E) -> Vec<String>,
) -> OptionalLibrary {
    let name = name.to_owned();
    match found {
        Ok(version) => {
            OptionalLibrary { name, version: Some(version), path: loaded::library(prefix), rejected: Vec::new() }
        }
        Err(error) => OptionalLibrary { name, version: None, path: None, rejected: rejected(error) },
    }
}

/// Returns the reasons why files were rejected that exist. Names that are nowhere are no reason.
#[cfg(feature = "full")]
fn rejections(error: &LoadError) -> Vec<String> {
    let attempts = error.attempts.iter().map(ToString::to_string);
    attempts.filter(|attempt| !attempt.contains("No such file or directory")).collect()
}

//! Loads NVIDIA's libraries.

use curium::nvrtc::Nvrtc;
use curium::sys::load::LoadError;
use curium::{blas, fft, nccl, rand};

use crate::doctor::environment::{Environment, OptionalLibrary};
use crate::loaded;

/// Loads each library that programs may use, and records the result.
pub(super) fn load(environment: &mut Environment) {
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
    environment.nvrtc = Nvrtc::load().ok().map(|nvrtc| nvrtc.version().to_string());
    environment.libraries = vec![
        library!("cuBLAS", "libcublas.so", blas::CuBlas, blas::Error::Load),
        library!(
            "cuBLASLt",
            "libcublasLt.so",
            blas::lt::CuBlasLt,
            blas::Error::Load
        ),
        library!("cuRAND", "libcurand.so", rand::CuRand, rand::Error::Load),
        library!("cuFFT", "libcufft.so", fft::CuFft, fft::Error::Load),
        library!("NCCL", "libnccl.so", nccl::Nccl, nccl::Error::Load),
    ];
}

fn library<E>(
    name: &str,
    prefix: &str,
    found: Result<String, E>,
    rejected: impl FnOnce(E) -> Vec<String>,
) -> OptionalLibrary {
    let name = name.to_owned();
    match found {
        Ok(version) => OptionalLibrary {
            name,
            version: Some(version),
            path: loaded::library(prefix),
            rejected: Vec::new(),
        },
        Err(error) => OptionalLibrary {
            name,
            version: None,
            path: None,
            rejected: rejected(error),
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

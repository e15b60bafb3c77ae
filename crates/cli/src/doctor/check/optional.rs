//! NVIDIA's libraries, which are required only by programs that use them.

use crate::doctor::environment::{Environment, Library, OptionalLibrary};
use crate::doctor::finding::Finding;

/// Reports each library: its version and file, or the package that has it.
pub(super) fn check(environment: &Environment) -> Vec<Finding> {
    let cuda = cuda_major(environment);
    environment
        .libraries
        .iter()
        .map(|library| finding(library, cuda))
        .collect()
}

fn finding(library: &OptionalLibrary, cuda: Option<u32>) -> Finding {
    let OptionalLibrary {
        name,
        version,
        path,
        rejected,
    } = library;
    let packages = packages(name, cuda);
    let Some(version) = version else {
        let mut what = format!("{name} was not found; only programs that use it need it");
        if !rejected.is_empty() {
            what = format!(
                "{name} does not load; only programs that use it need it\n{}",
                rejected.join("\n")
            );
        }
        let install = format!("{packages}, or install the CUDA toolkit");
        let variable = format!(
            "or set CURIUM_{}_PATH to the library or its folder",
            name.to_uppercase()
        );
        return Finding {
            fixes: vec![install, variable],
            ..Finding::note("libraries", what)
        };
    };
    let file = path
        .as_ref()
        .map_or_else(String::new, |path| format!(" ({path})"));
    let needed = needed_cuda(name, version);
    match (needed, cuda) {
        (Some(needed), Some(cuda)) if needed > cuda => {
            let what = format!(
                "{name} {version}{file} is for CUDA {needed}, and the driver supports CUDA {cuda} only"
            );
            Finding {
                fixes: vec![packages, "or update the driver".to_owned()],
                ..Finding::warning("libraries", what, [])
            }
        }
        _ => Finding::good("libraries", format!("{name} {version}{file}")),
    }
}

/// Returns the major CUDA version that the driver supports.
fn cuda_major(environment: &Environment) -> Option<u32> {
    let Library::Loaded { version, .. } = &environment.library else {
        return None;
    };
    major(version)
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

/// Returns the major CUDA version of a library, if its own version determines it.
fn needed_cuda(name: &str, version: &str) -> Option<u32> {
    let major = major(version)?;
    match name {
        "cuBLAS" | "cuBLASLt" => Some(major),
        "cuFFT" => Some(major + 1),
        _ => None,
    }
}

/// Returns the commands that install the Python package with a library for a CUDA version; without
/// one, for each.
fn packages(name: &str, cuda: Option<u32>) -> String {
    let package = match name {
        "cuBLASLt" => "cublas".to_owned(),
        other => other.to_lowercase(),
    };
    let versions = cuda.map_or(vec![13, 12, 11], |cuda| vec![cuda]);
    let commands = versions.into_iter().map(|cuda| match (name, cuda) {
        ("NCCL", 13..) => format!("`pip install nvidia-{package}-cu13`"),
        (_, 13..) => format!("`pip install nvidia-{package}`"),
        (_, 12) => format!("`pip install nvidia-{package}-cu12`"),
        _ => format!("`pip install nvidia-{package}-cu11`"),
    });
    commands.collect::<Vec<_>>().join(" or ")
}

//! NVIDIA's libraries on made-up machines.

use super::*;
use crate::doctor::environment::OptionalLibrary;

fn library(
    name: &str,
    version: Option<&str>,
    path: Option<&str>,
    rejected: &[&str],
) -> OptionalLibrary {
    OptionalLibrary {
        name: name.to_owned(),
        version: version.map(str::to_owned),
        path: path.map(str::to_owned),
        rejected: rejected.iter().map(|reason| (*reason).to_owned()).collect(),
    }
}

/// Returns the finding about a library on a healthy machine whose driver supports this CUDA
/// version.
fn about(library: OptionalLibrary, cuda: &str) -> Finding {
    let environment = Environment {
        libraries: vec![library],
        library: loaded(cuda, "/usr/lib/libcuda.so.1"),
        ..healthy()
    };
    finding(&environment, "libraries")
}

#[test]
fn library_version_and_file() {
    let finding = about(
        library(
            "cuBLAS",
            Some("12.8.4"),
            Some("/usr/lib/libcublas.so.12.8.4"),
            &[],
        ),
        "12.8",
    );
    assert_eq!(
        (finding.severity, finding.what.as_str()),
        (
            Severity::Good,
            "cuBLAS 12.8.4 (/usr/lib/libcublas.so.12.8.4)"
        )
    );
    let finding = about(library("NCCL", Some("2.28.3"), None, &[]), "12.8");
    assert_eq!(
        (finding.severity, finding.what.as_str()),
        (Severity::Good, "NCCL 2.28.3")
    );
}

/// The package depends on the CUDA version of the driver.
#[test]
fn missing_library_is_a_note() {
    for (name, cuda, package) in [
        ("cuBLAS", "13.0", "`pip install nvidia-cublas`"),
        ("cuBLASLt", "12.8", "`pip install nvidia-cublas-cu12`"),
        ("cuRAND", "12.8", "`pip install nvidia-curand-cu12`"),
        ("cuFFT", "11.8", "`pip install nvidia-cufft-cu11`"),
        ("NCCL", "13.1", "`pip install nvidia-nccl-cu13`"),
    ] {
        let finding = about(library(name, None, None, &[]), cuda);
        assert_eq!(finding.severity, Severity::Note, "{finding:#?}");
        assert!(
            finding.what.starts_with(&format!("{name} was not found")),
            "{finding:#?}"
        );
        assert!(finding.fixes[0].starts_with(package), "{finding:#?}");
        assert!(
            finding.fixes[1].contains(&format!("CURIUM_{}_PATH", name.to_uppercase())),
            "{finding:#?}"
        );
    }
}

#[test]
fn unloadable_library_is_a_note() {
    let finding = about(
        library(
            "cuFFT",
            None,
            None,
            &["/opt/libcufft.so.11: wrong ELF class"],
        ),
        "12.8",
    );
    assert!(
        finding.what.contains("does not load") && finding.what.contains("wrong ELF class"),
        "{finding:#?}"
    );
}

/// The warning names the package for the driver's CUDA version.
#[test]
fn newer_library_is_a_warning() {
    let finding = about(library("cuBLAS", Some("13.1.0"), None, &[]), "12.8");
    assert_eq!(finding.severity, Severity::Warning, "{finding:#?}");
    assert!(
        finding
            .what
            .contains("for CUDA 13, and the driver supports CUDA 12 only"),
        "{finding:#?}"
    );
    assert_eq!(finding.fixes[0], "`pip install nvidia-cublas-cu12`");
    let finding = about(library("cuFFT", Some("12.0.0"), None, &[]), "12.8");
    assert_eq!(finding.severity, Severity::Warning, "{finding:#?}");
    let finding = about(library("cuFFT", Some("11.4.0"), None, &[]), "12.8");
    assert_eq!(finding.severity, Severity::Good, "{finding:#?}");
}

#[test]
fn package_per_version() {
    let environment = Environment {
        libraries: vec![library("cuRAND", None, None, &[])],
        ..bare()
    };
    let findings = findings(&environment);
    let finding = findings
        .iter()
        .find(|finding| finding.check == "libraries")
        .expect("no finding `libraries`");
    assert!(
        finding.fixes[0].contains("nvidia-curand`")
            && finding.fixes[0].contains("nvidia-curand-cu12`"),
        "{finding:#?}"
    );
}

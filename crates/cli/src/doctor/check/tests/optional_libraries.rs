//! NVIDIA's libraries on made-up machines.

use super::*;
use crate::doctor::environment::OptionalLibrary;

fn library(
    name: &str,
    version: Option<&str>,
    path: Option<&str>,
    rejected: &[&str],
) -> OptionalLibrary {
    let owned = |text: &str| text.to_owned();
    OptionalLibrary {
        name: owned(name),
        version: version.map(owned),
        path: path.map(owned),
        rejected: rejected.iter().copied().map(owned).collect(),
    }
}

/// Returns the finding about a library on a healthy machine whose driver supports this CUDA version.
fn about(library: OptionalLibrary, cuda: &str) -> Finding {
    let environment = Environment {
        libraries: vec![library],
        library: loaded(cuda, "/usr/lib/libcuda.so.1"),
        ..healthy()
    };
    finding(&environment, "libraries")
}

#[test]
fn library_that_is_found_is_named_with_its_version_and_its_file() {
    let found = about(
        library(
            "cuBLAS",
            Some("12.8.4"),
            Some("/usr/lib/libcublas.so.12.8.4"),
            &[],
        ),
        "12.8",
    );
    assert_eq!(
        (found.severity, found.what.as_str()),
        (
            Severity::Good,
            "cuBLAS 12.8.4 (/usr/lib/libcublas.so.12.8.4)"
        )
    );
    let found = about(library("NCCL", Some("2.28.3"), None, &[]), "12.8");
    assert_eq!(
        (found.severity, found.what.as_str()),
        (Severity::Good, "NCCL 2.28.3")
    );
}

#[test]
fn library_that_is_missing_is_a_note_with_the_package_for_the_driver() {
    for (name, cuda, package) in [
        ("cuBLAS", "13.0", "`pip install nvidia-cublas`"),
        ("cuBLASLt", "12.8", "`pip install nvidia-cublas-cu12`"),
        ("cuRAND", "12.8", "`pip install nvidia-curand-cu12`"),
        ("cuFFT", "11.8", "`pip install nvidia-cufft-cu11`"),
        ("NCCL", "13.1", "`pip install nvidia-nccl-cu13`"),
    ] {
        let found = about(library(name, None, None, &[]), cuda);
        assert_eq!(found.severity, Severity::Note, "{found:#?}");
        assert!(
            found.what.starts_with(&format!("{name} was not found")),
            "{found:#?}"
        );
        assert!(found.fixes[0].starts_with(package), "{found:#?}");
        assert!(
            found.fixes[1].contains(&format!("CURIUM_{}_PATH", name.to_uppercase())),
            "{found:#?}"
        );
    }
}

#[test]
fn library_that_does_not_load_is_a_note_with_the_reason() {
    let found = about(
        library(
            "cuFFT",
            None,
            None,
            &["/opt/libcufft.so.11: wrong ELF class"],
        ),
        "12.8",
    );
    assert!(
        found.what.contains("does not load") && found.what.contains("wrong ELF class"),
        "{found:#?}"
    );
}

#[test]
fn library_for_a_newer_cuda_than_the_driver_is_a_warning_with_the_package_for_it() {
    let found = about(library("cuBLAS", Some("13.1.0"), None, &[]), "12.8");
    assert_eq!(found.severity, Severity::Warning, "{found:#?}");
    assert!(
        found
            .what
            .contains("for CUDA 13, and the driver supports CUDA 12 only"),
        "{found:#?}"
    );
    assert_eq!(found.fixes[0], "`pip install nvidia-cublas-cu12`");
    let found = about(library("cuFFT", Some("12.0.0"), None, &[]), "12.8");
    assert_eq!(found.severity, Severity::Warning, "{found:#?}");
    let found = about(library("cuFFT", Some("11.4.0"), None, &[]), "12.8");
    assert_eq!(found.severity, Severity::Good, "{found:#?}");
}

#[test]
fn machine_without_a_driver_gets_the_package_of_each_version() {
    let environment = Environment {
        libraries: vec![library("cuRAND", None, None, &[])],
        ..bare()
    };
    let findings = findings(&environment);
    let found = findings
        .iter()
        .find(|finding| finding.check == "libraries")
        .expect("it is reported");
    assert!(
        found.fixes[0].contains("nvidia-curand`") && found.fixes[0].contains("nvidia-curand-cu12`"),
        "{found:#?}"
    );
}

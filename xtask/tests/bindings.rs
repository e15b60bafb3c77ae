//! `cargo xtask bindings check` with headers and generated files that have one fault each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn xtask(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the path of the newest pinned `cuda.h`.
fn newest_path() -> PathBuf {
    let output = xtask(&["bindings", "header"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    PathBuf::from(text(&output.stdout).trim())
}

/// Returns the newest pinned `cuda.h`.
fn newest_header() -> String {
    fs::read_to_string(newest_path()).expect("the header is readable")
}

/// Creates a folder with this `cuda.h` and the driver's other headers.
fn folder_with(header: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder can be created");
    let newest = newest_path();
    for file in fs::read_dir(newest.parent().expect("a file lies in a folder"))
        .expect("the folder is readable")
    {
        let file = file.expect("the folder is readable");
        let name = file.file_name().to_string_lossy().into_owned();
        if name.starts_with("cuda") && name.ends_with(".h") {
            fs::copy(file.path(), folder.path().join(name)).expect("the folder is writable");
        }
    }
    let path = folder.path().join("cuda.h");
    fs::write(&path, header).expect("the folder is writable");
    (folder, path)
}

/// Returns the output of `check` for the newest header with `from`, which occurs in it, replaced by `to`.
fn check_changed(from: &str, to: &str) -> Output {
    let header = newest_header();
    assert!(header.contains(from), "the header has `{from}`");
    let (_folder, path) = folder_with(&header.replace(from, to));
    xtask(&[
        "bindings",
        "check",
        "--header",
        path.to_str().expect("the path is UTF-8"),
    ])
}

/// Asserts that `check` fails and names the difference.
fn assert_names(output: &Output, difference: &str) {
    let message = text(&output.stderr);
    assert!(!output.status.success(), "{}", text(&output.stdout));
    assert!(
        message.contains(difference),
        "`{difference}` is not in:\n{message}"
    );
}

/// Copies the generated files, with `from` in `file` replaced by `to`.
fn changed_files(file: &str, from: &str, to: &str) -> TempDir {
    let generated = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/sys/src/generated");
    let folder = tempfile::tempdir().expect("a folder can be created");
    for name in ["types.rs", "functions.rs", "removed.rs"] {
        let mut text =
            fs::read_to_string(generated.join(name)).expect("the generated file is readable");
        if name == file {
            assert!(text.contains(from), "{file} has `{from}`");
            text = text.replacen(from, to, 1);
        }
        fs::write(folder.path().join(name), text).expect("the folder is writable");
    }
    folder
}

fn check_files(folder: &TempDir, version: &str) -> Output {
    let folder = folder.path().to_str().expect("the path is UTF-8");
    xtask(&[
        "bindings",
        "check",
        "--cuda",
        version,
        "--generated",
        folder,
    ])
}

#[test]
fn unchanged_newest_header_passes() {
    let (_folder, path) = folder_with(&newest_header());
    let output = xtask(&[
        "bindings",
        "check",
        "--header",
        path.to_str().expect("the path is UTF-8"),
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("13.5"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn changed_parameter_is_named() {
    let output = check_changed(
        "cuEventQuery(CUevent hEvent)",
        "cuEventQuery(CUstream hEvent)",
    );
    assert_names(&output, "CUDA 13.5: function cuEventQuery: `");
}

#[test]
fn removed_function_is_named() {
    let output = check_changed(
        "cuEventQuery(CUevent hEvent)",
        "renamedQuery(CUevent hEvent)",
    );
    assert_names(
        &output,
        "CUDA 13.5: since cuEventQuery: dated to 2.0, but CUDA 13.5 lacks it",
    );
}

#[test]
fn new_function_is_named() {
    let output = check_changed(
        "cuEventQuery(CUevent hEvent)",
        "cuEventQueryNew(CUevent hEvent)",
    );
    assert_names(&output, "CUDA 13.5: function cuEventQueryNew: `");
}

#[test]
fn moved_field_is_named() {
    let output = check_changed(
        "typedef struct CUDA_MEMCPY2D_st {",
        "typedef struct CUDA_MEMCPY2D_st { size_t inserted;",
    );
    assert_names(
        &output,
        "CUDA 13.5: size CUDA_MEMCPY2D_st: 136 bytes in CUDA, 128 in the bindings",
    );
    assert_names(
        &output,
        "CUDA 13.5: field CUDA_MEMCPY2D_st::Height: `usize` at offset 128 in CUDA",
    );
}

#[test]
fn changed_enumerator_is_named() {
    let output = check_changed(
        "CUDA_ERROR_OUT_OF_MEMORY                  = 2",
        "CUDA_ERROR_OUT_OF_MEMORY = 9002",
    );
    assert_names(
        &output,
        "CUDA 13.5: constant CUDA_ERROR_OUT_OF_MEMORY: 9002 in CUDA, 2 in the bindings",
    );
}

#[test]
fn changed_define_is_named() {
    let output = check_changed("#define CU_TRSF_SRGB", "#define CU_TRSF_SRGB 0x2000 +");
    assert_names(
        &output,
        "CUDA 13.5: constant CU_TRSF_SRGB: 8208 in CUDA, 16 in the bindings",
    );
}

#[test]
fn older_header_makes_entries_stale() {
    let output = check_changed("#define CUDA_VERSION 13050", "#define CUDA_VERSION 11080");
    assert_names(
        &output,
        "CUDA 11.8: no constant CU_LIMIT_MAX differs; its entry is stale",
    );
}

#[test]
fn header_without_a_version_is_an_error() {
    let output = check_changed("#define CUDA_VERSION 13050", "");
    assert_names(&output, "the header does not define CUDA_VERSION");
}

#[test]
fn missing_header_is_an_error_that_names_it() {
    assert_names(
        &xtask(&["bindings", "check", "--header", "/nowhere/cuda.h"]),
        "/nowhere/cuda.h",
    );
}

/// The error lists the pinned versions.
#[test]
fn unpinned_version_is_an_error() {
    assert_names(
        &xtask(&["bindings", "check", "--cuda", "9.9"]),
        "CUDA 9.9 is not pinned; known are 11.8, 12.0",
    );
}

/// One changed byte suffices; the message ends with the command.
#[test]
fn changed_generated_file_is_stale() {
    let output = check_files(
        &changed_files(
            "types.rs",
            "CU_IPC_HANDLE_SIZE: u32 = 64",
            "CU_IPC_HANDLE_SIZE: u32 = 65",
        ),
        "13.5",
    );
    assert_names(&output, "types.rs is stale");
    assert_names(
        &output,
        "CUDA 13.5: constant CU_IPC_HANDLE_SIZE: 64 in CUDA, 65 in the bindings",
    );
    assert!(
        text(&output.stderr)
            .trim_end()
            .ends_with("run `cargo xtask bindings generate` and commit the result")
    );
}

#[test]
fn generated_file_with_a_changed_comment_is_stale() {
    let output = check_files(
        &changed_files("functions.rs", "every function", "any function"),
        "13.5",
    );
    assert_names(&output, "functions.rs is stale");
}

#[test]
fn function_dated_too_late_is_named() {
    let files = changed_files(
        "functions.rs",
        "cuInit(Flags: ::core::ffi::c_uint) -> $crate::CUresult = 2000",
        "cuInit(Flags: ::core::ffi::c_uint) -> $crate::CUresult = 12000",
    );
    assert_names(
        &check_files(&files, "11.8"),
        "CUDA 11.8: since cuInit: dated to 12.0, but CUDA 11.8 has it",
    );
}

#[test]
fn removed_constant_that_is_not_ours_is_named() {
    let files = changed_files(
        "removed.rs",
        "pub const CU_TARGET_COMPUTE_20:",
        "pub const CU_TARGET_COMPUTE_19:",
    );
    assert_names(
        &check_files(&files, "11.8"),
        "CUDA 11.8: constant CU_TARGET_COMPUTE_20: 20 in CUDA, missing in the bindings",
    );
}

#[test]
fn empty_cache_without_a_network_is_a_clear_error() {
    let cache = tempfile::tempdir().expect("a folder can be created");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .args(["bindings", "header"])
        .env("CURIUM_CUDA_CACHE", cache.path());
    // Without an index or a folder of packages, pip works offline.
    let output = command
        .env("PIP_NO_INDEX", "1")
        .env("PIP_FIND_LINKS", "")
        .output()
        .expect("the program runs");
    assert_names(&output, "is not in the cache");
}

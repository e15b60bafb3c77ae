//! cudarc and its cuBLAS on Curium's stream and buffers, in one process on the simulator's library.

use curium_tests::TestResult;
use std::path::Path;
use std::process::Command;

use super::{SIMULATOR, build, example, folder};

/// The functions of cuBLAS that the example needs, with products of the host.
const BLAS: &str = include_str!("blas.rs");

/// Returns the output of the example with the simulator as the driver of both crates, and libraries in `folder`.
fn interop(folder: &Path) -> TestResult<String> {
    let driver = SIMULATOR.parent().ok_or("a file lies in a folder")?;
    let libraries = std::env::join_paths([driver, folder])?;
    let mut command = Command::new(example("cudarc_interop"));
    command
        .env("CURIUM_DRIVER_PATH", &*SIMULATOR)
        .env("LD_LIBRARY_PATH", libraries);
    let output = command.output()?;
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    Ok(out.into_owned())
}

#[test]
fn cudarc_copies_curium_buffers() -> TestResult {
    let out = interop(&folder("without_blas"))?;
    assert_eq!(out, "copied: [3.0, 6.0, 9.0]\nno cuBLAS found\n");
    Ok(())
}

/// cuBLAS as loaded by cudarc multiplies buffers of Curium on Curium's stream.
#[test]
fn cudarc_multiplies_buffers() -> TestResult {
    let folder = folder("blas");
    build(&folder.join("libcublas.so"), BLAS);
    let product = |row: usize, column: usize| {
        (0..4)
            .map(|k| (k * 3 + row) * (column * 4 + k))
            .sum::<usize>()
    };
    let expected: Vec<_> = (0..15)
        .map(|i| 3.0 * product(i % 3, i / 3) as f32)
        .collect();
    assert_eq!(
        interop(&folder)?,
        format!("copied: [3.0, 6.0, 9.0]\nmultiplied: {expected:?}\n")
    );
    Ok(())
}

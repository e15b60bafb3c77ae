//! cudarc and its cuBLAS on Curium's stream and buffers, in one process on the simulator's library.

use std::process::Command;

use curium_tests::TestResult;

use super::{SIMULATOR, example};

/// Both crates use the simulator's driver, and cudarc its cuBLAS, which multiplies buffers of
/// Curium on Curium's stream.
#[test]
fn cudarc_multiplies_buffers() -> TestResult {
    let driver = SIMULATOR.parent().ok_or("no parent folder")?;
    let mut command = Command::new(example("cudarc_interop"));
    command
        .env("CURIUM_DRIVER_PATH", &*SIMULATOR)
        .env("LD_LIBRARY_PATH", driver);
    let output = command.output()?;
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    let mut products = Vec::new();
    for index in 0..15 {
        let row = index % 3;
        let column = index / 3;
        let sum: usize = (0..4).map(|k| (k * 3 + row) * (column * 4 + k)).sum();
        products.push(3.0 * sum as f32);
    }
    assert_eq!(
        out,
        format!("copied: [3.0, 6.0, 9.0]\nmultiplied: {products:?}\n")
    );
    Ok(())
}

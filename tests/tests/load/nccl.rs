//! NCCL in the simulator library.

use curium_tests::TestResult;
use std::path::Path;

use super::{SIMULATOR, assert_reports_saxpy, report_command};

#[test]
fn ranks_exchange_data() -> TestResult {
    let folder = SIMULATOR.parent().ok_or("no parent folder")?;
    let nccl = SIMULATOR.with_file_name("libnccl.so.2");
    let named: &[(&str, &Path)] = &[
        ("CURIUM_DRIVER_PATH", &SIMULATOR),
        ("CURIUM_NCCL_PATH", &nccl),
    ];
    for variables in [named, &[("LD_LIBRARY_PATH", folder)]] {
        let mut command = report_command(variables);
        let output = command
            .arg("ranks")
            .env("CURIUM_SIM_DEVICES", "3")
            .output()?;
        let out = assert_reports_saxpy(&output);
        assert!(out.contains("ranks: [6.0, 6.0, 6.0]"), "{out}");
    }
    Ok(())
}

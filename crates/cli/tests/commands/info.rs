//! `curium info`, run as a program.

use std::process::Output;

use crate::program;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Runs the program without a driver. Returns its exit code, its output and its errors.
fn info(
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> TestResult<(Option<i32>, String, String)> {
    let mut command = program::curium();
    command
        .arg("info")
        .args(arguments)
        .env("CURIUM_DRIVER_PATH", "/absent/libcuda.so.1");
    let Output {
        status,
        stdout,
        stderr,
    } = command.envs(variables.iter().copied()).output()?;
    Ok((
        status.code(),
        String::from_utf8_lossy(&stdout).into_owned(),
        String::from_utf8_lossy(&stderr).into_owned(),
    ))
}

#[test]
fn info_shows_devices() -> TestResult {
    let variables = [
        ("CURIUM_SIM_DEVICES", "2"),
        ("CURIUM_SIM_DRIVER_VERSION", "12.4"),
    ];
    let (code, stdout, stderr) = info(&["--device", "sim"], &variables)?;
    assert_eq!(code, Some(0), "{stderr}");
    for said in [
        "CUDA 12.4",
        "device 0",
        "device 1",
        "compute capability",
        "CUDA 13.0",
        "--missing lists them",
    ] {
        assert!(stdout.contains(said), "{said}: {stdout}");
    }
    assert!(
        !stdout.contains("cuCheckpointProcessLock") && !stdout.contains("WARP_SIZE"),
        "{stdout}"
    );
    let (_, stdout, _) = info(
        &["--device", "sim", "--missing", "--attributes"],
        &variables,
    )?;
    assert!(
        stdout.contains("cuCheckpointProcessLock") && stdout.contains("WARP_SIZE"),
        "{stdout}"
    );
    Ok(())
}

#[test]
fn info_without_a_gpu_falls_back() -> TestResult {
    let (code, _, stderr) = info(&[], &[])?;
    assert_eq!((code, stderr.lines().count()), (Some(0), 1));
    assert!(
        stderr.contains("No usable GPU; falling back to the simulator"),
        "{stderr}"
    );
    let (code, stdout, stderr) = info(&["--device", "gpu"], &[])?;
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("no usable GPU"), "{stderr}");
    Ok(())
}

//! `curium info`, run as a program.

use crate::program::{self, Outcome};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Runs the program without a driver.
fn info(arguments: &[&str], variables: &[(&str, &str)]) -> TestResult<Outcome> {
    let mut command = program::curium();
    command
        .arg("info")
        .args(arguments)
        .env("CURIUM_DRIVER_PATH", "/absent/libcuda.so.1")
        .envs(variables.iter().copied());
    Ok(program::run(&mut command)?)
}

#[test]
fn info_shows_devices() -> TestResult {
    let variables = [
        ("CURIUM_SIM_DEVICES", "2"),
        ("CURIUM_SIM_DRIVER_VERSION", "12.4"),
    ];
    let Outcome {
        code,
        stdout,
        stderr,
    } = info(&["--device", "sim"], &variables)?;
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
    let Outcome { stdout, .. } = info(
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
    let Outcome { code, stderr, .. } = info(&[], &[])?;
    assert_eq!((code, stderr.lines().count()), (Some(0), 1));
    assert!(
        stderr.contains("No usable GPU; falling back to the simulator"),
        "{stderr}"
    );
    let Outcome {
        code,
        stdout,
        stderr,
    } = info(&["--device", "gpu"], &[])?;
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("no usable GPU"), "{stderr}");
    Ok(())
}

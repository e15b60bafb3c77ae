//! `curium trace`, run as a program.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::program;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const CURIUM: &str = env!("CARGO_BIN_EXE_curium");

fn trace(folder: &Path, arguments: &[&str]) -> TestResult<(Option<i32>, String)> {
    let mut command = program::curium();
    command.arg("trace").args(arguments).current_dir(folder);
    let Output { status, stderr, .. } = command
        .env("CURIUM_DRIVER_PATH", folder.join("absent"))
        .env("CURIUM_CUPTI_PATH", folder.join("absent"))
        .output()?;
    Ok((status.code(), String::from_utf8(stderr)?))
}

/// Traces `curium` with `arguments`.
fn trace_curium(
    folder: &Path,
    options: &[&str],
    arguments: &[&str],
) -> TestResult<(Option<i32>, String)> {
    let words = program::words(CURIUM);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    trace(folder, &[options, &["--"], &words, arguments].concat())
}

#[test]
fn trace_keeps_the_exit_code() -> TestResult {
    let folder = tempfile::tempdir()?;
    let demo = ["demo", "--device", "sim", "--width", "8", "--height", "8"];
    let (code, stderr) = trace_curium(folder.path(), &["--device", "gpu", "-o", "t.json"], &demo)?;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("wrote t.json") && stderr.contains("functions on 1 thread of 1 process"),
        "{stderr}"
    );
    let text = fs::read_to_string(folder.path().join("t.json"))?;
    let events: Vec<serde_json::Value> = serde_json::from_str(&text)?;
    for event in &events {
        let begin = event["ts"].as_f64().ok_or("no `ts` number")?;
        let duration = event["dur"].as_f64().ok_or("no `dur` number")?;
        assert!(begin > 0.0 && duration >= 0.0, "{event}");
    }
    for name in ["cuInit", "cuLaunchKernel", "cuMemcpyDtoHAsync_v2"] {
        assert!(
            events.iter().any(|event| event["name"] == name),
            "{name}: {text}"
        );
    }

    let (code, _) = trace_curium(
        folder.path(),
        &["--device", "gpu"],
        &["demo", "--device", "sim", "-o", "absent/x.png"],
    )?;
    assert_eq!(
        code,
        Some(1),
        "a program that fails before its first call leaves no trace"
    );
    Ok(())
}

#[test]
fn program_without_a_call() -> TestResult {
    let folder = tempfile::tempdir()?;
    let (code, stderr) = trace_curium(folder.path(), &["--device", "gpu"], &["demo", "--help"])?;
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("made no traceable call") && stderr.contains("--device sim"),
        "{stderr}"
    );
    assert!(
        !folder.path().join("curium-trace.json").exists(),
        "no empty trace is left behind"
    );
    Ok(())
}

/// A missing program or simulator is named.
#[test]
fn missing_program_is_named() -> TestResult {
    let folder = tempfile::tempdir()?;
    let (code, stderr) = trace(folder.path(), &["--device", "gpu", "--", "./absent"])?;
    assert!(
        code == Some(1) && stderr.contains("./absent could not be started"),
        "{stderr}"
    );
    let (code, stderr) = trace(
        folder.path(),
        &[
            "--device",
            "sim",
            "--simulator",
            "none/libcuda.so.1",
            "--",
            CURIUM,
        ],
    )?;
    assert!(
        code == Some(1) && stderr.contains("there is no file none/libcuda.so.1"),
        "{stderr}"
    );
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn missing_simulator_is_built() -> TestResult {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    let folder = tempfile::tempdir()?;
    let target = folder.path().join("target");
    let program = target.join("debug/curium");
    fs::create_dir_all(target.join("debug"))?;
    fs::copy(CURIUM, &program)?;
    // A stand-in for cargo, which would compile for minutes.
    let cargo = folder.path().join("cargo");
    let script = "#!/bin/sh\nwhile [ \"$1\" != --target-dir ]; do shift; done\nmkdir \"$2/release\"\n: >\"$2/release/libcurium_sim_libraries.so\"\n";
    fs::write(&cargo, script)?;
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755))?;
    let words = program::words(program.to_str().ok_or("the path is not UTF-8")?);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
        .args(["trace", "--device", "sim", "--", "true"])
        .current_dir(folder.path())
        .env("CARGO", &cargo);
    let output = command.output()?;
    let stderr = String::from_utf8(output.stderr)?;
    assert!(
        stderr.contains("building the simulator's libcuda.so.1"),
        "{stderr}"
    );
    assert!(
        stderr.contains("made no traceable call"),
        "the built library is used: {stderr}"
    );
    assert!(target.join("sim/libcuda.so.1").is_file());
    assert!(target.join("sim/libcuda.so").is_file());
    assert!(target.join("sim/libnccl.so.2").is_file());
    Ok(())
}

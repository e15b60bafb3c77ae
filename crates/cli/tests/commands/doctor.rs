//! `curium doctor`, run as a program.

use std::fs;
use std::path::Path;

use crate::program::{self, Outcome};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Runs the program without a driver.
fn curium(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let mut command = program::curium();
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .env(
            "CURIUM_DRIVER_PATH",
            folder.join("absent").join("libcuda.so.1"),
        )
        .envs(variables.iter().copied());
    program::run(&mut command).expect("failed to start the program")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("failed to create a folder")
}

#[test]
fn missing_driver_exits_with_3() {
    let folder = folder();
    let outcome = curium(folder.path(), &["doctor"], &[]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(3), ""));
    for said in [
        "CURIUM_DRIVER_PATH",
        "unset CURIUM_DRIVER_PATH",
        "absent",
        "CUDA does not work here",
    ] {
        assert!(outcome.stdout.contains(said), "{said}: {}", outcome.stdout);
    }
}

#[test]
fn every_device_runs_a_kernel() {
    let folder = folder();
    let outcome = curium(
        folder.path(),
        &["doctor", "--device", "sim"],
        &[("CURIUM_SIM_DEVICES", "2")],
    );
    assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
    assert!(
        outcome.stdout.contains("device 0") && outcome.stdout.contains("device 1"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn saved_machine_findings() -> TestResult {
    let folder = folder();
    let saved = curium(folder.path(), &["doctor", "--save", "machine.json"], &[]);
    let elsewhere = curium(
        folder.path(),
        &["doctor", "--from", "machine.json"],
        &[("CURIUM_DRIVER_PATH", "")],
    );
    assert_eq!(
        (saved.code, &saved.stdout),
        (elsewhere.code, &elsewhere.stdout)
    );
    fs::write(folder.path().join("other.json"), "{}")?;
    let outcome = curium(folder.path(), &["doctor", "--from", "other.json"], &[]);
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome
            .stderr
            .contains("other.json is not a file of `curium doctor --save`"),
        "{}",
        outcome.stderr
    );
    Ok(())
}

#[test]
fn too_old_driver_is_reported() -> TestResult {
    let folder = folder();
    fs::write(
        folder.path().join("new.ptx"),
        ".version 8.8\n.target sm_90\n",
    )?;
    let doctor = ["doctor", "--device", "sim", "--ptx", "new.ptx"];
    let outcome = curium(
        folder.path(),
        &doctor,
        &[("CURIUM_SIM_DRIVER_VERSION", "12.4")],
    );
    assert_eq!(outcome.code, Some(3));
    assert!(
        outcome.stdout.contains("CUDA 12.4 is too old for it"),
        "{}",
        outcome.stdout
    );
    let outcome = curium(
        folder.path(),
        &doctor,
        &[("CURIUM_SIM_DRIVER_VERSION", "12.9")],
    );
    assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
    fs::write(folder.path().join("new.ptx"), "nothing")?;
    assert!(
        curium(folder.path(), &doctor, &[])
            .stderr
            .contains("new.ptx is not PTX")
    );
    Ok(())
}

/// PTX that is newer than every known version is too new for the newest known driver.
/// Only the header of a PTX file is read, and comments in any encoding are accepted.
#[test]
fn ptx_is_read_up_to_its_header() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    fs::write(
        folder.path().join("comment.ptx"),
        b"// Gr\xfc\xdfe\n.version 8.0\n.target sm_75\n",
    )?;
    let outcome = curium(
        folder.path(),
        &["doctor", "--device", "sim", "--ptx", "comment.ptx"],
        &[],
    );
    assert!(
        outcome
            .stdout
            .contains("the PTX is of version 8.0 for sm_75"),
        "{}{}",
        outcome.stdout,
        outcome.stderr
    );
    if cfg!(target_os = "linux") {
        let outcome = curium(
            folder.path(),
            &["doctor", "--device", "sim", "--ptx", "/dev/zero"],
            &[],
        );
        assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("is not PTX"), "{}", outcome.stderr);
    }
    Ok(())
}

/// The exit code does not depend on a receiver of the output.
#[test]
fn closed_output_keeps_exit_code() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let exit_code = |arguments: &[&str], closes_stderr: bool| {
        let (_, closed) = std::io::pipe()?;
        let mut command = program::curium();
        command
            .args(arguments)
            .env("CURIUM_DRIVER_PATH", folder.path().join("libcuda.so.1"));
        match closes_stderr {
            true => command.stderr(closed),
            false => command.stdout(closed),
        };
        std::io::Result::Ok(command.status()?.code())
    };
    assert_eq!(exit_code(&["doctor"], false)?, Some(3));
    assert_eq!(
        exit_code(&["doctor", "--ptx", "absent.ptx"], true)?,
        Some(1)
    );
    assert_eq!(exit_code(&["doctor", "--json"], false)?, Some(3));
    Ok(())
}

/// Like ptxas, the program accepts directives without blanks between them.
#[test]
fn compact_ptx_header() -> std::io::Result<()> {
    let folder = folder();
    let ptx = ".version 8.0.target sm_75.address_size 64\n.visible .entry k() { ret; }";
    fs::write(folder.path().join("compact.ptx"), ptx)?;
    let doctor = ["doctor", "--device", "sim", "--ptx", "compact.ptx"];
    let outcome = curium(folder.path(), &doctor, &[]);
    assert_eq!(
        outcome.code,
        Some(0),
        "{}{}",
        outcome.stdout,
        outcome.stderr
    );
    let expected = "the PTX is of version 8.0 for sm_75: the driver accepts this version";
    assert!(outcome.stdout.contains(expected), "{}", outcome.stdout);
    Ok(())
}

#[test]
fn unknown_ptx_version() -> std::io::Result<()> {
    let folder = folder();
    let doctor = ["doctor", "--device", "sim", "--ptx", "new.ptx"];
    for (version, code, text) in [
        ("9.5", 0, "the driver accepts this version"),
        ("9.9", 3, "CUDA 13.5 is too old for it"),
    ] {
        let ptx = format!(".version {version}\n.target sm_75\n");
        fs::write(folder.path().join("new.ptx"), ptx)?;
        let variables = [("CURIUM_SIM_DRIVER_VERSION", "13.5")];
        let outcome = curium(folder.path(), &doctor, &variables);
        assert_eq!(outcome.code, Some(code), "{version}: {}", outcome.stdout);
        assert!(
            outcome.stdout.contains(text),
            "{version}: {}",
            outcome.stdout
        );
    }
    Ok(())
}

#[test]
fn colors_follow_the_settings() {
    let folder = folder();
    let doctor = ["doctor", "--device", "sim"];
    for (arguments, variables, is_colored) in [
        (&[][..], &[][..], false), // a pipe is no terminal
        (&["--color", "always"], &[("NO_COLOR", "1")], true),
        (&["--color", "never"], &[], false),
    ] {
        let arguments = [&doctor, arguments].concat();
        let outcome = curium(folder.path(), &arguments, variables);
        assert_eq!(outcome.stdout.contains('\x1b'), is_colored, "{arguments:?}");
    }
}

#[test]
fn unknown_command() {
    let outcome = curium(folder().path(), &["benchmark"], &[]);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome
            .stderr
            .contains("unrecognized subcommand 'benchmark'"),
        "{}",
        outcome.stderr
    );
}

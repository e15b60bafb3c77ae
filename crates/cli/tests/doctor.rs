//! `curium doctor` and `curium info`, run as programs.

mod program;

use std::fs;
use std::path::Path;
use std::process::Output;

struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs the program without a driver.
fn curium(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let mut command = program::curium();
    command.args(arguments).current_dir(folder).env_remove("NO_COLOR");
    command.env("CURIUM_DRIVER_PATH", folder.join("absent").join("libcuda.so.1"));
    let Output { status, stdout, stderr } =
        command.envs(variables.iter().copied()).output().expect("the program was built");
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    Outcome { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder can be created")
}

#[test]
fn doctor_of_a_machine_without_a_driver_explains_it_and_exits_with_3() {
    let folder = folder();
    let outcome = curium(folder.path(), &["doctor"], &[]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(3), ""));
    for said in ["CURIUM_DRIVER_PATH", "unset CURIUM_DRIVER_PATH", "absent", "CUDA does not work here"] {
        assert!(outcome.stdout.contains(said), "{said}: {}", outcome.stdout);
    }
}

#[test]
fn doctor_runs_a_kernel_on_every_simulated_device() {
    let folder = folder();
    let outcome = curium(folder.path(), &["doctor", "--device", "sim"], &[("CURIUM_SIM_DEVICES", "2")]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("device 0") && outcome.stdout.contains("device 1"), "{}", outcome.stdout);
}

#[test]
fn saved_machine_has_the_same_findings_on_another_machine() {
    let folder = folder();
    let here = curium(folder.path(), &["doctor", "--save", "machine.json"], &[]);
    let elsewhere = curium(folder.path(), &["doctor", "--from", "machine.json"], &[("CURIUM_DRIVER_PATH", "")]);
    assert_eq!((here.code, &here.stdout), (elsewhere.code, &elsewhere.stdout));
    fs::write(folder.path().join("other.json"), "{}").expect("the folder is writable");
    let outcome = curium(folder.path(), &["doctor", "--from", "other.json"], &[]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("other.json is not a file of `curium doctor --save`"), "{}", outcome.stderr);
}

#[test]
fn ptx_that_a_driver_is_too_old_for_is_found() {
    let folder = folder();
    fs::write(folder.path().join("new.ptx"), ".version 8.8\n.target sm_90\n").expect("the folder is writable");
    let doctor = ["doctor", "--device", "sim", "--ptx", "new.ptx"];
    let outcome = curium(folder.path(), &doctor, &[("CURIUM_SIM_DRIVER_VERSION", "12.4")]);
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.stdout.contains("CUDA 12.4 is too old for it"), "{}", outcome.stdout);
    let outcome = curium(folder.path(), &doctor, &[("CURIUM_SIM_DRIVER_VERSION", "12.9")]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
    fs::write(folder.path().join("new.ptx"), "nothing").expect("the folder is writable");
    assert!(curium(folder.path(), &doctor, &[]).stderr.contains("new.ptx is not PTX"));
}

#[test]
fn colors_follow_the_option_and_the_environment() {
    let folder = folder();
    let doctor = |arguments: &[&str], variables: &[(&str, &str)]| {
        curium(folder.path(), &[&["doctor", "--device", "sim"], arguments].concat(), variables).stdout.contains('\x1b')
    };
    assert!(!doctor(&[], &[]), "a pipe is no terminal");
    assert!(doctor(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(!doctor(&["--color", "never"], &[]));
}

#[test]
fn info_shows_the_devices_and_what_an_older_driver_lacks() {
    let folder = folder();
    let variables = [("CURIUM_SIM_DEVICES", "2"), ("CURIUM_SIM_DRIVER_VERSION", "12.4")];
    let outcome = curium(folder.path(), &["info", "--device", "sim"], &variables);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for said in ["CUDA 12.4", "device 0", "device 1", "compute capability", "CUDA 13.0", "--missing lists them"] {
        assert!(outcome.stdout.contains(said), "{said}: {}", outcome.stdout);
    }
    assert!(
        !outcome.stdout.contains("cuCheckpointProcessLock") && !outcome.stdout.contains("WARP_SIZE"),
        "{}",
        outcome.stdout
    );
    let all = curium(folder.path(), &["info", "--device", "sim", "--missing", "--attributes"], &variables);
    assert!(all.stdout.contains("cuCheckpointProcessLock") && all.stdout.contains("WARP_SIZE"), "{}", all.stdout);
}

#[test]
fn info_without_a_gpu_falls_back_unless_one_is_requested() {
    let folder = folder();
    let outcome = curium(folder.path(), &["info"], &[]);
    assert_eq!(outcome.code, Some(0));
    assert!(
        outcome.stderr.contains("No usable GPU; falling back to the simulator") && outcome.stderr.lines().count() == 1
    );
    let outcome = curium(folder.path(), &["info", "--device", "gpu"], &[]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
    assert!(outcome.stderr.contains("no usable GPU"), "{}", outcome.stderr);
}

#[test]
#[cfg(not(feature = "full"))]
fn command_that_this_build_lacks_names_the_feature_and_one_that_does_not_exist_is_a_wrong_command_line() {
    let folder = folder();
    let outcome = curium(folder.path(), &["bench", "--quick"], &[]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("cargo run --release --features full -- bench"), "{}", outcome.stderr);
    let outcome = curium(folder.path(), &["benchmark"], &[]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("unrecognized subcommand 'benchmark'"), "{}", outcome.stderr);
}

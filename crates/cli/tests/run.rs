//! `curium run`, run as a program.
#![cfg(unix)]

mod program;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs a shell script on every rank. Returns the exit code, the sorted lines of output, and the errors.
fn run(arguments: &[&str], script: &str) -> (Option<i32>, Vec<String>, String) {
    let mut command = program::curium();
    command
        .arg("run")
        .args(arguments)
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::null());
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program was built");
    let mut lines: Vec<_> = String::from_utf8_lossy(&stdout)
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    (
        status.code(),
        lines,
        String::from_utf8(stderr).expect("the program writes UTF-8"),
    )
}

#[test]
fn every_rank_has_its_own_number_and_the_same_rendezvous() {
    let script = "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE; echo $MASTER_ADDR $MASTER_PORT $CURIUM_TOKEN >&2";
    let (code, lines, errors) = run(&["--ranks", "3"], script);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(
        lines,
        [
            "[0] 0 of 3, 0 of 3",
            "[1] 1 of 3, 1 of 3",
            "[2] 2 of 3, 2 of 3"
        ]
    );
    let mut places: Vec<_> = errors
        .lines()
        .filter_map(|line| line.split_once("] "))
        .map(|(_, place)| place)
        .collect();
    places.sort_unstable();
    places.dedup();
    let [place] = places.as_slice() else {
        panic!("{places:?}")
    };
    assert!(
        place.starts_with("127.0.0.1 ")
            && place
                .split(' ')
                .nth(2)
                .is_some_and(|token| token.len() == 64),
        "{place}"
    );
}

#[test]
fn rank_that_fails_ends_the_others_and_gives_its_exit_code() {
    let start = Instant::now();
    let script = "if [ $RANK = 2 ]; then exit 7; fi; echo begun; exec sleep 100";
    let (code, lines, errors) = run(&["-n", "4", "--grace", "100"], script);
    assert_eq!(code, Some(7), "{errors}");
    assert!(
        errors.contains("rank 2 failed (exit status: 7)"),
        "{errors}"
    );
    assert!(
        lines.iter().all(|line| line.ends_with("begun")),
        "{lines:?}"
    );
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn rank_that_ignores_the_request_to_terminate_is_killed_after_the_grace_period() {
    let start = Instant::now();
    let script =
        "if [ $RANK = 1 ]; then sleep 0.3; exit 3; fi; trap '' TERM; while :; do sleep 0.1; done";
    let (code, _, errors) = run(&["-n", "2", "--grace", "1"], script);
    assert_eq!(code, Some(3), "{errors}");
    assert!(
        (Duration::from_secs(1)..Duration::from_secs(20)).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn rank_that_a_signal_ends_gives_128_plus_its_number() {
    let (code, _, errors) = run(
        &["-n", "2"],
        "if [ $RANK = 1 ]; then kill -KILL $$; fi; exec sleep 60",
    );
    assert_eq!(code, Some(137), "{errors}");
}

#[test]
fn request_to_terminate_ends_every_rank() {
    let script = "trap 'echo ended; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    let command = ["run", "-n", "2", "--", "sh", "-c", script];
    let mut program = program::curium()
        .args(command)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let mut output = BufReader::new(program.stdout.take().expect("the output is a pipe"))
        .lines()
        .map_while(Result::ok);
    let mut lines: Vec<String> = output.by_ref().take(2).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let killed = Command::new("kill")
        .arg(program.id().to_string())
        .status()
        .expect("kill exists");
    assert!(killed.success());
    lines.extend(output);
    assert_eq!(program.wait().expect("it ended").code(), Some(130));
    lines.sort();
    assert_eq!(lines, ["[0] begun", "[0] ended", "[1] begun", "[1] ended"]);
}

#[test]
fn simulated_ranks_get_the_simulators_libraries_and_a_device_for_each_rank() {
    let folder = tempfile::tempdir().expect("a folder can be created");
    let file = |name| {
        let path = folder.path().join(name);
        std::fs::write(&path, "").expect("the folder is writable");
        path.to_str().expect("the path is text").to_owned()
    };
    // The shell loads neither.
    let (driver, nccl) = (file("libcuda.so.1"), file("libnccl.so.2"));
    let arguments = ["--ranks", "3", "--simulated", "--simulator", &driver];
    let (code, lines, errors) = run(
        &arguments,
        "echo $CURIUM_SIM_DEVICES $CURIUM_DRIVER_PATH $CURIUM_NCCL_PATH",
    );
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(
        lines,
        [0, 1, 2].map(|rank| format!("[{rank}] 3 {driver} {nccl}"))
    );
}

#[test]
fn program_that_cannot_be_started_is_named() {
    let output = program::curium()
        .args(["run", "-n", "2", "--", "./absent"])
        .output()
        .expect("the program was built");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("./absent could not be started"),
        "{output:?}"
    );
}

#[test]
fn number_of_ranks_is_positive() {
    let output = program::curium()
        .args(["run", "-n", "0", "--", "true"])
        .output()
        .expect("the program was built");
    assert_eq!(output.status.code(), Some(2));
}

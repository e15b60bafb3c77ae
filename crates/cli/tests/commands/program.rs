//! The program under test.

use std::io;
use std::process::{Command, Output};

/// Returns the command line that starts the program at `path`. `CURIUM_TEST_RUNNER` is the emulator
/// for it, with its arguments, where the system has none.
pub(crate) fn words(path: &str) -> Vec<String> {
    let runner = std::env::var("CURIUM_TEST_RUNNER").unwrap_or_default();
    runner
        .split_whitespace()
        .chain([path])
        .map(str::to_owned)
        .collect()
}

/// Returns a command that runs `curium`.
pub(crate) fn curium() -> Command {
    let words = words(env!("CARGO_BIN_EXE_curium"));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// The result of a program that has ended.
pub(crate) struct Outcome {
    /// The exit code; `None` if a signal ended the program.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command until it ends.
pub(crate) fn run(command: &mut Command) -> io::Result<Outcome> {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output()?;
    Ok(Outcome {
        code: status.code(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

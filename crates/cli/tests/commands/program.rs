//! The program under test.

use std::process::Command;

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

//! Tests that make the rest of their process useless.

use std::process::Command;

use crate::uses_cuda;

/// Names the test that a process was started for.
const CHILD: &str = "CURIUM_TEST_CHILD";
/// What a child prints when its test has run: a filter that matches no test succeeds too.
const MARK: &str = "the test ran in its own process";

/// Runs `test`, which is the whole body of the test called `name` (its path in the binary), in a process of its own if it runs on
/// this machine's driver, since no context of a process survives what such a test does. A simulator does.
///
/// # Panics
///
/// If the test fails in its process, or is not found there.
#[expect(clippy::print_stderr, reason = "the test harness captures what a test prints, which the other process reads")]
pub fn in_own_process(name: &str, test: impl FnOnce()) {
    if !uses_cuda() {
        return test();
    }
    if std::env::var(CHILD).is_ok_and(|child| child == name) {
        test();
        eprintln!("{MARK}");
        return;
    }
    let program = std::env::current_exe().expect("a program knows its own path");
    let mut command = Command::new(program);
    let output = command.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, name).output();
    let output = output.expect("the test binary can be started again");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains(MARK), "{name} in its own process: {}\n{text}", output.status);
}

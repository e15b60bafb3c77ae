//! Runs tests that make their process unusable, or that test its end, in a process of their own.

use crate::TestResult;
use std::fmt::Debug;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{TestOutcome, uses_cuda};

/// The environment variable with the name of the test that a process was started for.
const CHILD: &str = "CURIUM_TEST_CHILD";
/// The input of a child.
const INPUT: &str = "CURIUM_TEST_INPUT";
/// The line that a child prints when its test has run: a filter that matches no test succeeds too.
const MARK: &str = "the test ran in its own process";
/// The time limit of a process: a process that hangs fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `test`, the whole body of the calling test, in a process of its own if it runs on this
/// machine's driver, because such a test makes every context of the process unusable. A simulated
/// context is not affected.
///
/// # Panics
///
/// Panics if the test fails in its process or is not found there.
pub fn in_own_process<R: TestOutcome>(test: impl FnOnce() -> R) -> R {
    if uses_cuda() {
        in_new_process(test)
    } else {
        test()
    }
}

/// Runs `test`, the whole body of the calling test, in a new process, which ends with
/// whatever the test does not free.
///
/// # Panics
///
/// Panics if the test fails in its process, the process exits with an error, or the test is not
/// found there.
pub fn in_new_process<R: TestOutcome>(test: impl FnOnce() -> R) -> R {
    if OtherProcess::is_this() {
        return test();
    }
    drop(OtherProcess::start(Stdio::null()).expect_success());
    R::skipped()
}

/// Runs `test` in a new process as [`in_new_process`] does, and passes its standard output and
/// standard error to `check`, in this process. The output includes the lines of the test harness.
///
/// # Panics
///
/// Panics if the test fails in its process or is not found there.
pub fn with_output_of_new_process(test: impl FnOnce(), check: impl FnOnce(&str, &str)) {
    if OtherProcess::is_this() {
        return test();
    }
    let [output, error] = OtherProcess::start(Stdio::null()).expect_success();
    check(&output, &error);
}

/// Runs `test` with `input`, a part of the calling test, in a new process that ends with `test`.
/// Returns the standard output of that process.
///
/// # Errors
///
/// Returns the standard output if the process died or hung.
///
/// # Panics
///
/// Panics if no process can be started.
pub fn outcome_of_new_process(
    input: &str,
    test: impl FnOnce(&str) -> TestResult,
) -> Result<String, String> {
    if OtherProcess::is_this() {
        let input = std::env::var(INPUT).map_err(|error| error.to_string())?;
        let outcome = test(&input);
        assert!(outcome.is_ok(), "{outcome:?}");
        std::process::exit(0);
    }
    let (success, [written, _]) =
        OtherProcess::start_with(Stdio::null(), &[(INPUT, input)]).outcome();
    if success { Ok(written) } else { Err(written) }
}

/// Runs `test`, a part of the calling test, in `count` new processes at once, with the number of
/// each and `input`. Returns for each process whether it succeeded, and its standard output and
/// standard error.
///
/// # Errors
///
/// Returns an error in a new process that was started without its number and input.
///
/// # Panics
///
/// Panics if no process can be started.
pub fn outcomes_of_processes<R: TestOutcome + Debug>(
    count: usize,
    input: &str,
    test: impl FnOnce(usize, &str) -> R,
) -> TestResult<Vec<(bool, String)>> {
    if OtherProcess::is_this() {
        let given = std::env::var(INPUT)?;
        let (number, input) = given.split_once(' ').ok_or("no space in the input")?;
        let outcome = test(number.parse()?, input);
        assert!(!outcome.is_failure(), "{outcome:?}");
        std::process::exit(0);
    }
    let processes: Vec<_> = (0..count)
        .map(|number| {
            let input = format!("{number} {input}");
            OtherProcess::start_with(Stdio::null(), &[(INPUT, &input)])
        })
        .collect();
    let outcomes = processes.into_iter().map(OtherProcess::outcome);
    Ok(outcomes
        .map(|(success, output)| (success, output.concat()))
        .collect())
}

/// Runs `this`, a part of the calling test, while `other` runs in a new process, which is killed at
/// an arbitrary point when `this` has returned. The other process finds the identifier of this one
/// in [`std::os::unix::process::parent_id`].
///
/// # Panics
///
/// Panics if `this` panics. The process is killed in that case too.
#[cfg(unix)]
pub fn beside_a_process_that_is_killed<T>(
    other: impl FnOnce() -> std::convert::Infallible,
    this: impl FnOnce() -> T,
) -> T {
    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            self.0
                .kill()
                .and_then(|()| self.0.wait())
                .expect("kill failed");
        }
    }

    if OtherProcess::is_this() {
        other();
    }
    let killed = Killed(OtherProcess::start(Stdio::null()).child);
    let result = this();
    drop(killed);
    result
}

/// Returns a command that runs this program again. If the operating system cannot start the program
/// without an emulator, `CURIUM_TEST_RUNNER` is the command of the emulator, with its arguments.
///
/// # Panics
///
/// Panics if the path of this program is unknown.
#[must_use]
pub fn own_program() -> Command {
    let program = std::env::current_exe().expect("the path of this program is known");
    let runner = std::env::var("CURIUM_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(emulator) = words.next() else {
        return Command::new(program);
    };
    let mut command = Command::new(emulator);
    command.args(words).arg(program);
    command
}

/// Returns the path of the calling test in the binary, which the harness gives the test's thread as
/// its name.
fn own_test() -> String {
    let thread = std::thread::current();
    thread.name().expect("unnamed thread").to_owned()
}

/// A process that runs one test of this binary.
pub(crate) struct OtherProcess {
    child: Child,
    name: String,
}

impl OtherProcess {
    /// Prints the mark and returns `true` if this process was started for the calling test.
    #[expect(
        clippy::print_stderr,
        reason = "the test harness captures what a test prints, which the other process reads"
    )]
    pub(crate) fn is_this() -> bool {
        let is_this = std::env::var(CHILD).is_ok_and(|child| child == own_test());
        if is_this {
            // Printed before the test, which may end the process itself.
            eprintln!("{MARK}");
        }
        is_this
    }

    /// Starts a process for the calling test with `stdin` as its standard input.
    pub(crate) fn start(stdin: Stdio) -> Self {
        Self::start_with(stdin, &[])
    }

    fn start_with(stdin: Stdio, variables: &[(&str, &str)]) -> Self {
        let name = own_test();
        let mut command = own_program();
        command
            .args([&*name, "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, &name)
            .envs(variables.iter().copied());
        let child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self {
            child: child.expect("failed to start the test binary"),
            name,
        }
    }

    /// Waits until the process ends, and returns `true`. Kills a process that hangs and returns
    /// `false`.
    fn wait(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().expect("wait failed").is_none() {
            if Instant::now() > deadline {
                self.child.kill().expect("kill failed");
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Waits until the process ends. Returns `true` if it succeeded, and its standard output and
    /// standard error.
    ///
    /// # Panics
    ///
    /// Panics if there is no such test.
    fn outcome(mut self) -> (bool, [String; 2]) {
        let ended = self.wait();
        let output = self.child.wait_with_output().expect("wait failed");
        let text = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(
            text[1].contains(MARK),
            "{} does not run in its own process: {}",
            self.name,
            text[1]
        );
        (ended && output.status.success(), text)
    }

    /// Waits until the process ends, asserts that its test ran and succeeded, and returns its
    /// standard output and standard error.
    pub(crate) fn expect_success(mut self) -> [String; 2] {
        assert!(self.wait(), "{} hangs in its own process", self.name);
        let output = self.child.wait_with_output().expect("wait failed");
        let [written, errors] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let name = &self.name;
        let status = output.status;
        assert!(
            status.success() && errors.contains(MARK),
            "{name} in its own process: {status}\n{written}{errors}"
        );
        [written, errors]
    }
}

//! The tests of packages in Python, which pytest runs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, ensure};

use super::expected::{Expected, Outcomes};
use super::{Folder, run_all};

/// The largest number of processes that run the test files of a package.
const MAX_PARTS: usize = 2;
/// The time limit of a test in seconds, after which its process is killed. Tests that compile much
/// take minutes on a busy machine.
const LIMIT: u32 = 400;

/// The tests of one package.
pub(super) struct Suite {
    /// The folder below which the names of tests begin.
    pub(super) root: PathBuf,
    /// Files or folders with tests, below the root; all of it if there are none.
    pub(super) files: &'static [&'static str],
    /// The plugin of this repository that prepares the package.
    pub(super) plugin: Option<&'static str>,
    /// Further options of pytest.
    pub(super) options: &'static [&'static str],
    /// Returns the interpreter, which finds the package.
    pub(super) python: fn(&Folder) -> Result<Command>,
}

impl Suite {
    /// Returns the tests of this repository in a folder of `outside`, for packages that contain
    /// none.
    pub(super) fn from_repository(
        folder: &Folder,
        name: &str,
        python: fn(&Folder) -> Result<Command>,
    ) -> Self {
        Self {
            root: folder.sources.join(name),
            files: &[],
            plugin: None,
            options: &[],
            python,
        }
    }

    /// Runs the tests of one file whose names match an expression, and returns an error if one
    /// fails.
    pub(super) fn run_selected(&self, folder: &Folder, file: &str, expression: &str) -> Result<()> {
        let mut pytest = (self.python)(folder)?;
        pytest
            .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
            .arg(self.root.join(file))
            .args(["-k", expression]);
        run_all(&mut pytest)
    }
}

/// Runs the tests of a package.
pub(super) fn test(folder: &Folder, expected: &Expected, suite: &Suite) -> Result<Outcomes> {
    let parts = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_PARTS);
    let outcomes = thread::scope(|scope| {
        let threads: Vec<_> = (0..parts)
            .map(|part| scope.spawn(move || test_part(folder, expected, suite, [part, parts])))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("it returns its errors"))
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(Outcomes::read(&outcomes.concat()))
}

/// Runs the tests of one part, and returns the lines of their outcomes. After a test that crashes
/// its process, the next process continues with the following test.
fn test_part(
    folder: &Folder,
    expected: &Expected,
    suite: &Suite,
    part: [usize; 2],
) -> Result<String> {
    let path = folder
        .built
        .join(format!("{}.{}", expected.name(), part[0]));
    let earlier = if folder.resume {
        fs::read_to_string(&path).unwrap_or_default()
    } else {
        String::new()
    };
    fs::write(&path, ended(&earlier))?;
    loop {
        let before = fs::read_to_string(&path)?.len();
        let mut pytest = pytest(folder, expected, suite, part)?;
        // The exit status only reports that some test failed.
        pytest
            .env("OUTSIDE_OUTCOMES", &path)
            .status()
            .context("pytest cannot be run")?;
        let text = fs::read_to_string(&path)?;
        let last = text.lines().last().context("pytest ran no test")?;
        if !last.ends_with(" ... begun") {
            return Ok(text);
        }
        ensure!(text.len() > before, "pytest ended before its first test");
        println!("ended the process or took longer than {LIMIT} s: {last}");
    }
}

fn pytest(
    folder: &Folder,
    expected: &Expected,
    suite: &Suite,
    [part, parts]: [usize; 2],
) -> Result<Command> {
    let mut python = (suite.python)(folder)?;
    python.args([
        "-m",
        "pytest",
        "--quiet",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-p",
        "outcomes",
    ]);
    python
        .args(suite.plugin.iter().flat_map(|plugin| ["-p", plugin]))
        .arg("--rootdir")
        .arg(&suite.root);
    // Names are those of pytest, relative to the root.
    python.args(
        expected
            .left_out
            .keys()
            .map(|name| format!("--deselect={name}")),
    );
    let limits = [
        "faulthandler_exit_on_timeout=true".to_owned(),
        format!("faulthandler_timeout={LIMIT}"),
    ];
    python
        .args(limits.iter().flat_map(|limit| ["-o", limit]))
        .args(suite.options);
    if suite.files.is_empty() {
        python.arg(&suite.root);
    }
    python.args(suite.files.iter().map(|file| suite.root.join(file)));
    python
        .env("OUTSIDE_PART", format!("{part}/{parts}"))
        .current_dir(&folder.built);
    Ok(python)
}

/// Returns the outcomes of an interrupted run without the test during which it was interrupted,
/// which runs again.
fn ended(outcomes: &str) -> &str {
    let text = outcomes.trim_end();
    let begin = text.rfind('\n').map_or(0, |end| end + 1);
    if text.ends_with(" ... begun") {
        &text[..begin]
    } else {
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_that_was_interrupted_runs_again() {
        let crashed = "test a ... begun\ntest b ... begun\ntest b ... ok\n";
        assert_eq!(ended(&format!("{crashed}test c ... begun\n")), crashed);
        assert_eq!(ended(crashed), crashed);
        assert_eq!(ended("test a ... begun\n"), "");
        assert_eq!(ended(""), "");
    }
}

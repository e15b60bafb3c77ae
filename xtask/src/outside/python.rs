//! The programs in Python, in a virtual environment with the packages that `requirements.txt` pins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::expected::{Expected, Outcomes};
use super::{Folder, run_all, with_driver};

/// The supported interpreters in order of preference.
const INTERPRETERS: [&str; 4] = ["python3.11", "python3.12", "python3.13", "python3"];
/// The number of processes that run numba-cuda's test files.
const PARTS: usize = 2;
/// The time limit of a test in seconds, after which its process is killed. Tests that compile much take a minute on a
/// busy machine.
const LIMIT: u32 = 400;

/// Creates the environment unless it exists with the pinned packages. Returns the reason if this machine does not
/// support it.
pub(super) fn prepare(folder: &Folder) -> Result<Option<String>> {
    let requirements = folder.sources.join("requirements.txt");
    let wanted = fs::read_to_string(&requirements).with_context(|| requirements.display().to_string())?;
    let done = environment(folder).join("requirements.txt");
    if fs::read_to_string(&done).is_ok_and(|text| text == wanted) {
        return Ok(None);
    }
    let Some(interpreter) = interpreter() else {
        return Ok(Some("Python 3.11, 3.12 or 3.13 is needed, and none was found".to_owned()));
    };
    if let Some(reason) = failure(Command::new(interpreter).args(["-m", "venv", "--clear"]).arg(environment(folder)))? {
        return Ok(Some(format!("{interpreter} cannot make a virtual environment: {reason}")));
    }
    let mut pip = Command::new(environment(folder).join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--only-binary=:all:", "--require-hashes", "-r"]).arg(&requirements);
    if let Some(reason) = failure(&mut pip)? {
        // A package with another version is an error, unlike a missing network.
        ensure!(!reason.contains("HASHES"), "{reason}");
        return Ok(Some(format!("pip cannot install the packages (offline?): {reason}")));
    }
    fs::write(done, wanted)?;
    Ok(None)
}

/// Runs one of the Python programs of this repository.
pub(super) fn run(folder: &Folder, program: &str) -> Result<()> {
    run_all(&mut command(folder, program)?)
}

/// Returns the command that runs one of the Python programs of this repository.
pub(super) fn command(folder: &Folder, program: &str) -> Result<Command> {
    let mut python = interpreter_of(folder)?;
    python.args(["-W", "ignore"]).arg(folder.sources.join("python").join(program));
    Ok(python)
}

/// Runs the tests in the numba-cuda package.
pub(super) fn test_numba(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let parts = std::thread::scope(|scope| {
        let run = |part| move || test_part(folder, expected, part);
        let threads: Vec<_> = (0..PARTS).map(|part| scope.spawn(run(part))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it returns its errors")).collect::<Result<Vec<_>>>()
    })?;
    Ok(Outcomes::read(&parts.concat()))
}

/// Runs the tests of one part, and returns the lines of their outcomes. After a test that crashes its process, the next
/// process continues with the following test.
fn test_part(folder: &Folder, expected: &Expected, part: usize) -> Result<String> {
    let path = folder.made.join(format!("numba-cuda.{part}"));
    fs::write(&path, "")?;
    loop {
        let before = fs::read_to_string(&path)?.len();
        // The exit status only reports that some test failed.
        pytest(folder, expected, part)?.env("OUTSIDE_OUTCOMES", &path).status().context("pytest cannot be run")?;
        let text = fs::read_to_string(&path)?;
        let last = text.lines().last().context("pytest ran no test")?;
        if !last.ends_with(" ... begun") {
            return Ok(text);
        }
        ensure!(text.len() > before, "pytest ended before a test began");
        println!("ended the process or took longer than {LIMIT} s: {last}");
    }
}

fn pytest(folder: &Folder, expected: &Expected, part: usize) -> Result<Command> {
    let package = crate::package::find(&environment(folder), |name| name == "_numba_cuda_redirector.py");
    let package = package.context("the environment holds no numba-cuda")?;
    let tests = package.with_file_name("numba_cuda").join("numba/cuda/tests");
    let mut python = interpreter_of(folder)?;
    python.args(["-m", "pytest", "--quiet", "--tb=short", "-p", "no:cacheprovider", "-p", "outcomes", "--rootdir"]);
    // Names are those of pytest, relative to the folder of the tests.
    python.arg(&tests).args(expected.left_out.keys().map(|name| format!("--deselect={name}")));
    for option in [
        "consider_namespace_packages=true",
        "faulthandler_exit_on_timeout=true",
        &format!("faulthandler_timeout={LIMIT}"),
    ] {
        python.args(["-o", option]);
    }
    python.arg(tests).env("PYTHONPATH", folder.sources.join("python")).env("OUTSIDE_PART", format!("{part}/{PARTS}"));
    python.current_dir(&folder.made);
    Ok(python)
}

/// Returns the folder of NVRTC in the environment.
pub(super) fn nvrtc(folder: &Folder) -> Result<PathBuf> {
    let library = crate::package::find(&environment(folder), |name| name.starts_with("libnvrtc.so"));
    let library = library.context("the environment holds no libnvrtc.so")?;
    Ok(library.parent().context("a file lies in a folder")?.to_path_buf())
}

pub(super) fn environment(folder: &Folder) -> PathBuf {
    folder.made.join("python")
}

/// Returns the environment's interpreter, with the simulator as the driver.
fn interpreter_of(folder: &Folder) -> Result<Command> {
    let mut python = Command::new(environment(folder).join("bin/python"));
    // Prevents Python from writing bytecode next to the sources.
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    with_driver(&mut python, folder, &[])?;
    Ok(python)
}

fn interpreter() -> Option<&'static str> {
    let supported = "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))";
    let is_supported = |name: &&str| failure(Command::new(name).args(["-c", supported])).is_ok_and(|it| it.is_none());
    INTERPRETERS.into_iter().find(is_supported)
}

/// Returns the last output of a failed command; `None` if it succeeded.
fn failure(command: &mut Command) -> Result<Option<String>> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.output().with_context(|| format!("{program} cannot be run"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    Ok((!output.status.success()).then(|| error.trim().to_owned()))
}

//! The programs in Python, in a virtual environment with the packages that `requirements.txt` pins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::expected::{Expected, Outcomes};
use super::{Folder, run_all, with_driver};

/// The interpreters that the packages are pinned for, the best first.
const INTERPRETERS: [&str; 4] = ["python3.11", "python3.12", "python3.13", "python3"];
/// How many of numba-cuda's tests run at a time.
const PROCESSES: &str = "2";

/// Makes the environment if the one that is there is of other packages. Returns why that is not possible on this machine.
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
        // A package that is not the pinned one is no missing network.
        ensure!(!reason.contains("HASHES"), "{reason}");
        return Ok(Some(format!("pip cannot install the packages (offline?): {reason}")));
    }
    fs::write(done, wanted)?;
    Ok(None)
}

/// Runs one of our programs.
pub(super) fn run(folder: &Folder, program: &str) -> Result<()> {
    run_all(&mut command(folder, program)?)
}

/// The command that runs one of our programs.
pub(super) fn command(folder: &Folder, program: &str) -> Result<Command> {
    let mut python = interpreter_of(folder)?;
    python.args(["-W", "ignore"]).arg(folder.sources.join("python").join(program));
    Ok(python)
}

/// Runs the tests that the package of numba-cuda carries.
pub(super) fn test_numba(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let outcomes = folder.made.join("numba-cuda.txt");
    let mut python = interpreter_of(folder)?;
    python.args(["-m", "pytest", "--quiet", "--tb=no", "-p", "no:cacheprovider", "-p", "outcomes", "-n", PROCESSES]);
    python.args(["-o", "consider_namespace_packages=true", "--pyargs", "numba.cuda.tests"]);
    // Names are those of pytest, below the folder of the tests.
    python.args(expected.left_out.keys().map(|name| format!("--deselect={name}")));
    python.env("PYTHONPATH", folder.sources.join("python")).env("OUTSIDE_OUTCOMES", &outcomes);
    python.current_dir(&folder.made);
    // The status tells only that some test failed.
    python.status().context("pytest cannot be run")?;
    let text = fs::read_to_string(&outcomes).context("pytest left no outcomes")?;
    fs::remove_file(outcomes)?;
    Ok(Outcomes::read(&text))
}

/// The folder of NVRTC in the environment.
pub(super) fn nvrtc(folder: &Folder) -> Result<PathBuf> {
    let library = crate::package::find(&environment(folder), |name| name.starts_with("libnvrtc.so"));
    let library = library.context("the environment holds no libnvrtc.so")?;
    Ok(library.parent().context("a file lies in a folder")?.to_path_buf())
}

fn environment(folder: &Folder) -> PathBuf {
    folder.made.join("python")
}

/// The environment's interpreter, with the simulator as the driver.
fn interpreter_of(folder: &Folder) -> Result<Command> {
    let mut python = Command::new(environment(folder).join("bin/python"));
    // The sources stay as they are in the repository.
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    with_driver(&mut python, folder, &[])?;
    Ok(python)
}

fn interpreter() -> Option<&'static str> {
    let supported = "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))";
    let is_supported = |name: &&str| failure(Command::new(name).args(["-c", supported])).is_ok_and(|it| it.is_none());
    INTERPRETERS.into_iter().find(is_supported)
}

/// What a command that failed said last; nothing if it succeeded.
fn failure(command: &mut Command) -> Result<Option<String>> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.output().with_context(|| format!("{program} cannot be run"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    Ok((!output.status.success()).then(|| error.trim().to_owned()))
}

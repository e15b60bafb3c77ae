//! Virtual environments with the packages that a file pins, and the programs that run in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Folder, run_all, with_driver};

/// The supported interpreters in order of preference.
const INTERPRETERS: [&str; 4] = ["python3.11", "python3.12", "python3.13", "python3"];

/// A virtual environment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Environment {
    /// The folder in the output folder.
    name: &'static str,
    /// The file that pins the packages.
    requirements: &'static str,
    /// The newest version of Python that all packages support, `3.NEWEST`.
    newest: u32,
}

/// The compilers of CUDA 13 and the packages that use them.
pub(super) const CUDA_13: Environment = Environment {
    name: "python",
    requirements: "requirements.txt",
    newest: 13,
};
/// The libraries of CUDA 12, and the packages that are linked to them.
pub(super) const CUDA_12: Environment = Environment {
    name: "cuda12",
    requirements: "requirements-cuda12.txt",
    newest: 12,
};
/// NVIDIA's bindings of the driver, and the compilers that their tests use.
pub(super) const CUDA_PYTHON: Environment = Environment {
    name: "cuda-python",
    requirements: "requirements-cuda-python.txt",
    newest: 13,
};
/// Dr.Jit.
pub(super) const DRJIT: Environment = Environment {
    name: "drjit",
    requirements: "requirements-drjit.txt",
    newest: 13,
};
/// The newest packages that nccl4py uses.
pub(super) const NCCL: Environment = Environment {
    name: "nccl",
    requirements: "requirements-nccl.txt",
    newest: 13,
};

/// Triton, without PyTorch.
pub(super) const TRITON: Environment = Environment {
    name: "triton",
    requirements: "requirements-triton.txt",
    newest: 13,
};

/// Halide, whose library contains its compiler.
pub(super) const HALIDE: Environment = Environment {
    name: "halide",
    requirements: "requirements-halide.txt",
    newest: 13,
};

/// Quadrants, whose library contains LLVM.
pub(super) const QUADRANTS: Environment = Environment {
    name: "quadrants",
    requirements: "requirements-quadrants.txt",
    newest: 13,
};

/// TVM, with NVRTC and CUDA's headers.
pub(super) const TVM: Environment = Environment {
    name: "tvm",
    requirements: "requirements-tvm.txt",
    newest: 13,
};

/// pytest alone.
pub(super) const LLAMA: Environment = Environment {
    name: "llama",
    requirements: "requirements-llama.txt",
    newest: 13,
};

/// Creates an environment unless it exists with the pinned packages. Returns the reason if this
/// machine does not support it.
pub(super) fn prepare(folder: &Folder) -> Result<Option<String>> {
    let Environment {
        requirements,
        newest,
        ..
    } = folder.environment;
    let requirements = folder.sources.join(requirements);
    let wanted =
        fs::read_to_string(&requirements).with_context(|| requirements.display().to_string())?;
    let installed = environment(folder).join("requirements.txt");
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(None);
    }
    let Some(interpreter) = interpreter(newest) else {
        return Ok(Some(format!(
            "Python 3.11 to 3.{newest} is needed, and none was found"
        )));
    };
    if let Some(reason) = failure(
        Command::new(interpreter)
            .args(["-m", "venv", "--clear"])
            .arg(environment(folder)),
    )? {
        return Ok(Some(format!(
            "{interpreter} cannot make a virtual environment: {reason}"
        )));
    }
    let mut pip = pip(folder);
    pip.args([
        "install",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "-r",
    ])
    .arg(&requirements);
    if let Some(reason) = failure(&mut pip)? {
        // A package with another version is an error, unlike a missing network.
        ensure!(!reason.contains("HASHES"), "{reason}");
        return Ok(Some(format!(
            "pip cannot install the packages (offline?): {reason}"
        )));
    }
    fs::write(installed, wanted)?;
    Ok(None)
}

/// Fetches the sources of a package that a file pins, and returns the folder in which they are
/// unpacked.
pub(super) fn sources(
    folder: &Folder,
    requirements: &str,
    name: &str,
    version: &str,
) -> Result<PathBuf> {
    let unpacked = folder.built.join(format!("{name}-{version}"));
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    let work = folder
        .built
        .join(format!("{name}-{version}.{}", std::process::id()));
    let mut pip = pip(folder);
    pip.args([
        "download",
        "--no-deps",
        "--no-binary=:all:",
        "--no-build-isolation",
        "--require-hashes",
        "-d",
    ])
    .arg(&work);
    run_all(pip.arg("-r").arg(folder.sources.join(requirements)))?;
    let archive = work.join(format!("{name}-{version}.tar.gz"));
    run_all(
        Command::new("tar")
            .arg("xzf")
            .arg(archive)
            .arg("-C")
            .arg(&work),
    )?;
    fs::rename(work.join(format!("{name}-{version}")), &unpacked)?;
    fs::remove_dir_all(work)?;
    Ok(unpacked)
}

/// Runs one of the Python programs of this repository.
pub(super) fn run(folder: &Folder, program: &str) -> Result<()> {
    run_all(&mut command(folder, program)?)
}

/// Returns the command that runs one of the Python programs of this repository.
pub(super) fn command(folder: &Folder, program: &str) -> Result<Command> {
    let mut python = simulated_interpreter(folder)?;
    python
        .args(["-W", "ignore"])
        .arg(folder.sources.join("python").join(program));
    Ok(python)
}

/// Returns the folder of NVRTC in the environment.
pub(super) fn nvrtc(folder: &Folder) -> Result<PathBuf> {
    let library =
        crate::package::find(&environment(folder), |name| name.starts_with("libnvrtc.so"));
    let library = library.context("the environment holds no libnvrtc.so")?;
    Ok(library
        .parent()
        .context("a file lies in a folder")?
        .to_path_buf())
}

pub(super) fn environment(folder: &Folder) -> PathBuf {
    folder.built.join(folder.environment.name)
}

/// Returns the folder of the packages in an environment.
pub(super) fn packages(folder: &Folder) -> Result<PathBuf> {
    let lib = environment(folder).join("lib");
    let python = fs::read_dir(&lib)?
        .next()
        .with_context(|| format!("{} is empty", lib.display()))??;
    Ok(python.path().join("site-packages"))
}

/// Returns the environment's interpreter, with the simulator as the driver.
pub(super) fn simulated_interpreter(folder: &Folder) -> Result<Command> {
    let mut python = Command::new(environment(folder).join("bin/python"));
    // Prevents Python from writing bytecode next to the sources.
    python
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONPATH", folder.sources.join("python"));
    with_driver(&mut python, folder, &[])?;
    Ok(python)
}

/// Returns the command that runs pip in the environment.
pub(super) fn pip(folder: &Folder) -> Command {
    let mut pip = Command::new(environment(folder).join("bin/python"));
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    pip
}

fn interpreter(newest: u32) -> Option<&'static str> {
    let supported =
        format!("import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, {newest}))");
    INTERPRETERS.into_iter().find(|name| {
        failure(Command::new(name).args(["-c", &supported])).is_ok_and(|failure| failure.is_none())
    })
}

/// Returns the last output of a failed command; `None` if it succeeded.
pub(super) fn failure(command: &mut Command) -> Result<Option<String>> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command
        .output()
        .with_context(|| format!("{program} cannot be run"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    Ok((!output.status.success()).then(|| error.trim().to_owned()))
}

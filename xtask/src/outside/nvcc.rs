//! Programs in CUDA C++ that nvcc compiles to PTX, linked to the CUDA runtime over the driver API.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::expected::{Expected, Outcomes};
use super::{Folder, python, with_driver};

/// The programs of the quick form: cooperative groups, captured graphs and `printf`.
const QUICK: [&str; 3] = ["tiles", "graph_capture", "print"];
/// The time limit of a program.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs a few of the programs.
pub(super) fn run(folder: &Folder) -> Result<()> {
    for name in QUICK {
        let problem = run_program(folder, name)?;
        ensure!(problem.is_none(), "{name}: {}", problem.unwrap_or_default());
    }
    Ok(())
}

/// Runs all programs.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder.sources.join("nvcc"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cu") {
            names.push(
                path.file_stem()
                    .context("a program has a name")?
                    .to_string_lossy()
                    .into_owned(),
            );
        }
    }
    names.retain(|name| !expected.left_out.contains_key(name));
    names.sort();
    let mut text = String::new();
    for name in names {
        let problem = run_program(folder, &name)?;
        writeln!(
            text,
            "test {name} ... {}",
            if problem.is_none() { "ok" } else { "FAILED" }
        )?;
        if let Some(problem) = problem {
            println!("{name}: {problem}");
        }
    }
    Ok(Outcomes::read(&text))
}

/// Compiles and runs a program, and returns why it failed.
fn run_program(folder: &Folder, name: &str) -> Result<Option<String>> {
    let programs = folder.built.join("nvcc");
    fs::create_dir_all(&programs)?;
    let program = programs.join(name);
    let output = compiler(folder, name, &program)?
        .output()
        .context("nvcc cannot be run")?;
    if !output.status.success() {
        return Ok(Some(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }
    let mut command = Command::new(&program);
    command.current_dir(&programs);
    with_driver(&mut command, folder, &[])?;
    let status = ended(&mut command)?;
    Ok(match status {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("ended with {status}")),
        None => Some(format!("took longer than {} s", LIMIT.as_secs())),
    })
}

/// Returns the command that compiles a program.
fn compiler(folder: &Folder, name: &str, program: &Path) -> Result<Command> {
    let toolkit = toolkit(folder)?;
    let mut nvcc = Command::new(toolkit.join("bin/nvcc"));
    nvcc.args([
        "-std=c++17",
        "--extended-lambda",
        "-gencode",
        "arch=compute_90,code=compute_90",
    ]);
    // The runtime over the driver API is found before NVIDIA's.
    nvcc.arg("-L")
        .arg(folder.driver.join("cudart-13"))
        .arg("-L")
        .arg(toolkit.join("lib"));
    nvcc.arg("-o")
        .arg(program)
        .arg(folder.sources.join("nvcc").join(format!("{name}.cu")));
    Ok(nvcc)
}

/// Returns the folder of the compiler and its headers.
fn toolkit(folder: &Folder) -> Result<PathBuf> {
    let nvcc = crate::package::find(&python::environment(folder), |name| name == "nvcc");
    let nvcc = nvcc.context("the environment holds no nvcc")?;
    Ok(nvcc
        .parent()
        .and_then(Path::parent)
        .context("nvcc lies in a folder of the toolkit")?
        .to_path_buf())
}

/// Returns the exit status of a program, or `None` after the time limit.
fn ended(command: &mut Command) -> Result<Option<ExitStatus>> {
    let mut child = command
        .spawn()
        .with_context(|| format!("{command:?} cannot be run"))?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_that_ends_has_its_status() {
        let status = ended(Command::new("sh").args(["-c", "exit 3"])).expect("sh runs");
        assert_eq!(status.and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn quick_programs_exist() {
        for name in QUICK {
            assert!(
                crate::root()
                    .join(format!("outside/nvcc/{name}.cu"))
                    .is_file(),
                "{name}"
            );
        }
    }
}

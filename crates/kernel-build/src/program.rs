//! Programs that a build runs: cargo, rustc and LLVM's tools.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};

/// Variables of cargo that a build inside of a build needs. All other variables of cargo describe
/// the outer build.
const KEPT: &[&str] = &[
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_TERM_",
];

/// Other variables that describe the outer build.
const CLEARED: &[&str] = &[
    "DEBUG",
    "HOST",
    "LD_LIBRARY_PATH",
    "MAKEFLAGS",
    "MFLAGS",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC_LINKER",
    "RUSTFLAGS",
    "TARGET",
];

/// The beginnings of further variables that describe the outer build.
const CLEARED_PREFIXES: &[&str] = &["CARGO", "DEP_", "RUSTC", "RUSTDOC"];

/// Returns `true` for a variable that describes the outer build.
fn is_cleared(name: &str) -> bool {
    if KEPT.iter().any(|kept| name.starts_with(kept)) {
        return false;
    }
    CLEARED.contains(&name)
        || CLEARED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Returns a command with the environment of a user's shell, not that of a build script.
pub(crate) fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_cleared) {
            command.env_remove(name);
        }
    }
    command
}

/// The output of a program.
pub(crate) struct Output {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program to its end.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::Program {
        program: program.clone(),
        message: error.to_string(),
    })?;
    Ok(Output {
        is_success: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs a program, and returns what it printed. A failure of the program is an error.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output = output(command)?;
    if output.is_success {
        return Ok(output.stdout);
    }
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    Err(Error::Program {
        program: program.to_string_lossy().into_owned(),
        message: output.stderr,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags for the host, and cargo's description of the package, do not reach the device build.
    #[test]
    fn variables_of_the_outer_build_are_cleared() {
        for name in [
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_TARGET",
            "CARGO_MAKEFLAGS",
            "CARGO_PKG_NAME",
            "CARGO_TARGET_DIR",
            "RUSTFLAGS",
            "TARGET",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "CARGO_PROFILE_RELEASE_DEBUG",
            "DEP_CUDA_ROOT",
            "CARGO_INCREMENTAL",
        ] {
            assert!(is_cleared(name), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CARGO_REGISTRIES_CRATES_IO_PROTOCOL",
            "PATH",
            "HOME",
            "RUSTUP_TOOLCHAIN",
        ] {
            assert!(!is_cleared(name), "{name}");
        }
    }
}

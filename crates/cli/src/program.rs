//! Programs that a command starts.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context as _, Result};

use crate::simulator;

/// Makes the program use the simulator's library.
///
/// # Errors
///
/// Returns an error if the path of the library contains a character that separates paths.
pub(crate) fn use_simulator(command: &mut Command, library: &Path) -> Result<()> {
    // Programs that use Curium read the variables of the libraries; the system's loader reads
    // LD_LIBRARY_PATH.
    command
        .env("CURIUM_DRIVER_PATH", library)
        .env("LD_LIBRARY_PATH", before_others(library)?);
    for (variable, name) in simulator::VARIABLES {
        let path = library.with_file_name(name);
        if path.is_file() {
            command.env(variable, path);
        }
    }
    Ok(())
}

/// Returns LD_LIBRARY_PATH with the library's folder first.
fn before_others(library: &Path) -> Result<OsString> {
    let folder = library.parent().map(Path::to_path_buf);
    let others = env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty());
    let others: Vec<_> = others.iter().flat_map(env::split_paths).collect();
    env::join_paths(folder.into_iter().chain(others))
        .context("the simulator's folder contains a colon, which LD_LIBRARY_PATH does not allow")
}

/// Returns the exit code of a program, or 128 plus the signal that ended it, as shells do.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status
        .code()
        .or_else(|| signal.map(|signal| 128 + signal))
        .unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

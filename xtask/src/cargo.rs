//! Runs cargo, and reads the list of artifacts that it built.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// The options for builds in release mode that do not use the simulator, and need not wait for its
/// optimization.
pub(crate) const UNOPTIMIZED_SIMULATOR: [&str; 4] = [
    "--config",
    "profile.release.package.curium-ptx.opt-level=0",
    "--config",
    "profile.release.package.curium-sim.opt-level=0",
];

/// An artifact that cargo built.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Artifact {
    /// `test`, `bench`, `bin`, `example`, `lib`, …
    pub(crate) kind: String,
    /// The program, or the only file of a library.
    pub(crate) file: PathBuf,
}

/// Returns the cargo that runs this program, in the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(crate::root());
    cargo
}

/// Runs `cargo` with `arguments`, shows its messages, and returns the programs and shared libraries
/// that it built.
pub(crate) fn build(arguments: &[&str], compiler: &[&str]) -> Result<Vec<Artifact>> {
    let mut cargo = cargo();
    cargo
        .args(arguments)
        .arg("--message-format=json-render-diagnostics");
    if !compiler.is_empty() {
        cargo.arg("--").args(compiler);
    }
    let output = cargo
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cargo cannot be run")?;
    ensure!(
        output.status.success(),
        "cargo {} failed",
        arguments.join(" ")
    );
    let lines = String::from_utf8(output.stdout)?;
    Ok(lines
        .lines()
        .map(artifact)
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect())
}

/// Returns the folder that cargo builds into.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let output = cargo()
        .args(["metadata", "--format-version=1", "--no-deps"])
        .output()?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata = String::from_utf8(output.stdout)?;
    Ok(string(&metadata, "\"target_directory\":\"")?
        .context("cargo metadata names no target folder")?
        .into())
}

/// Reads one line of cargo's JSON; `None` unless it describes a program or a shared library.
fn artifact(line: &str) -> Result<Option<Artifact>> {
    if !line.starts_with("{\"reason\":\"compiler-artifact\"") {
        return Ok(None);
    }
    let kind = string(line, "\"kind\":[\"")?.context("an artifact has no kind")?;
    let is_library = ["cdylib", "staticlib"]
        .iter()
        .any(|kind| line.contains(&format!("\"crate_types\":[\"{kind}\"]")));
    let key = if is_library {
        "\"filenames\":[\""
    } else {
        "\"executable\":\""
    };
    Ok(string(line, key)?.map(|file| Artifact {
        kind,
        file: file.into(),
    }))
}

/// Returns the string after `key`. Cargo writes no spaces, and only paths with a quote or a
/// backslash contain escapes.
fn string(json: &str, key: &str) -> Result<Option<String>> {
    let Some((_, rest)) = json.split_once(key) else {
        return Ok(None);
    };
    let (text, _) = rest
        .split_once('"')
        .context("a string in cargo's output does not end")?;
    if text.contains('\\') {
        bail!("a path with a quote or a backslash is not supported: {text}");
    }
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = r#"{"reason":"compiler-artifact","package_id":"p","target":{"kind":["test"],"crate_types":["bin"],"name":"contract"},"filenames":["/t/deps/contract-1"],"executable":"/t/deps/contract-1","fresh":true}"#;

    #[test]
    fn program_is_read_with_its_kind() {
        let artifact = artifact(TEST).expect("it has the form of cargo's output");
        assert_eq!(
            artifact,
            Some(Artifact {
                kind: "test".to_owned(),
                file: "/t/deps/contract-1".into()
            })
        );
    }

    #[test]
    fn library_that_is_no_program_is_left_out() {
        let line = TEST.replace(
            "\"executable\":\"/t/deps/contract-1\"",
            "\"executable\":null",
        );
        assert_eq!(
            artifact(&line).expect("it has the form of cargo's output"),
            None
        );
    }

    #[test]
    fn shared_library_is_its_file() {
        let line = r#"{"reason":"compiler-artifact","target":{"kind":["cdylib"],"crate_types":["cdylib"]},"filenames":["/t/libsim.so"],"executable":null}"#;
        let artifact = artifact(line)
            .expect("it has the form of cargo's output")
            .expect("no artifact");
        assert_eq!(artifact.file, PathBuf::from("/t/libsim.so"));
    }

    #[test]
    fn path_with_an_escape_is_an_error() {
        artifact(&TEST.replace("/t/deps", "/t\\\"x/deps")).expect_err("the path needs an escape");
    }
}

//! Generated files: written, or compared with the committed ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// Writes those of `files` that differ, and prints their names.
pub(crate) fn write(files: &BTreeMap<PathBuf, String>) -> Result<()> {
    let stale: Vec<_> = files
        .iter()
        .filter(|(path, text)| difference(path, text).is_some())
        .collect();
    for (path, text) in &stale {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text).with_context(|| path.display().to_string())?;
        println!("wrote {}", relative(path));
    }
    println!(
        "{} of {} files were up to date",
        files.len() - stale.len(),
        files.len()
    );
    Ok(())
}

/// Fails unless each of `files` has exactly its text. The error names the first differing line, and
/// `command` as the fix.
pub(crate) fn check(files: &BTreeMap<PathBuf, String>, command: &str) -> Result<()> {
    let differences: Vec<_> = files
        .iter()
        .filter_map(|(path, text)| difference(path, text))
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    bail!(
        "{}\nrun `{command}` and commit the result",
        differences.join("\n")
    );
}

/// Returns the problem with the file at `path`, which must contain `text`.
fn difference(path: &Path, text: &str) -> Option<String> {
    let name = relative(path);
    let current = match fs::read(path) {
        Ok(current) => current,
        Err(error) => return Some(format!("{name} cannot be read: {error}")),
    };
    if current == text.as_bytes() {
        return None;
    }
    let same = current
        .iter()
        .zip(text.as_bytes())
        .take_while(|(current, expected)| current == expected)
        .count();
    let line = 1 + text.as_bytes()[..same]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count();
    Some(format!(
        "{name} is stale: it differs from what is generated in line {line}"
    ))
}

fn relative(path: &Path) -> String {
    path.strip_prefix(crate::root())
        .unwrap_or(path)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("failed to create a folder");
        let path = folder.path().join("generated.rs");
        fs::write(&path, text).expect("the folder is writable");
        (folder, path)
    }

    /// One changed byte suffices; the message ends with the command.
    #[test]
    fn changed_file_is_stale() {
        let (_folder, path) = file("one\ntwx\nthree\n");
        let error = check(
            &BTreeMap::from([(path, "one\ntwo\nthree\n".to_owned())]),
            "cargo xtask generate",
        );
        let message = error.expect_err("a byte differs").to_string();
        assert!(
            message.contains("generated.rs is stale") && message.contains("line 2"),
            "{message}"
        );
        assert!(
            message.ends_with("run `cargo xtask generate` and commit the result"),
            "{message}"
        );
    }

    #[test]
    fn file_without_its_last_byte_is_stale() {
        let (_folder, path) = file("one");
        check(&BTreeMap::from([(path, "one\n".to_owned())]), "generate")
            .expect_err("a byte is missing");
    }

    #[test]
    fn missing_file_is_an_error() {
        let (folder, _) = file("");
        let missing = folder.path().join("missing.rs");
        let error = check(&BTreeMap::from([(missing, String::new())]), "generate")
            .expect_err("there is no file");
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }

    #[test]
    fn written_files_are_not_stale() {
        let (folder, _) = file("");
        let files = BTreeMap::from([(folder.path().join("new/file.rs"), "text\n".to_owned())]);
        write(&files).expect("the folder is writable");
        check(&files, "generate").expect("the file was just written");
    }
}

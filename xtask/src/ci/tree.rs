//! Checks of the committed files.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Fails if a committed file names a folder of the machine that it was written on.
pub(crate) fn names_no_machine() -> Result<()> {
    // Assembled here, so that this file does not contain the forbidden text.
    let mut forbidden: Vec<_> = ["home", "root", "Users"]
        .iter()
        .map(|folder| format!("/{folder}/"))
        .collect();
    forbidden.push(crate::root().display().to_string());
    report("names a folder of one machine", &texts()?, |text| {
        lines_with(text, &forbidden)
    })
}

/// Fails if the proof of an unsafe block is missing.
pub(crate) fn proofs_are_done() -> Result<()> {
    let forbidden = [format!("SAFETY: {}", "TODO")];
    report("leaves a proof for later", &texts()?, |text| {
        lines_with(text, &forbidden)
    })
}

/// Returns every file that git tracks, by its path in the repository, without deleted ones.
pub(super) fn names() -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(crate::root())
        .output()
        .context("git is needed")?;
    ensure!(
        output.status.success(),
        "git ls-files failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let names = String::from_utf8(output.stdout)?;
    let files = names
        .split('\0')
        .filter(|name| !name.is_empty() && crate::root().join(name).is_file());
    Ok(files.map(str::to_owned).collect())
}

/// Returns every text file that git tracks, with its path in the repository.
pub(super) fn texts() -> Result<Vec<(String, String)>> {
    let files = names()?
        .into_iter()
        .map(|name| Ok((fs::read(crate::root().join(&name))?, name)));
    let files = files.collect::<Result<Vec<_>>>()?;
    Ok(files
        .into_iter()
        .filter_map(|(bytes, name)| Some((name, String::from_utf8(bytes).ok()?)))
        .collect())
}

/// Fails with a line for each file and line that `find` finds.
fn report(
    fault: &str,
    texts: &[(String, String)],
    find: impl Fn(&str) -> Vec<usize>,
) -> Result<()> {
    let faults: Vec<_> = texts
        .iter()
        .flat_map(|(name, text)| {
            find(text)
                .into_iter()
                .map(move |line| format!("{name}:{line} {fault}"))
        })
        .collect();
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

fn lines_with(text: &str, forbidden: &[String]) -> Vec<usize> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| forbidden.iter().any(|word| line.contains(word)))
        .map(|(index, _)| index + 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_a_forbidden_word_are_found() {
        let forbidden = ["/there/".to_owned()];
        assert_eq!(lines_with("here\nin /there/x\n", &forbidden), [2]);
        assert!(lines_with("here\n", &forbidden).is_empty());
    }

    #[test]
    fn report_names_file_line_and_fault() {
        let texts = [("a.rs".to_owned(), "x".to_owned())];
        let error = report("is bad", &texts, |_| vec![7]).expect_err("a fault was found");
        assert_eq!(error.to_string(), "a.rs:7 is bad");
        report("is bad", &texts, |_| Vec::new()).expect("no fault was found");
    }

    #[test]
    fn committed_files_are_listed() {
        let texts = texts().expect("this is a git repository");
        assert!(texts.iter().any(|(name, _)| name == "xtask/src/main.rs"));
    }
}

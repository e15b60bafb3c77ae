//! Checks of the committed files.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The maximum number of lines of a source file before its tests.
const LONGEST: usize = 400;
/// The maximum number of characters of a comment line, except for rows of tables.
const WIDEST: usize = 140;

/// Fails if a committed file names a folder of the machine that it was written on.
pub(crate) fn names_no_machine() -> Result<()> {
    // Assembled here, so that this file does not contain the forbidden text.
    let mut forbidden: Vec<_> = ["home", "root", "Users"].iter().map(|folder| format!("/{folder}/")).collect();
    forbidden.push(crate::root().display().to_string());
    report("names a folder of one machine", &texts()?, |text| lines_with(text, &forbidden))
}

/// Fails if the proof of an unsafe block is missing.
pub(crate) fn proofs_are_done() -> Result<()> {
    let forbidden = [format!("SAFETY: {}", "TODO")];
    report("leaves a proof for later", &texts()?, |text| lines_with(text, &forbidden))
}

/// Fails if a handwritten source file is too long, or a comment in it too wide.
pub(crate) fn files_are_short() -> Result<()> {
    let mut sources = texts()?;
    sources.retain(|(path, _)| is_written_source(path));
    report(&format!("is longer than {LONGEST} lines without its tests"), &sources, |text| {
        let length = length_without_tests(text);
        if length > LONGEST { vec![length] } else { Vec::new() }
    })?;
    report(&format!("is a comment of more than {WIDEST} characters"), &sources, wide_comments)
}

/// Returns every file that git tracks, by its path in the repository, without deleted ones.
pub(super) fn names() -> Result<Vec<String>> {
    let output =
        Command::new("git").args(["ls-files", "-z"]).current_dir(crate::root()).output().context("git is needed")?;
    ensure!(output.status.success(), "git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    let names = String::from_utf8(output.stdout)?;
    let files = names.split('\0').filter(|name| !name.is_empty() && crate::root().join(name).is_file());
    Ok(files.map(str::to_owned).collect())
}

/// Returns every text file that git tracks, with its path in the repository.
pub(super) fn texts() -> Result<Vec<(String, String)>> {
    let files = names()?.into_iter().map(|name| Ok((fs::read(crate::root().join(&name))?, name)));
    let files = files.collect::<Result<Vec<_>>>()?;
    Ok(files.into_iter().filter_map(|(bytes, name)| Some((name, String::from_utf8(bytes).ok()?))).collect())
}

/// Fails with a line for each file and line that `find` finds.
fn report(fault: &str, texts: &[(String, String)], find: impl Fn(&str) -> Vec<usize>) -> Result<()> {
    let found: Vec<_> = texts
        .iter()
        .flat_map(|(name, text)| find(text).into_iter().map(move |line| format!("{name}:{line} {fault}")))
        .collect();
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

fn lines_with(text: &str, forbidden: &[String]) -> Vec<usize> {
    let lines = text.lines().enumerate();
    lines.filter(|(_, line)| forbidden.iter().any(|word| line.contains(word))).map(|(index, _)| index + 1).collect()
}

fn is_written_source(path: &str) -> bool {
    path.ends_with(".rs") && !path.contains("/generated/")
}

/// Returns the number of lines before the last item of a file if it is a test module or a list of operations to test.
fn length_without_tests(text: &str) -> usize {
    let lines: Vec<_> = text.lines().collect();
    let is_tests = |pair: &[&str]| pair[0].starts_with("#[cfg(test)]") && pair[1].starts_with("mod ");
    let last = lines.windows(2).position(|pair| is_tests(pair) || pair[1] == "pub(crate) mod operations {");
    last.unwrap_or(lines.len())
}

/// Returns the lines of comments that are too wide.
fn wide_comments(text: &str) -> Vec<usize> {
    let can_break = |line: &str| {
        let line = line.trim_start();
        line.starts_with("//") && !line.trim_start_matches(['/', '!', ' ']).starts_with('|')
    };
    let lines = text.lines().enumerate().filter(|(_, line)| line.chars().count() > WIDEST && can_break(line));
    lines.map(|(index, _)| index + 1).collect()
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
    fn tests_do_not_count_to_the_length_of_a_file() {
        assert_eq!(length_without_tests("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
        assert_eq!(length_without_tests("a\n\npub(crate) mod operations {\n}\n"), 1);
        assert_eq!(length_without_tests("a\n#[cfg(test)]\nuse b;\nc\n"), 4);
    }

    #[test]
    fn wide_comments_are_found_and_tables_and_code_are_none() {
        let (word, fits) = ("x".repeat(WIDEST), format!("// {}", "x".repeat(WIDEST - 3)));
        assert_eq!(wide_comments(&format!("{fits}\n    //! {word}\n/// | {word} |\nlet s = \"{word}\";\n")), [2]);
    }

    #[test]
    fn generated_files_may_be_long() {
        assert!(is_written_source("crates/sys/src/api.rs"));
        assert!(!is_written_source("crates/sys/src/generated/types.rs"));
        assert!(!is_written_source("README.md"));
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

//! The book: nothing is left out of what is compiled and run.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the book's chapters.
fn chapters() -> Vec<String> {
    let files = fs::read_dir(root().join("docs/book/src")).expect("the book is there");
    let names = files.map(|file| file.expect("it can be read").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect()
}

#[test]
fn every_chapter_is_in_the_summary_and_among_what_is_compiled() {
    let (summary, compiled) = (read(&root().join("docs/book/src/SUMMARY.md")), read(&root().join("tests/src/book.rs")));
    for chapter in chapters() {
        assert!(summary.contains(&format!("({chapter})")), "the summary lacks {chapter}");
        assert!(compiled.contains(&format!("\"{chapter}\"")), "tests/src/book.rs lacks {chapter}");
    }
}

#[test]
fn code_of_the_book_is_of_a_language_that_is_tested_or_cannot_be() {
    for chapter in chapters() {
        let text = read(&root().join("docs/book/src").join(&chapter));
        let fences = text.lines().filter_map(|line| line.strip_prefix("```")).filter(|language| !language.is_empty());
        for language in fences {
            assert!(
                ["rust", "rust,no_run", "sh", "console", "toml", "c", "text"].contains(&language),
                "{chapter}: {language}"
            );
        }
    }
}

#[test]
fn ptx_of_the_quick_start_is_what_its_code_is_run_with() {
    let chapter = read(&root().join("docs/book/src/quick-start.md"));
    let shown = chapter.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(shown, Some(read(&root().join("docs/book/src/scale.ptx")).as_str()));
}

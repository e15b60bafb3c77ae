//! The book and the pages beside it: nothing is left out, and links lead somewhere.

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
    names.filter(|name| name != "SUMMARY.md").collect()
}

/// The targets of the links in a page, without those that lead to other hosts.
fn links(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with('#')).collect()
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
fn every_link_leads_to_a_file() {
    let chapters = chapters().into_iter().map(|name| format!("docs/book/src/{name}"));
    let others = ["README.md", "CONTRIBUTING.md", "docs/book/src/SUMMARY.md", "docs/testing.md", "docs/performance.md"];
    let mut count = 0;
    for page in chapters.chain(others.map(str::to_owned)) {
        let path = root().join(&page);
        for link in links(&read(&path)) {
            let file = link.split('#').next().unwrap_or_default();
            assert!(path.parent().is_some_and(|folder| folder.join(file).exists()), "{page} links to {link}");
            count += 1;
        }
    }
    assert!(count > 20, "{count} links were found");
}

#[test]
fn code_of_the_book_is_of_a_language_that_is_tested_or_cannot_be() {
    for chapter in chapters() {
        let text = read(&root().join("docs/book/src").join(&chapter));
        let fences = text.lines().filter_map(|line| line.strip_prefix("```")).filter(|language| !language.is_empty());
        for language in fences {
            assert!(["rust", "rust,no_run", "sh", "toml", "c", "text"].contains(&language), "{chapter}: {language}");
        }
    }
}

//! The kernels of the book: each is quoted from code that is compiled for the device and run on the
//! simulator.

use curium_tests::TestResult;
use std::fs;
use std::path::{Path, PathBuf};

use super::{blocks, read, root, without_layout};

/// The chapters whose kernels are quoted.
const CHAPTERS: [&str; 6] = [
    "from-kernel-crates.md",
    "kernels-debugging.md",
    "kernels-from-cuda.md",
    "kernels-model.md",
    "kernels-patterns.md",
    "kernels-unsafe.md",
];

/// Returns the source files with kernels that are compiled and tested.
fn sources() -> Vec<PathBuf> {
    let mut files = vec![
        // The documentation is a kernel whose code is too large to be committed.
        root().join("crates/kernel/src/print.rs"),
        root().join("tests/book-kernels/src/lib.rs"),
    ];
    let folders = [
        root().join("tests/rust-kernels/src"),
        root().join("examples"),
    ];
    for folder in folders {
        for entry in fs::read_dir(folder).expect("the folder exists") {
            let path = entry.expect("failed to read the file").path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            } else if path.join("src/main.rs").exists() {
                files.push(path.join("src/main.rs"));
            }
        }
    }
    files
}

/// Returns the parts of a block of code between empty lines at the outermost level, without lines
/// that readers do not see.
fn items(code: &str) -> TestResult<Vec<String>> {
    let mut items = vec![String::new()];
    for line in code.lines() {
        let is_hidden = line == "#" || line.starts_with("# ");
        if is_hidden || line.starts_with("use ") {
            continue;
        }
        let begins = line.starts_with(|letter: char| !letter.is_whitespace() && letter != '}');
        let last = items.last_mut().ok_or("no item")?;
        if begins && last.ends_with("\n\n") {
            items.push(format!("{line}\n"));
        } else {
            *last += line;
            *last += "\n";
        }
    }
    items.retain(|item| !item.trim().is_empty());
    Ok(items)
}

fn is_quoted(item: &str, sources: &[String]) -> bool {
    let item = without_layout(item);
    sources.iter().any(|source| source.contains(&item))
}

#[test]
fn quoted_kernels_are_run() -> TestResult {
    let texts = sources().into_iter().map(|path| read(Path::new(&path)));
    let sources: Vec<String> = texts.map(|text| without_layout(&text)).collect();
    let mut count = 0;
    for chapter in CHAPTERS {
        for code in blocks(&format!("docs/book/src/{chapter}"), "rust") {
            if !code.contains("#[kernel]") {
                continue;
            }
            for item in items(&code)? {
                assert!(
                    is_quoted(&item, &sources),
                    "{chapter}: no example and no test has this code:\n{item}"
                );
                count += 1;
            }
        }
    }
    assert!(count > 30, "{count}");
    Ok(())
}

#[test]
fn items_are_separated() -> TestResult {
    let code = "# use a;\n/// One\nfn one() {\n    1\n\n}\n\nstruct Two;\n";
    assert_eq!(
        items(code)?,
        ["/// One\nfn one() {\n    1\n\n}\n\n", "struct Two;\n"]
    );
    Ok(())
}

#[test]
fn changed_code_is_no_quotation() {
    let sources = [without_layout(
        "    // A long\n    // comment\n    fn one() {\n        1\n    }\n",
    )];
    assert!(is_quoted("fn one() {\n    1\n}\n", &sources));
    assert!(is_quoted(
        "// A long comment\nfn one() {\n    1\n}\n",
        &sources
    ));
    assert!(!is_quoted("fn one() {\n    2\n}\n", &sources));
}

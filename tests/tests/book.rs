//! The book: all of its code is compiled and run.

#[path = "book/kernels.rs"]
mod kernels;

use curium_tests::TestResult;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the names of the book's chapters.
fn chapters() -> TestResult<Vec<String>> {
    let files = fs::read_dir(root().join("docs/book/src"))?;
    let names = files.map(|file| {
        file.expect("failed to read the file")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    Ok(names
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md")
        .collect())
}

#[test]
fn chapters_are_in_the_summary() -> TestResult {
    let summary = read(&root().join("docs/book/src/SUMMARY.md"));
    for chapter in chapters()? {
        assert!(
            summary.contains(&format!("({chapter})")),
            "the summary lacks {chapter}"
        );
    }
    Ok(())
}

/// Readers see lines that begin with `# ` on some sites: comments before the examples have what is
/// hidden.
#[test]
fn examples_have_no_hidden_lines() -> TestResult {
    for chapter in chapters()? {
        for code in blocks(&format!("docs/book/src/{chapter}"), "rust") {
            let hidden = code.lines().find(|line| line.starts_with("# "));
            assert_eq!(hidden, None, "{chapter}");
        }
    }
    Ok(())
}

#[test]
fn book_code_is_tested() -> TestResult {
    for chapter in chapters()? {
        let text = read(&root().join("docs/book/src").join(&chapter));
        let fences = text
            .lines()
            .filter_map(|line| line.strip_prefix("```"))
            .filter(|language| !language.is_empty());
        for language in fences {
            // Some functions do not exist on Windows.
            let language = language
                .trim_end_matches(",ignore-windows")
                // Code that includes a file by a relative path is not compiled with that of others.
                .trim_end_matches(",standalone_crate");
            // The programs of these chapters are compiled and run as they are, without hidden
            // lines; the last two show parts of examples.
            let is_program = [
                "quick-start.md",
                "from-cudarc.md",
                "service.md",
                "contexts-and-streams.md",
            ]
            .contains(&chapter.as_str())
                && language == "rust,ignore";
            assert!(
                is_program
                    || [
                        "rust",
                        "rust,compile_fail",
                        "rust,no_run",
                        "sh",
                        "console",
                        "toml",
                        "c",
                        "text"
                    ]
                    .contains(&language),
                "{chapter}: {language}"
            );
        }
    }
    Ok(())
}

/// The code of a chapter that shows an example is that of its files, but for its layout.
#[test]
fn chapters_show_their_examples() {
    let chapters: [(&str, &[&str]); 2] = [
        (
            "docs/book/src/service.md",
            &[
                "crates/curium/examples/18_service/main.rs",
                "crates/curium/examples/18_service/service.rs",
                "crates/curium/tests/service.rs",
            ],
        ),
        (
            "docs/book/src/contexts-and-streams.md",
            &["crates/curium/examples/19_executors.rs"],
        ),
    ];
    for (chapter, files) in chapters {
        let code: String = files
            .iter()
            .map(|file| without_layout(&read(&root().join(file))))
            .collect();
        let blocks = blocks(chapter, "rust,ignore");
        assert!(!blocks.is_empty());
        for block in blocks {
            assert!(code.contains(&without_layout(&block)), "{chapter}: {block}");
        }
    }
}

/// Returns code without its layout: comments may have any width.
fn without_layout(text: &str) -> String {
    let words = text.lines().flat_map(|line| {
        line.trim_start_matches(|letter: char| letter == '/' || letter.is_whitespace())
            .split_whitespace()
    });
    words.collect()
}

/// Returns the code blocks of a page in the given language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = read(&root().join(page));
    let fence = format!("```{language}\n");
    let blocks = text
        .split(&fence)
        .skip(1)
        .map(|block| block.split("```").next().unwrap_or_default());
    blocks.map(str::to_owned).collect()
}

/// The program with `kernels!` of the quick start, as a reader pastes it.
mod quick_start_kernels {
    include!("../quick_start/kernels.rs");

    #[test]
    fn quick_start_kernels_run() -> curium::driver::Result<()> {
        curium_sim::test(|device: Device| {
            assert_eq!(doubled(&device, &[1.0, 2.0, 3.0])?, [2.0, 4.0, 6.0]);
            Ok(())
        })
    }

    #[test]
    fn oldest_driver_runs_kernels() -> curium::Result<()> {
        curium_sim::test_with(super::oldest_driver(), |device: Device| {
            assert_eq!(doubled(&device, &[1.0, 2.0, 3.0])?, [2.0, 4.0, 6.0]);
            Ok(())
        })
    }
}

/// Returns a simulator with the oldest driver that the front page promises.
fn oldest_driver() -> curium_sim::Config {
    curium_sim::Config::new().with_driver_version(curium::driver::CudaVersion::OLDEST_SUPPORTED)
}

/// The front page and the quick start have the code of the example `saxpy`, which its own test
/// runs.
#[test]
fn pasted_code_is_tested() {
    let example = |file: &str| read(&root().join("examples/01_saxpy").join(file));
    let pasted = |file: &str| read(&root().join("tests/quick_start").join(file));
    assert_eq!(
        blocks("README.md", "rust"),
        [example("src/main.rs"), example("build.rs")]
    );
    let quick_start = blocks("docs/book/src/quick-start.md", "rust,ignore");
    for code in [
        example("build.rs"),
        example("src/main.rs"),
        pasted("kernels.rs"),
    ] {
        assert!(quick_start.contains(&code), "{code}");
    }
    assert_eq!(
        blocks("docs/book/src/quick-start.md", "text"),
        [pasted("scale.ptx")]
    );
}

/// The documentation of `curium` has the beginning of the example.
#[test]
fn documentation_has_the_example() {
    let example = read(&root().join("examples/01_saxpy/src/main.rs"));
    let library = read(&root().join("crates/curium/src/lib.rs"));
    let code = library
        .split("//! ```ignore\n")
        .nth(1)
        .and_then(|block| block.split("//! ```").next())
        .unwrap_or_default();
    let code: String = code
        .lines()
        .map(|line| {
            line.trim_start_matches("//!")
                .trim_start_matches(' ')
                .to_owned()
        })
        .collect();
    let beginning: String = example.lines().map(str::trim_start).collect();
    assert!(code.len() > 500 && beginning.starts_with(&code), "{code}");
}

#[test]
fn cudarc_code_is_the_example() {
    let example = read(&root().join("tests/examples/cudarc_interop.rs"));
    let lines: HashSet<_> = example.lines().map(str::trim).collect();
    let code = blocks("docs/book/src/from-cudarc.md", "rust,ignore").join("\n");
    assert!(!code.is_empty());
    let unknown: Vec<_> = code
        .lines()
        .filter(|line| !lines.contains(line.trim()))
        .collect();
    assert!(unknown.is_empty(), "the example has no {unknown:?}");
}

/// Returns each of the alternatives: `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`.
fn alternatives(path: &str) -> Vec<String> {
    match path
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        Some((before, (names, after))) => names
            .split(',')
            .map(|name| format!("{before}{name}{after}"))
            .collect(),
        None => vec![path.to_owned()],
    }
}

#[test]
fn safety_page_names_files() {
    let text = read(&root().join("docs/safety.md"));
    let quoted = text.split('`').skip(1).step_by(2);
    let named: Vec<_> = quoted
        .filter(|code| code.contains('/') && !code.contains(' '))
        .flat_map(alternatives)
        .collect();
    assert!(named.len() > 20, "{named:?}");
    for path in named {
        let candidates =
            ["", "crates", "crates/driver/src"].map(|folder| root().join(folder).join(&path));
        assert!(
            candidates.iter().any(|candidate| candidate.exists()),
            "there is no {path}"
        );
    }
}

/// Names of other crates that appear in the migration tables.
const FOREIGN: [&str; 7] = [
    "AnyBitPattern",
    "NoUninit",
    "Pod",
    "Zeroable",
    "bytemuck",
    "derive",
    "mut",
];

#[test]
fn migration_tables_name_items() {
    let defined = [
        "sys",
        "driver",
        "memory",
        "interop",
        "diagnostics",
        "nvrtc",
        "blas",
        "rand",
        "fft",
        "nccl",
        "curium",
    ]
    .map(|name| root().join("crates").join(name).join("src"));
    let defined = defined
        .iter()
        .fold(HashSet::new(), |all, folder| defined_below(folder, all));
    assert!(defined.contains("copy_from_slice") && !defined.contains("clone_htod"));
    for chapter in [
        "for-cuda.md",
        "from-cudarc.md",
        "from-cust.md",
        "from-others.md",
    ] {
        let text = read(&root().join("docs/book/src").join(chapter));
        let rows = text
            .lines()
            .filter_map(|line| line.strip_prefix("| "))
            .map(|line| line.replace("\\|", ""));
        for cell in rows.filter_map(|row| row.split('|').nth(1).map(str::to_owned)) {
            for code in cell.split('`').skip(1).step_by(2) {
                let unknown: Vec<_> = words(code)
                    .filter(|name| {
                        !defined.contains(*name)
                            && !FOREIGN.contains(name)
                            && is_public_name(name, code)
                    })
                    .collect();
                assert!(
                    unknown.is_empty(),
                    "{chapter}: `{code}` names {unknown:?}, which does not exist"
                );
            }
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// Returns `true` if the code uses the word as a type, a module, a method or a function, and not as
/// a variable.
fn is_public_name(word: &str, code: &str) -> bool {
    let is_short = word.len() == 1 || ["f32", "u32", "u64"].contains(&word);
    !is_short
        && (word.starts_with(char::is_uppercase)
            || code.contains(&format!("::{word}"))
            || code.contains(&format!("{word}("))
            || code.contains(&format!("{word}::")))
}

/// Returns the names defined by the Rust files below a folder, including variants and the
/// attributes generated by macros.
fn defined_below(folder: &Path, mut names: HashSet<String>) -> HashSet<String> {
    for entry in fs::read_dir(folder).expect("the sources exist") {
        let path = entry.expect("failed to read the file").path();
        if path.is_dir() {
            names = defined_below(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(
                read(&path)
                    .lines()
                    .filter_map(defined_in)
                    .map(str::to_owned),
            );
        }
    }
    names
}

fn defined_in(line: &str) -> Option<&str> {
    let is_keyword =
        |word: &&str| ["fn", "struct", "enum", "trait", "mod", "type", "const"].contains(word);
    let is_variant = line.trim_start().starts_with(char::is_uppercase);
    if is_variant || line.contains("= CU_") {
        return words(line).next();
    }
    words(line)
        .skip_while(|word| !is_keyword(word))
        .find(|word| !is_keyword(word))
}

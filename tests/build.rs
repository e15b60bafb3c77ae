//! Writes the kernel that `kernels!` reads from a build script's output, and the doc tests of the
//! book.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The chapters of the book.
const BOOK: &str = "../docs/book/src";

/// A comment with lines that the next example needs and readers do not see: before the example, and
/// after it those that follow a line `…`. A line that begins with `- ` names a line of the example
/// that is not compiled, such as one that loads NVIDIA's library.
const HIDDEN: &str = "<!-- hidden";
const END_OF_HIDDEN: &str = "-->";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("`OUT_DIR` is not set")?);
    let ptx = Path::new("kernels/fill.ptx");
    println!("cargo::rerun-if-changed={}", ptx.display());
    fs::copy(ptx, folder.join("built.ptx"))?;
    println!("cargo::rerun-if-changed={BOOK}");
    write_book(&folder)
}

/// Writes each chapter with complete examples, and a module with the chapter as its documentation.
fn write_book(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut modules = String::new();
    for entry in fs::read_dir(BOOK)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.extension().is_none_or(|extension| extension != "md") || name == "SUMMARY" {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let chapter = complete(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = folder.join(format!("{name}.md"));
        fs::write(&file, chapter)?;
        let module = name.replace('-', "_");
        writeln!(
            modules,
            "#[doc = include_str!({file:?})]\nmod {module}_chapter {{}}"
        )?;
    }
    fs::write(folder.join("book.rs"), modules)?;
    // The sources that an example embeds lie beside its file.
    fs::create_dir_all(folder.join("kernels"))?;
    for entry in fs::read_dir(Path::new(BOOK).join("kernels"))? {
        let entry = entry?;
        fs::copy(entry.path(), folder.join("kernels").join(entry.file_name()))?;
    }
    Ok(())
}

/// Adds the hidden lines to the examples of a chapter, and their result to those that use `?`.
fn complete(text: &str) -> Result<String, String> {
    let mut chapter = String::new();
    let mut hidden = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == HIDDEN {
            hidden = lines
                .by_ref()
                .take_while(|line| *line != END_OF_HIDDEN)
                .collect();
            continue;
        }
        chapter += line;
        chapter.push('\n');
        if !line.starts_with("```") {
            if !line.is_empty() && !hidden.is_empty() {
                return Err(format!(
                    "expected an example after hidden lines, found `{line}`"
                ));
            }
            continue;
        }
        let code: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        if line.starts_with("```rust") {
            write_example(&mut chapter, &std::mem::take(&mut hidden), &code)?;
        } else {
            chapter += &code.join("\n");
            chapter.push('\n');
        }
        chapter += "```\n";
    }
    Ok(chapter)
}

fn write_example(chapter: &mut String, hidden: &[&str], code: &[&str]) -> Result<(), String> {
    let (omitted, added): (Vec<&str>, Vec<&str>) =
        hidden.iter().partition(|line| line.starts_with("- "));
    let omitted: Vec<_> = omitted
        .iter()
        .map(|line| line.trim_start_matches("- "))
        .collect();
    if let Some(line) = omitted.iter().find(|line| !code.contains(line)) {
        return Err(format!("the example has no line `{line}`"));
    }
    let mut parts = added.split(|line| *line == "…");
    for line in parts.next().unwrap_or_default() {
        *chapter += &format!("# {line}\n");
    }
    for line in code.iter().filter(|line| !omitted.contains(line)) {
        *chapter += line;
        chapter.push('\n');
    }
    for line in parts.next().unwrap_or_default() {
        *chapter += &format!("# {line}\n");
    }
    let has_main = code.iter().any(|line| line.starts_with("fn main("));
    let uses_results = hidden.iter().chain(code).any(|line| line.contains('?'));
    if uses_results && !has_main {
        *chapter += "# Ok::<(), Box<dyn std::error::Error>>(())\n";
    }
    Ok(())
}

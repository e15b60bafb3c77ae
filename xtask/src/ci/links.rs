//! Checks the links, anchors and file names in the pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, ensure};

use super::{Options, Outcome, tree};

/// The folder of the book, whose pages are published without the rest of the repository.
const BOOK: &str = "docs/book/src";

/// The targets of links: the pages of the repository with their anchors, and its files and folders.
struct Site {
    anchors: BTreeMap<PathBuf, BTreeSet<String>>,
    files: BTreeSet<PathBuf>,
}

/// Checks every page that git tracks.
pub(super) fn run(_options: &Options) -> Result<Outcome> {
    let names = tree::names()?;
    let texts = tree::texts()?;
    let pages: Vec<_> = texts
        .iter()
        .filter(|(name, _)| name.ends_with(".md"))
        .collect();
    let site = Site::new(&names, &pages);
    let mut count = 0;
    let mut faults = Vec::new();
    for (name, text) in pages {
        for (line, target) in links(text) {
            count += 1;
            faults.extend(
                site.fault(name, target)
                    .map(|fault| format!("{name}:{line}: {fault}")),
            );
        }
        let missing =
            files_named(text).filter(|(_, file)| !names.iter().any(|name| names_file(name, file)));
        faults.extend(
            missing.map(|(line, file)| format!("{name}:{line}: there is no file `{file}`")),
        );
    }
    println!("{count} links");
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(Outcome::Passed)
}

impl Site {
    fn new(names: &[String], pages: &[&(String, String)]) -> Self {
        let ancestors = names.iter().flat_map(|name| Path::new(name).ancestors());
        let anchors = pages
            .iter()
            .map(|(name, text)| (PathBuf::from(name), anchors(text)));
        Self {
            anchors: anchors.collect(),
            files: ancestors.map(Path::to_path_buf).collect(),
        }
    }

    /// Returns the problem with a link on `page`, if there is one.
    fn fault(&self, page: &str, target: &str) -> Option<String> {
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let target_file = if file.is_empty() {
            PathBuf::from(page)
        } else {
            resolve(page, file)?
        };
        if !self.files.contains(&target_file) {
            return Some(format!("the link {target} leads nowhere"));
        }
        if page.starts_with(BOOK) && !target_file.starts_with(BOOK) {
            return Some(format!("the link {target} leads out of the book"));
        }
        let anchors = self.anchors.get(&target_file)?;
        if anchor.is_empty() || anchors.contains(anchor) {
            return None;
        }
        Some(format!("the link {target} leads to no heading"))
    }
}

/// Resolves `file` relative to `page`. A path above the root resolves to `None`.
fn resolve(page: &str, file: &str) -> Option<PathBuf> {
    let mut target_file = Path::new(page).parent()?.to_path_buf();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => {
                target_file.pop();
            }
            Component::CurDir => {}
            other => target_file.push(other),
        }
    }
    Some(target_file)
}

/// Returns the numbered lines of a page outside of code blocks.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    page.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (!in_code && !is_fence).then_some((index + 1, line))
    })
}

/// Returns the pieces of a line, alternately prose and code.
fn pieces(line: &str, code: bool) -> impl Iterator<Item = &str> {
    line.split('`').skip(usize::from(code)).step_by(2)
}

/// Returns the targets of the links of a page, each with its line.
fn links(page: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(page).flat_map(|(number, line)| {
        // Code is included, because the text of a link may be code, with its target after it.
        let targets = line
            .split("](")
            .skip(1)
            .filter_map(|text| text.split(')').next());
        targets.map(move |target| (number, target.split(' ').next().unwrap_or_default()))
    })
}

fn is_path(piece: &str) -> bool {
    let ending = piece.rsplit_once('.').map_or("", |(_, ending)| ending);
    piece.contains('/')
        && piece
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
        && ["rs", "toml", "sh", "yml"].contains(&ending)
}

/// Returns the files that a page names as code by a path of at least two parts, each with its line.
fn files_named(page: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(page).flat_map(move |(number, line)| {
        pieces(line, true)
            .filter(|piece| is_path(piece))
            .map(move |file| (number, file))
    })
}

/// Returns `true` if `file` is the end of `name` in whole parts: pages omit `crates/` and more.
fn names_file(name: &str, file: &str) -> bool {
    Path::new(name).ends_with(file)
}

/// Returns the anchors of a page: those of its headings, as both GitHub and mdBook make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let headings = prose(page)
        .map(|(_, line)| line)
        .filter(|line| line.starts_with('#'));
    for heading in headings {
        let name = anchor(heading.trim_start_matches('#').trim());
        let name = (0..).map(|count| {
            if count == 0 {
                name.clone()
            } else {
                format!("{name}-{count}")
            }
        });
        // Takes the first free name, because several headings may have the same text.
        anchors.extend(name.into_iter().find(|name| !anchors.contains(name)));
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let letters = heading
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    letters.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(page: &str, target: &str) -> Option<String> {
        let pages = [
            ("README.md", "# A\n## The `b`, and c\n"),
            ("docs/book/src/d.md", "# D\n# D\n"),
        ];
        let pages = pages.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let names = ["README.md", "docs/book/src/d.md", "docs/e.rs"].map(str::to_owned);
        Site::new(&names, &pages.iter().collect::<Vec<_>>()).fault(page, target)
    }

    #[test]
    fn valid_links_are_accepted() {
        for target in [
            "docs",
            "docs/e.rs",
            "docs/book/src/d.md#d-1",
            "#the-b-and-c",
            "https://example.org/#x",
        ] {
            assert_eq!(fault("README.md", target), None, "{target}");
        }
        assert_eq!(fault("docs/book/src/d.md", "d.md#d"), None);
    }

    #[test]
    fn links_to_nothing_are_faults_that_name_them() {
        for (target, why) in [
            ("docs/x.md", "nowhere"),
            ("docs/book/src/d.md#d-2", "heading"),
            ("#b", "heading"),
        ] {
            let fault = fault("README.md", target).expect("it points to nothing");
            assert!(fault.contains(target) && fault.contains(why), "{fault}");
        }
    }

    #[test]
    fn book_links_only_to_published_files() {
        let fault = fault("docs/book/src/d.md", "../../e.rs").expect("that is not in the book");
        assert!(fault.contains("out of the book"), "{fault}");
    }

    #[test]
    fn code_blocks_have_no_links() {
        let page = "[`a`](b.md) and ![c](d.png \"e\")\n```\n[x](y)\n```\n`src/f.rs`, `g.rs`, `h/*.rs`, h/i.rs\n";
        assert_eq!(links(page).collect::<Vec<_>>(), [(1, "b.md"), (1, "d.png")]);
        assert_eq!(files_named(page).collect::<Vec<_>>(), [(5, "src/f.rs")]);
        assert!(
            names_file("crates/a/src/f.rs", "src/f.rs")
                && !names_file("crates/a/osrc/f.rs", "src/f.rs")
        );
    }
}

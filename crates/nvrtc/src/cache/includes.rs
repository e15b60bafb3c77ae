//! The files that a program may include, found without a preprocessor: conditional directives are ignored.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::fingerprint::fingerprint;
use crate::Program;

/// Options that make the compiler read or write other files, by prefix.
const OTHER_FILES: [&str; 5] = [
    "pch",
    "create-pch",
    "use-pch",
    "use-bundled-headers",
    "time",
];

/// The state of the files that a program may include.
#[derive(Default)]
pub(super) struct Includes {
    /// A line for each path that was examined, in order: its hash, or that it does not exist.
    pub(super) facts: Vec<String>,
}

/// Follows the includes from file to file.
struct Search<'a> {
    program: &'a Program,
    folders: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
    seen_headers: BTreeSet<&'a str>,
    facts: Vec<String>,
}

impl Includes {
    /// Finds the files that `program` may include. Returns `None` if they cannot be determined, or if options make the
    /// compiler use other files.
    pub(super) fn of(program: &Program, arguments: &[String]) -> Option<Self> {
        let is_other = |argument: &String| {
            let name = argument.trim_start_matches('-');
            OTHER_FILES.iter().any(|other| name.starts_with(other))
                || name.starts_with("fdevice-time-trace")
        };
        if arguments.iter().any(is_other) {
            return None;
        }
        let folders = values(arguments, &["--include-path", "-I"])
            .map(PathBuf::from)
            .collect();
        let (seen, seen_headers) = (BTreeSet::new(), BTreeSet::new());
        let mut search = Search {
            program,
            folders,
            seen,
            seen_headers,
            facts: Vec::new(),
        };
        let home = Path::new(&program.name).parent();
        search.text(&program.source, home)?;
        for header in values(arguments, &["--pre-include", "-include"]) {
            search.include(header, home)?;
        }
        Some(Self {
            facts: search.facts,
        })
    }
}

impl<'a> Search<'a> {
    /// Follows the includes of `text`, which is located in the directory `home`.
    fn text(&mut self, text: &str, home: Option<&Path>) -> Option<()> {
        for directive in directives(text) {
            self.include(name(directive)?, home)?;
        }
        Some(())
    }

    /// Follows one include: the program's own header of that name, or every file that it may refer to.
    fn include(&mut self, name: &str, home: Option<&Path>) -> Option<()> {
        let program: &'a Program = self.program;
        if let Some((header, text)) = program.headers.iter().find(|(header, _)| header == name) {
            return if self.seen_headers.insert(header) {
                self.text(text, home)
            } else {
                Some(())
            };
        }
        let folders: Vec<PathBuf> = home
            .map(Path::to_path_buf)
            .into_iter()
            .chain(self.folders.clone())
            .collect();
        folders
            .iter()
            .try_for_each(|folder| self.file(&folder.join(name)))
    }

    fn file(&mut self, path: &Path) -> Option<()> {
        if !self.seen.insert(path.to_path_buf()) {
            return Some(());
        }
        let Ok(bytes) = std::fs::read(path) else {
            self.facts.push(format!("{}: absent", path.display()));
            return Some(());
        };
        self.facts.push(format!(
            "{}: {:032x}",
            path.display(),
            fingerprint([bytes.as_slice()])
        ));
        self.text(&String::from_utf8_lossy(&bytes), path.parent())
    }
}

/// Returns the operands of `#include` and other directives that name a file.
fn directives(text: &str) -> impl Iterator<Item = &str> {
    let behind = |word: &'static str| {
        text.match_indices(word)
            .map(move |(at, _)| text[at + word.len()..].trim_start())
    };
    let includes = text.match_indices('#').filter_map(|(at, _)| {
        let rest = text[at + 1..]
            .trim_start_matches([' ', '\t'])
            .strip_prefix("include")?;
        Some(
            rest.strip_prefix("_next")
                .unwrap_or(rest)
                .trim_start_matches([' ', '\t']),
        )
    });
    includes.chain(
        behind("__has_include")
            .filter_map(|rest| rest.strip_prefix('('))
            .map(str::trim_start),
    )
}

/// Returns the file name between quotes or angle brackets; `None` if it is computed.
fn name(directive: &str) -> Option<&str> {
    let end = match directive.chars().next()? {
        '"' => '"',
        '<' => '>',
        _ => return None,
    };
    let (name, _) = directive[1..].split_once(end)?;
    (!name.contains('\n')).then_some(name)
}

/// Returns the values of the options with one of these names: `--name=value`, `-Nvalue`, or the following argument.
fn values<'a>(
    arguments: &'a [String],
    names: &'static [&'static str],
) -> impl Iterator<Item = &'a str> {
    arguments
        .iter()
        .enumerate()
        .filter_map(move |(index, argument)| {
            let value = names.iter().find_map(|name| argument.strip_prefix(name))?;
            match value.strip_prefix('=').unwrap_or(value).trim_start() {
                "" => arguments.get(index + 1).map(String::as_str),
                value => Some(value),
            }
        })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn facts(program: &Program, arguments: &[&str]) -> Option<Vec<String>> {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect();
        Includes::of(program, &arguments).map(|includes| includes.facts)
    }

    #[test]
    fn file_that_a_header_includes_changes_the_facts_when_it_changes() {
        let folder = tempfile::tempdir().expect("a folder can be created");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("the folder is writable")
        };
        write("a.h", "# include <b.h>\n");
        write("b.h", "#define B 1\n#include \"a.h\"\n");
        let program = Program::new("k.cu", "#include \"own.h\"\n")
            .with_header("own.h", "#if 0\n#include \"a.h\"\n#endif");
        let path = format!("--include-path={}", folder.path().display());
        let before = facts(&program, &[&path]).expect("the names are there");
        assert_eq!(
            before
                .iter()
                .filter(|fact| !fact.ends_with("absent"))
                .count(),
            2,
            "{before:?}"
        );
        assert_eq!(facts(&program, &[&path]), Some(before.clone()));
        write("b.h", "#define B 2\n#include \"a.h\"\n");
        assert_ne!(facts(&program, &[&path]), Some(before));
        assert_eq!(
            facts(&program, &["-I", &path[15..]]),
            facts(&program, &[&path])
        );
    }

    #[test]
    fn file_that_appears_changes_the_facts() {
        let folder = tempfile::tempdir().expect("a folder can be created");
        let program = Program::new("k.cu", "#if __has_include( <late.h>)\n#endif\n");
        let path = format!("-I{}", folder.path().display());
        let before = facts(&program, &[&path]).expect("the name is there");
        assert!(
            before.iter().all(|fact| fact.ends_with("absent")),
            "{before:?}"
        );
        fs::write(folder.path().join("late.h"), "").expect("the folder is writable");
        assert_ne!(facts(&program, &[&path]), Some(before));
    }

    #[test]
    fn computed_includes_and_options_with_other_files_are_not_cached() {
        assert!(
            facts(
                &Program::new("k.cu", "#define H \"a.h\"\n#include H\n"),
                &[]
            )
            .is_none()
        );
        let plain = Program::new("k.cu", "int x; // no #define or # at all\n");
        assert_eq!(
            facts(&plain, &["--std=c++17", "--use_fast_math"]),
            Some(Vec::new())
        );
        for option in [
            "--pch",
            "--use-pch=a",
            "--time=-",
            "--fdevice-time-trace=a",
            "-create-pch=a",
        ] {
            assert!(facts(&plain, &[option]).is_none(), "{option}");
        }
    }
}

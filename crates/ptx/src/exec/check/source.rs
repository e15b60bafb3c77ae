//! Source lines of instructions, from the `.loc` directives of a module.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{env, fmt, fs};

use super::name;

/// The maximum number of characters of a line that a report shows.
const MAX_WIDTH: usize = 160;
/// The maximum size of a source file from which a report shows a line, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// A place in the code of a kernel: a PTX instruction and its source lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeLocation {
    /// The line of the instruction in the PTX; 0 if no instruction was running.
    pub line: u32,
    /// The function that contains the instruction.
    pub function: Box<str>,
    /// The text of the instruction.
    pub instruction: Box<str>,
    /// The source line of the instruction, then that of the call into which its function was
    /// inlined, and so on. Empty without `.loc` directives, which compilers emit with line
    /// information.
    pub source: Vec<SourceLocation>,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceLocation {
    /// The path in the `.file` directive.
    pub file: Box<str>,
    /// The line, from 1 on.
    pub line: u32,
    /// The column, from 1 on; 0 if unknown.
    pub column: u32,
    /// The name of the inlined function that contains the line, as in the debug information; empty
    /// for the function of the instruction.
    pub function: Box<str>,
    /// The text of the line without indentation; empty if the file cannot be read.
    pub text: Box<str>,
}

/// The source lines of a module's instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceMap {
    text: Arc<str>,
    /// The start of each line of the text.
    lines: OnceLock<Vec<usize>>,
    files: HashMap<u32, SourceFile>,
    /// The starts of functions and the directives, by PTX line.
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct SourceFile {
    path: Box<str>,
    /// The lines, read with the first report.
    lines: OnceLock<Vec<Box<str>>>,
}

/// The instructions from a PTX line on.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) ptx_line: u32,
    pub(crate) kind: EntryKind,
}

/// A position in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourcePosition {
    /// The number of the file.
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum EntryKind {
    /// Instructions of a function, without a source line.
    Function(Box<str>),
    /// Instructions of one source line.
    Location {
        position: SourcePosition,
        /// The name of the inlined function.
        function: Box<str>,
        inlined_at: Option<SourcePosition>,
    },
}

impl SourceMap {
    /// Creates the map of a text with its source files, by number, and the starts of functions and
    /// directives in any order.
    pub(crate) fn new(
        text: Arc<str>,
        files: impl Iterator<Item = (u32, Box<str>)>,
        mut entries: Vec<Entry>,
    ) -> Self {
        // The definition of a function may follow later ones of the list.
        entries.sort_by_key(|entry| entry.ptx_line);
        let files = files.map(|(number, path)| {
            let lines = OnceLock::new();
            (number, SourceFile { path, lines })
        });
        Self {
            text,
            lines: OnceLock::new(),
            files: files.collect(),
            entries,
        }
    }

    /// Returns the instruction at a PTX line with its source lines.
    pub(crate) fn locate(&self, line: u32) -> CodeLocation {
        let end = self.entries.partition_point(|entry| entry.ptx_line <= line);
        let entries = &self.entries[..end];
        let first = entries
            .iter()
            .rposition(|entry| matches!(entry.kind, EntryKind::Function(_)));
        let function = match first.map(|first| &entries[first].kind) {
            Some(EntryKind::Function(name)) => name.clone(),
            _ => Box::default(),
        };
        CodeLocation {
            line,
            function,
            instruction: self.instruction(line).into(),
            source: self.chain(&entries[first.unwrap_or(0)..]),
        }
    }

    /// Returns the source lines of the last of a function's entries. Directives for the calls
    /// precede those of the inlined functions.
    fn chain(&self, mut entries: &[Entry]) -> Vec<SourceLocation> {
        let mut chain = Vec::new();
        while let Some((
            Entry {
                kind:
                    EntryKind::Location {
                        position,
                        function,
                        inlined_at,
                    },
                ..
            },
            earlier,
        )) = entries.split_last()
        {
            chain.extend(self.source_location(*position, function));
            let Some(call) = inlined_at else { break };
            let directive = earlier.iter().rposition(|entry| {
                matches!(&entry.kind, EntryKind::Location { position, .. } if position == call)
            });
            let Some(index) = directive else {
                chain.extend(self.source_location(*call, ""));
                break;
            };
            entries = &earlier[..=index];
        }
        chain
    }

    /// Returns a source line. Compilers give instructions without a source line the line 0.
    fn source_location(&self, position: SourcePosition, function: &str) -> Option<SourceLocation> {
        let file = self
            .files
            .get(&position.file)
            .filter(|_| position.line != 0)?;
        Some(SourceLocation {
            file: file.path.clone(),
            line: position.line,
            column: position.column,
            function: function.into(),
            text: file.line(position.line).into(),
        })
    }

    /// Returns the text of the instruction at a line, which may continue on later lines.
    fn instruction(&self, line: u32) -> String {
        let starts = self.lines.get_or_init(|| {
            let ends = self.text.match_indices('\n').map(|(index, _)| index + 1);
            std::iter::once(0).chain(ends).collect()
        });
        let start = (line as usize)
            .checked_sub(1)
            .and_then(|index| starts.get(index));
        let text = start.map_or("", |start| &self.text[*start..]);
        let end = text.find(';').map_or(0, |semicolon| {
            let rest = &text[semicolon..];
            semicolon + rest.find('\n').unwrap_or(rest.len())
        });
        let words: Vec<&str> = text[..end].split_whitespace().collect();
        shortened(&words.join(" "))
    }
}

impl SourceFile {
    /// Returns the text of a line, from 1 on; empty if the file cannot be read.
    fn line(&self, number: u32) -> String {
        let lines = self.lines.get_or_init(|| {
            let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
            let text = read_source(Path::new(&*self.path), package.as_deref()).unwrap_or_default();
            text.lines().map(|line| line.trim().into()).collect()
        });
        let index = (number as usize).checked_sub(1);
        let line = index.and_then(|index| lines.get(index));
        line.map_or(String::new(), |line| shortened(line))
    }
}

/// Folders of installed libraries: of Rust, and of CUDA C++.
const LIBRARY_FOLDERS: &[&str] = &[
    "rustlib",
    "registry",
    "site-packages",
    "dist-packages",
    "cub",
    "thrust",
    "libcudacxx",
    "cooperative_groups",
    "cutlass",
];
/// The starts of the paths of installed libraries.
const LIBRARY_ROOTS: &[&str] = &["/rustc/", "/usr/include/", "/usr/local/cuda", "/opt/cuda/"];

/// Returns `true` if a file is of an installed library, such as `core`, libcu++ or CUB.
fn is_library(file: &str) -> bool {
    let folders: Vec<&str> = file.split(['/', '\\']).rev().skip(1).collect();
    LIBRARY_ROOTS.iter().any(|root| file.starts_with(root))
        || folders.iter().any(|folder| LIBRARY_FOLDERS.contains(folder))
        // The headers of libcu++ are in `include/cuda`.
        || folders.windows(2).any(|pair| pair == ["cuda", "include"])
}

/// Reads a source file. Relative paths begin at the package of the program, whose folder cargo sets
/// when it runs the program from another one: kernels in Rust have such paths. Otherwise they begin
/// at the current folder.
fn read_source(path: &Path, package: Option<&Path>) -> Option<String> {
    // Joining replaces the folder if the path is absolute.
    let in_package = package.map(|folder| folder.join(path));
    let candidates = in_package.into_iter().chain([path.to_owned()]);
    candidates
        .filter(|path| {
            fs::metadata(path)
                .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_FILE)
        })
        .find_map(|path| fs::read_to_string(path).ok())
}

/// Returns the beginning of a long line.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(MAX_WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

impl CodeLocation {
    /// Returns `true` if both instructions are of one source line, with the same inlined calls.
    pub(crate) fn has_same_source(&self, other: &Self) -> bool {
        let pairs = self.source.iter().zip(&other.source);
        self.source.len() == other.source.len()
            && !self.source.is_empty()
            && pairs
                .into_iter()
                .all(|(one, other)| one.line == other.line && one.file == other.file)
    }

    /// Returns the index of the innermost source line of the program itself, or else of the
    /// innermost one whose file can be read, or else of the innermost one.
    fn main_source(&self) -> usize {
        let mut lines = self.source.iter();
        let readable = lines.position(|line| !line.text.is_empty());
        self.program_source().or(readable).unwrap_or(0)
    }

    /// Returns the index of the innermost source line whose file can be read and is of no library.
    fn program_source(&self) -> Option<usize> {
        let mut lines = self.source.iter();
        lines.position(|line| !line.text.is_empty() && !is_library(&line.file))
    }

    /// Returns `true` if a source line is of the program itself.
    pub(crate) fn has_program_source(&self) -> bool {
        self.program_source().is_some()
    }

    /// Writes the source line and the PTX line.
    pub(crate) fn write_position(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_source(f)?;
        write!(f, "PTX line {}", self.line)
    }

    /// Writes the source line and a comma, if there is one.
    pub(crate) fn write_source(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source.get(self.main_source()) {
            Some(location) => write!(f, "{location}, "),
            None => Ok(()),
        }
    }

    /// Writes the text of each source line, or that of the instruction, each after a newline.
    pub(crate) fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_lines(f, self.main_source() > 0)
    }

    /// Writes the same. `has_position` is `false` if the position of the innermost source line
    /// precedes the text.
    pub(crate) fn write_lines(
        &self,
        f: &mut fmt::Formatter<'_>,
        has_position: bool,
    ) -> fmt::Result {
        let mut has_text = false;
        for (index, location) in self.source.iter().enumerate() {
            if index > 0 {
                write!(f, "\n    inlined at {location}")?;
            } else if has_position {
                write!(f, "\n    at {location}")?;
            }
            if !location.text.is_empty() {
                has_text = true;
                write!(f, "\n    {:>5} | {}", location.line, location.text)?;
            }
        }
        if !has_text && !self.instruction.is_empty() {
            write!(f, "\n    PTX {} | {}", self.line, self.instruction)?;
        }
        Ok(())
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column != 0 {
            write!(f, ":{}", self.column)?;
        }
        if !self.function.is_empty() {
            write!(f, " in `{}`", name::demangled(&self.function))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_their_folders() {
        for file in [
            "/rustc/88d9e12ae178/library/core/src/slice/index.rs",
            "/opt/rustup/toolchains/1.98.0/lib/rustlib/src/rust/library/core/src/option.rs",
            "/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda_fp16.hpp",
            "env/lib/python3.11/site-packages/nvidia/cu13/include/cub/block/block_scan.cuh",
            "third_party/thrust/thrust/reduce.h",
            "C:\\cuda\\include\\cuda\\std\\atomic",
        ] {
            assert!(is_library(file), "{file}");
        }
        for file in [
            "src/bugs.rs",
            "/data/cuda/bugs.cu",
            "cub.cu",
            "cuda/include.cu",
        ] {
            assert!(!is_library(file), "{file}");
        }
    }

    /// `cargo run` starts the program in the folder in which the user is.
    #[test]
    #[cfg_attr(miri, ignore = "reads files")]
    fn relative_sources_are_found_in_the_package() {
        // These tests are a program of another package.
        let package = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/ptx"));
        let folder = Path::new("src/exec");
        let file = Path::new("check/source.rs");
        assert_eq!(read_source(file, None), None);
        let text = read_source(file, Some(&package.join(folder)));
        assert!(text.is_some_and(|text| text.starts_with("//! Source lines")));
        let absolute = package.join(folder).join(file);
        for other in [None, Some(Path::new("/no/such/folder"))] {
            assert!(read_source(&absolute, other).is_some());
            assert!(read_source(Path::new("Cargo.toml"), other).is_some());
        }
        assert_eq!(read_source(Path::new("src"), Some(package)), None);
    }
}

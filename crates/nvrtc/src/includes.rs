//! The files that a compilation may read.
//!
//! NVRTC does not report the files that it reads. The scan finds a superset of them without a
//! preprocessor: it follows every `#include`, also in branches that are skipped, and looks up each
//! name in every folder that NVRTC may search.

mod directive;
mod fingerprint;
mod folder_tree;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use self::directive::{HeaderName, header_names};
use self::fingerprint::fingerprint;
use crate::Program;

/// Options that make the compiler read or write other files, by prefix.
const OTHER_FILES: [&str; 5] = ["pch", "create-pch", "use-pch", "time", "fdevice-time-trace"];

/// The files and folders that determine what a program includes.
#[derive(Debug, Default)]
pub(crate) struct Includes {
    /// The headers that may be included, in the order of discovery.
    headers: Vec<Header>,
    /// Paths without a file at which NVRTC may look for a header.
    missing: Vec<PathBuf>,
    /// The folders of the options, in order.
    folders: Vec<PathBuf>,
    /// Folders outside `folders` in which NVRTC may look for a header that they do not contain.
    source_folders: BTreeSet<PathBuf>,
    /// Precompiled headers that options name.
    precompiled: Vec<PathBuf>,
    computed: Computed,
    /// `true` if an option makes the compiler read or write other files.
    has_other_files: bool,
}

/// A header on disk.
#[derive(Debug)]
struct Header {
    path: PathBuf,
    /// The hash of the contents.
    fingerprint: u128,
}

/// The files with an `#include` whose operand is the result of a macro.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
enum Computed {
    #[default]
    Nowhere,
    /// Headers in the folders of the options, such as those of CUDA's C++ libraries.
    InFolders,
    /// The source, or a header outside these folders.
    InSource,
}

/// Follows the includes from file to file.
struct Scan<'a> {
    program: &'a Program,
    /// The texts whose includes have not been followed.
    pending: VecDeque<Text>,
    /// The paths that were looked up, and `true` for those with a file.
    paths: BTreeMap<PathBuf, bool>,
    /// The headers of the program that were included.
    program_headers: BTreeSet<&'a str>,
    includes: Includes,
}

/// A text that is located in `folder`.
struct Text {
    text: String,
    folder: PathBuf,
}

impl Includes {
    /// Finds the files that `program` may include when it is compiled with `arguments`.
    pub(crate) fn scan(program: &Program, arguments: &[String]) -> Self {
        let mut folders: Vec<PathBuf> = values(arguments, &["--include-path", "-I"])
            .map(PathBuf::from)
            .collect();
        for bundled in values(arguments, &["--use-bundled-headers"]) {
            folders.extend([PathBuf::from(bundled), Path::new(bundled).join("cccl")]);
        }
        let mut scan = Scan {
            program,
            pending: VecDeque::new(),
            paths: BTreeMap::new(),
            program_headers: BTreeSet::new(),
            includes: Self {
                folders,
                precompiled: precompiled_headers(arguments),
                has_other_files: arguments.iter().any(|argument| uses_other_files(argument)),
                ..Self::default()
            },
        };
        scan.add_text(program.source.clone(), parent(Path::new(&program.name)));
        for header in values(arguments, &["--pre-include", "-include"]) {
            // NVRTC looks for it in the current directory, whatever the folder of the source.
            scan.header(&HeaderName::Quoted(header.to_owned()), Path::new(""));
        }
        while let Some(Text { text, folder }) = scan.pending.pop_front() {
            for name in header_names(&text) {
                scan.header(&name, &folder);
            }
        }
        scan.includes
    }

    /// Returns a hash of everything about the files that determines the output of the compiler;
    /// `None` if it is not known.
    pub(crate) fn fingerprint(&self) -> Option<u128> {
        let facts = self.facts()?;
        Some(fingerprint(facts.iter().map(String::as_bytes)))
    }

    /// Returns a line for each fact about the files.
    fn facts(&self) -> Option<Vec<String>> {
        if self.has_other_files || self.computed == Computed::InSource {
            return None;
        }
        let mut facts = Vec::new();
        for Header { path, fingerprint } in &self.headers {
            facts.push(format!("{}: {fingerprint:032x}\n", path.display()));
        }
        for path in &self.missing {
            facts.push(format!("{}: absent\n", path.display()));
        }
        if self.computed == Computed::InFolders {
            for folder in &self.folders {
                let tree = folder_tree::fingerprint(folder)?;
                facts.push(format!("{}/**: {tree:032x}\n", folder.display()));
            }
        }
        Some(facts)
    }

    /// Returns the paths whose changes may change what the program includes: headers, and folders
    /// in which a header may appear.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let headers = self.headers.iter().map(|header| &header.path);
        headers
            .chain(&self.folders)
            .chain(&self.source_folders)
            .chain(&self.precompiled)
            .map(PathBuf::as_path)
    }
}

impl<'a> Scan<'a> {
    fn add_text(&mut self, text: String, folder: &Path) {
        let folder = folder.to_path_buf();
        self.pending.push_back(Text { text, folder });
    }

    /// Looks up a header that is included by a file in `folder`: the program's own header of that
    /// name, or every file that the name may refer to.
    fn header(&mut self, name: &HeaderName, folder: &Path) {
        let (HeaderName::Quoted(text) | HeaderName::Angled(text)) = name else {
            return self.computed(folder);
        };
        let program: &'a Program = self.program;
        if let Some((header, source)) = program.headers.iter().find(|(header, _)| header == text) {
            if self.program_headers.insert(header) {
                self.add_text(source.clone(), parent(Path::new(header)));
            }
            return;
        }
        if matches!(name, HeaderName::Quoted(_)) {
            let is_file = self.file(&folder.join(text));
            if !is_file && !self.is_in_folders(folder) {
                self.includes.source_folders.insert(folder.to_path_buf());
            }
        }
        for index in 0..self.includes.folders.len() {
            let path = self.includes.folders[index].join(text);
            self.file(&path);
        }
    }

    /// Records an include in a file in `folder` whose name is not known.
    fn computed(&mut self, folder: &Path) {
        let computed = if self.is_in_folders(folder) {
            Computed::InFolders
        } else {
            self.includes.source_folders.insert(folder.to_path_buf());
            Computed::InSource
        };
        self.includes.computed = self.includes.computed.max(computed);
    }

    fn is_in_folders(&self, folder: &Path) -> bool {
        let mut folders = self.includes.folders.iter();
        folders.any(|include| folder.starts_with(include))
    }

    /// Looks up the file at `path`. Returns `false` if there is none.
    fn file(&mut self, path: &Path) -> bool {
        if let Some(is_file) = self.paths.get(path) {
            return *is_file;
        }
        let bytes = std::fs::read(path);
        self.paths.insert(path.to_path_buf(), bytes.is_ok());
        let Ok(bytes) = bytes else {
            self.includes.missing.push(path.to_path_buf());
            return false;
        };
        self.includes.headers.push(Header {
            path: path.to_path_buf(),
            fingerprint: fingerprint([bytes.as_slice()]),
        });
        self.add_text(String::from_utf8_lossy(&bytes).into_owned(), parent(path));
        true
    }
}

/// Returns the folder of a file: an empty path, the current directory, if the path has none.
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn precompiled_headers(arguments: &[String]) -> Vec<PathBuf> {
    let folder = values(arguments, &["--pch-dir"]).last().unwrap_or_default();
    values(arguments, &["--use-pch"])
        .map(|file| Path::new(folder).join(file))
        .collect()
}

fn uses_other_files(argument: &str) -> bool {
    let name = argument.trim_start_matches('-');
    OTHER_FILES.iter().any(|other| name.starts_with(other))
}

/// Returns the values of the options with one of these names: `--name=value`, `-Nvalue`, or the
/// following argument.
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

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    fn scan(program: &Program, arguments: &[&str]) -> Includes {
        let arguments: Vec<_> = arguments.iter().map(|text| (*text).to_owned()).collect();
        Includes::scan(program, &arguments)
    }

    fn facts(program: &Program, arguments: &[&str]) -> Option<Vec<String>> {
        scan(program, arguments).facts()
    }

    fn write(folder: &Path, name: &str, text: &str) -> std::io::Result<()> {
        let path = folder.join(name);
        fs::create_dir_all(parent(&path))?;
        fs::write(path, text)
    }

    #[test]
    fn changed_nested_header_changes_the_facts() -> TestResult {
        let folder = tempfile::tempdir()?;
        write(folder.path(), "a.h", "# include <b.h>\n")?;
        write(folder.path(), "b.h", "#define B 1\n#include \"a.h\"\n")?;
        let program = Program::new("k.cu", "#include \"own.h\"\n")
            .with_header("own.h", "#if 0\n#include \"a.h\"\n#endif");
        let option = format!("--include-path={}", folder.path().display());
        let before = facts(&program, &[&option]);
        let scanned = scan(&program, &[&option]);
        let headers: Vec<_> = scanned.headers.iter().map(|header| &header.path).collect();
        assert_eq!(
            headers,
            [&folder.path().join("a.h"), &folder.path().join("b.h")]
        );
        assert!(before.is_some());
        assert_eq!(facts(&program, &[&option]), before);
        write(folder.path(), "b.h", "#define B 2\n#include \"a.h\"\n")?;
        assert_ne!(facts(&program, &[&option]), before);
        let path = folder.path().display().to_string();
        assert_eq!(facts(&program, &["-I", &path]), facts(&program, &[&option]));
        Ok(())
    }

    #[test]
    fn header_that_appears_changes_the_facts() -> TestResult {
        let folder = tempfile::tempdir()?;
        let program = Program::new("k.cu", "#if __has_include( <late.h>)\n#endif\n");
        let option = format!("-I{}", folder.path().display());
        let before = facts(&program, &[&option]);
        assert!(before.is_some());
        write(folder.path(), "late.h", "")?;
        assert_ne!(facts(&program, &[&option]), before);
        Ok(())
    }

    /// NVRTC looks for them in the current directory first: see `real/includes.rs`.
    #[test]
    fn pre_include_is_in_the_current_directory() {
        let scanned = scan(&Program::new("/src/k.cu", ""), &["--pre-include=a.h"]);
        assert_eq!(scanned.missing, [Path::new("a.h")]);
    }

    /// The folder of a header of the program is that of its name, not that of the file that
    /// includes it.
    #[test]
    fn program_header_is_in_the_folder_it_names() {
        let program = Program::new("/src/k.cu", "#include \"v/a.h\"")
            .with_header("v/a.h", "#include \"b.h\"\n#include <c.h>");
        assert_eq!(scan(&program, &[]).missing, [Path::new("v/b.h")]);
    }

    #[test]
    fn folders_in_which_a_header_may_appear_are_watched() -> TestResult {
        let folder = tempfile::tempdir()?;
        let include = folder.path().join("include");
        write(folder.path(), "src/a.h", "#include <deep/b.h>")?;
        write(&include, "deep/b.h", "#include \"c.h\"")?;
        let name = folder.path().join("src/k.cu").display().to_string();
        let option = format!("-I{}", include.display());
        let mut expected = vec![
            folder.path().join("src/a.h"),
            include.join("deep/b.h"),
            include.clone(),
        ];
        let scanned = scan(&Program::new(name.as_str(), "#include \"a.h\""), &[&option]);
        assert!(scanned.paths().eq(&expected), "{scanned:?}");
        expected.push(folder.path().join("src"));
        for second in ["\"d.h\"", "NAME"] {
            let source = format!("#include \"a.h\"\n#include {second}");
            let scanned = scan(&Program::new(name.as_str(), source), &[&option]);
            assert!(scanned.paths().eq(&expected), "{scanned:?}");
        }
        Ok(())
    }

    #[test]
    fn facts_are_unknown_with_a_computed_include() {
        let program = Program::new("k.cu", "#define H \"a.h\"\n#include H\n");
        assert_eq!(facts(&program, &[]), None);
    }

    /// CUDA's C++ libraries have such includes. Any file in the folder may be the one.
    #[test]
    fn computed_include_makes_the_folder_a_fact() -> TestResult {
        let folder = tempfile::tempdir()?;
        write(folder.path(), "lib/a.h", "#include NAME")?;
        write(folder.path(), "lib/b.h", "1")?;
        let program = Program::new("k.cu", "#include <lib/a.h>");
        let option = format!("-I{}", folder.path().display());
        let before = facts(&program, &[&option]);
        assert!(before.is_some());
        assert_eq!(facts(&program, &[&option]), before);
        write(folder.path(), "lib/b.h", "22")?;
        let changed = facts(&program, &[&option]);
        assert_ne!(changed, before);
        write(folder.path(), "c.h", "")?;
        assert_ne!(facts(&program, &[&option]), changed);
        Ok(())
    }

    #[test]
    fn facts_are_unknown_with_options_for_other_files() {
        let plain = Program::new("k.cu", "int x; // no #define or # at all\n");
        let options = ["--std=c++17", "--use_fast_math"];
        assert_eq!(facts(&plain, &options), Some(Vec::new()));
        for option in [
            "--pch",
            "--use-pch=a",
            "--time=-",
            "--fdevice-time-trace=a",
            "-create-pch=a",
        ] {
            assert_eq!(facts(&plain, &[option]), None, "{option}");
        }
    }

    #[test]
    fn precompiled_header_is_watched() {
        let scanned = scan(&Program::new("k.cu", ""), &["--use-pch=a", "--pch-dir=/b"]);
        let paths: Vec<_> = scanned.paths().collect();
        assert_eq!(paths, [Path::new("/b/a")]);
    }

    #[test]
    fn bundled_headers_are_an_include_folder() {
        let program = Program::new("k.cu", "#include <cuda_fp16.h>");
        let scanned = scan(&program, &["--use-bundled-headers=/nowhere"]);
        let expected = ["/nowhere/cuda_fp16.h", "/nowhere/cccl/cuda_fp16.h"];
        assert_eq!(scanned.missing, expected.map(PathBuf::from));
    }
}

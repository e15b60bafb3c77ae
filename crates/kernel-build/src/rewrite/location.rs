//! Source lines of instructions, from debug information.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

/// The start of the paths of `core` in its debug information.
const COMPILER: &str = "/rustc/";

/// A line of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location<'a> {
    /// The folder that a relative `file` belongs to: that of a dependency or of `core`, or empty.
    directory: &'a str,
    file: &'a str,
    line: &'a str,
    column: &'a str,
}

impl<'a> Location<'a> {
    pub(crate) fn line(&self) -> &'a str {
        self.line
    }

    pub(crate) fn column(&self) -> &'a str {
        self.column
    }

    /// Returns the path of the file, which begins with the folder of a dependency or of `core`.
    pub(crate) fn path(&self) -> String {
        if self.directory.is_empty() {
            self.file.to_owned()
        } else {
            format!("{}/{}", self.directory, self.file)
        }
    }

    /// Returns `true` if the file belongs to the package that is compiled, and not to `core` or to
    /// a dependency.
    pub(crate) fn is_package_file(&self) -> bool {
        self.directory.is_empty() && !is_absolute(self.file)
    }

    /// Returns the first folder of the file. That of a dependency is its name.
    pub(crate) fn folder(&self) -> &str {
        let path = if self.directory.is_empty() {
            self.file
        } else {
            self.directory
        };
        path.split(['/', '\\']).next().unwrap_or_default()
    }
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.path(), self.line)
    }
}

/// The debug information of a module.
pub(crate) struct Locations<'a> {
    /// The text of each node, by its number.
    nodes: HashMap<&'a str, &'a str>,
}

impl<'a> Locations<'a> {
    pub(crate) fn new(metadata: &[&'a str]) -> Self {
        let nodes = metadata.iter().filter_map(|line| {
            let (number, text) = line.strip_prefix('!')?.split_once(" = ")?;
            Some((number, text))
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// Returns where an instruction comes from: its own line, then that of the call that was
    /// replaced by its function, and so on.
    pub(crate) fn chain(&self, instruction: &'a str) -> Vec<Location<'a>> {
        let mut locations = Vec::new();
        let mut next = number(instruction, "!dbg !");
        while let Some(node) = next.and_then(|number| self.nodes.get(number)) {
            locations.extend(self.location(node));
            next = self.call(node);
        }
        locations
    }

    /// Returns a node by its number.
    pub(crate) fn node(&self, number: &str) -> Option<&'a str> {
        self.nodes.get(number).copied()
    }

    /// Returns the line of the node of a location.
    pub(crate) fn location(&self, node: &'a str) -> Option<Location<'a>> {
        let line = number(node, "line: ")?;
        let file = self.file(node)?;
        Some(Location {
            directory: directory(file),
            file: string(file, "filename: \"").unwrap_or_default(),
            line,
            column: number(node, "column: ").unwrap_or("0"),
        })
    }

    /// Returns the number of the location of the call into which the function of a location was
    /// inlined.
    pub(crate) fn call(&self, node: &'a str) -> Option<&'a str> {
        number(node, "inlinedAt: !")
    }

    /// Returns the number of the scope of a location.
    pub(crate) fn scope(&self, node: &'a str) -> Option<&'a str> {
        number(node, "scope: !")
    }

    /// Returns the symbol, or else the name, of the function that contains a location.
    pub(crate) fn function(&self, node: &'a str) -> Option<&'a str> {
        let mut node = node;
        while !node.contains("!DISubprogram(") {
            node = self.node(self.scope(node)?)?;
        }
        string(node, "linkageName: \"").or_else(|| string(node, "name: \""))
    }

    /// Returns the node of the file of a location or of the scope that contains it.
    fn file(&self, node: &'a str) -> Option<&'a str> {
        let mut node = node;
        loop {
            if let Some(file) = number(node, "file: !") {
                return self.nodes.get(file).copied();
            }
            node = self.nodes.get(number(node, "scope: !")?)?;
        }
    }
}

/// Returns the folder of a file that is relative to it. The folder in which the compiler ran, on
/// this machine, is left out: the user's files are relative to their package.
fn directory(file: &str) -> &str {
    let name = string(file, "filename: \"").unwrap_or_default();
    let directory = string(file, "directory: \"").unwrap_or_default();
    let is_of_machine = is_absolute(directory) && !directory.starts_with(COMPILER);
    if is_absolute(name) || is_of_machine {
        ""
    } else {
        directory
    }
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || Path::new(path).is_absolute()
}

/// Returns the text between a key, which ends with a quotation mark, and the next quotation mark.
fn string<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key)?.1.split('"').next()
}

/// Returns the digits after a key.
fn number<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.split_once(key)?.1;
    let end = rest
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inlined_instructions_have_all_their_lines() {
        let locations = Locations::new(&[
            "!1 = !DIFile(filename: \"src/main.rs\", directory: \"/x\")",
            "!2 = distinct !DISubprogram(name: \"saxpy\", scope: !9, file: !1, line: 7)",
            "!3 = !DIFile(filename: \"/rustc/0/library/core/src/atomic.rs\", directory: \"/x\")",
            "!4 = distinct !DISubprogram(name: \"swap\", scope: !9, file: !3, line: 70)",
            "!5 = distinct !DILexicalBlock(scope: !4)",
            "!6 = !DILocation(line: 77, column: 3, scope: !5, inlinedAt: !7)",
            "!7 = distinct !DILocation(line: 10, column: 5, scope: !2)",
        ]);
        let chain =
            locations.chain("  %3 = atomicrmw xchg ptr %1, i32 2 seq_cst, align 4, !dbg !6");
        let lines: Vec<String> = chain.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            ["/rustc/0/library/core/src/atomic.rs:77", "src/main.rs:10"]
        );
        assert_eq!(chain[1].folder(), "src");
        assert!(locations.chain("  ret void").is_empty());
        assert!(locations.chain("  ret void, !dbg !99").is_empty());
    }

    /// The compiler writes files relative to the folder of their package, or whole.
    #[test]
    fn relative_files_belong_to_their_package() {
        let locations = Locations::new(&[
            "!1 = !DIFile(filename: \"src/atomic.rs\", directory: \"/rustc/0/library/core\", checksumkind: CSK_MD5)",
            "!2 = !DIFile(filename: \"src/lib.rs\", directory: \"libm-0.2.16\")",
            "!3 = !DIFile(filename: \"src/main.rs\", directory: \"\")",
            "!4 = !DILocation(line: 1, column: 3, file: !1, inlinedAt: !5)",
            "!5 = !DILocation(line: 2, column: 3, file: !2, inlinedAt: !6)",
            "!6 = !DILocation(line: 3, column: 3, file: !3)",
        ]);
        let chain = locations.chain("  ret void, !dbg !4");
        let lines: Vec<String> = chain.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "/rustc/0/library/core/src/atomic.rs:1",
                "libm-0.2.16/src/lib.rs:2",
                "src/main.rs:3"
            ]
        );
        let folders: Vec<_> = chain.iter().map(Location::folder).collect();
        assert_eq!(folders, ["", "libm-0.2.16", "src"]);
        let of_package: Vec<_> = chain.iter().map(Location::is_package_file).collect();
        assert_eq!(of_package, [false, false, true]);
    }
}

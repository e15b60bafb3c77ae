//! Source lines of instructions, from debug information.

use std::collections::HashMap;

/// A line of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location<'a> {
    pub(crate) file: &'a str,
    pub(crate) line: &'a str,
}

impl Location<'_> {
    /// Returns the first folder of the file. That of a dependency is its name.
    pub(crate) fn folder(&self) -> &str {
        self.file.split(['/', '\\']).next().unwrap_or_default()
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

    /// Returns where an instruction comes from: its own line, then that of the call that was replaced by its function, and so on.
    pub(crate) fn chain(&self, instruction: &'a str) -> Vec<Location<'a>> {
        let mut locations = Vec::new();
        let mut next = number(instruction, "!dbg !");
        while let Some(node) = next.and_then(|number| self.nodes.get(number)) {
            if let (Some(line), Some(file)) = (number(node, "line: "), self.file(node)) {
                locations.push(Location { file, line });
            }
            next = number(node, "inlinedAt: !");
        }
        locations
    }

    /// Returns the file of a location or of the scope that contains it.
    fn file(&self, node: &'a str) -> Option<&'a str> {
        let mut node = node;
        loop {
            if let Some(file) = number(node, "file: !") {
                let text = self.nodes.get(file)?.split_once("filename: \"")?.1;
                return text.split('"').next();
            }
            node = self.nodes.get(number(node, "scope: !")?)?;
        }
    }
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
        let lines: Vec<String> = chain
            .iter()
            .map(|location| format!("{}:{}", location.file, location.line))
            .collect();
        assert_eq!(
            lines,
            ["/rustc/0/library/core/src/atomic.rs:77", "src/main.rs:10"]
        );
        assert_eq!(chain[1].folder(), "src");
        assert!(locations.chain("  ret void").is_empty());
        assert!(locations.chain("  ret void, !dbg !99").is_empty());
    }
}

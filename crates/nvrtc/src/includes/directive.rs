//! The header names in preprocessor directives.

use std::borrow::Cow;

/// An operand of a directive that may name a header.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum HeaderName {
    /// `"name"`: searched for in the folder of the including file, too.
    Quoted(String),
    /// `<name>`.
    Angled(String),
    /// The result of a macro.
    Computed,
}

/// The maximum length of a header name in bytes. Without it, a line of unterminated names would be
/// read as often as it has names.
const MAX_NAME: usize = 1024;

/// The maximum number of directives that a line is searched for, for the same reason. Further ones
/// count as computed.
const MAX_DIRECTIVES: usize = 64;

/// Returns the operands of the directives in `text` that may name a header.
///
/// Conditions are not evaluated. Names in `#define`, `#if` and `#elif` are included, because they
/// may be an operand of `__has_include`, also through a macro.
pub(super) fn header_names(text: &str) -> Vec<HeaderName> {
    let text = splice(text);
    let mut names = Vec::new();
    for line in text.lines() {
        let directives = directives(line);
        if directives.len() > MAX_DIRECTIVES {
            names.push(HeaderName::Computed);
        }
        let mut is_searched = false;
        for directive in directives.into_iter().take(MAX_DIRECTIVES) {
            add_names(directive, &mut is_searched, &mut names);
        }
    }
    names
}

/// Joins lines that end with a backslash, and replaces the alternative spellings of `#`.
fn splice(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for (from, to) in [("\\\r\n", ""), ("\\\n", ""), ("%:", "#"), ("??=", "#")] {
        if text.contains(from) {
            text = Cow::Owned(text.replace(from, to));
        }
    }
    text
}

/// Returns the text after each `#` of `line` that nothing but white space and comments may precede.
fn directives(line: &str) -> Vec<&str> {
    let mut directives = Vec::new();
    let mut start = line;
    loop {
        if let Some(directive) = start.trim_start().strip_prefix('#') {
            directives.push(directive);
        }
        // A comment may end on this line.
        match start.split_once("*/") {
            Some((_, after)) => start = after,
            None => return directives,
        }
    }
}

/// Adds the names in a directive, which extends to the end of the line. `is_searched` tells whether
/// an earlier directive of the line was searched for literals: its operand contains this one's.
fn add_names(directive: &str, is_searched: &mut bool, names: &mut Vec<HeaderName>) {
    let Some(directive) = skip_comments(directive) else {
        return names.push(HeaderName::Computed);
    };
    let word_end = directive
        .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .unwrap_or(directive.len());
    let (word, operand) = directive.split_at(word_end);
    match word {
        "include" | "include_next" => {
            let name = skip_comments(operand).and_then(literal);
            names.push(name.unwrap_or(HeaderName::Computed));
        }
        "define" | "if" | "elif" if !*is_searched => {
            *is_searched = true;
            add_literals(operand, names);
        }
        _ => {}
    }
}

/// Skips white space and comments. Returns `None` if a comment does not end on this line.
fn skip_comments(text: &str) -> Option<&str> {
    let mut text = text.trim_start();
    while let Some(comment) = text.strip_prefix("/*") {
        text = comment.split_once("*/")?.1.trim_start();
    }
    Some(text)
}

/// Returns the header name at the start of `text`; `None` if there is none.
fn literal(text: &str) -> Option<HeaderName> {
    if let Some(quoted) = text.strip_prefix('"') {
        return Some(HeaderName::Quoted(before(quoted, b'"')?.to_owned()));
    }
    let angled = text.strip_prefix('<')?;
    Some(HeaderName::Angled(before(angled, b'>')?.to_owned()))
}

/// Returns the header name before the first `end`; `None` if it is longer than any name.
fn before(text: &str, end: u8) -> Option<&str> {
    let length = text.bytes().take(MAX_NAME).position(|byte| byte == end)?;
    Some(&text[..length])
}

/// Adds every text in `operand` that has the form of a header name.
fn add_literals(operand: &str, names: &mut Vec<HeaderName>) {
    for (position, _) in operand.match_indices(['"', '<']) {
        match literal(&operand[position..]) {
            Some(HeaderName::Angled(name)) if is_path(&name) => {
                names.push(HeaderName::Angled(name));
            }
            Some(HeaderName::Quoted(name)) if is_path(&name) => {
                names.push(HeaderName::Quoted(name));
            }
            _ => {}
        }
    }
}

/// Returns `true` unless the text between two signs of an expression or in a message cannot be the
/// name of a header.
fn is_path(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_alphanumeric() || "._-+/\\".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(name: &str) -> HeaderName {
        HeaderName::Quoted(name.to_owned())
    }

    fn angled(name: &str) -> HeaderName {
        HeaderName::Angled(name.to_owned())
    }

    /// Asserts that four times the text takes about four times as long, and not sixteen times. A
    /// busy machine gets several tries.
    fn assert_linear(unit: &str, read: impl Fn(&str)) {
        let text = unit.repeat(65_536 / unit.len());
        let longer = text.repeat(4);
        let is_linear = (0..8).any(|_| {
            let start = std::time::Instant::now();
            read(&text);
            let limit = start.elapsed() * 10 + std::time::Duration::from_millis(20);
            let start = std::time::Instant::now();
            read(&longer);
            start.elapsed() < limit
        });
        assert!(is_linear, "{unit:?}: four times the text takes too long");
    }

    #[test]
    fn source_is_scanned_in_linear_time() {
        for unit in [
            "#include <",
            "#include \"",
            "#define <",
            "# */ ",
            "#define <a */ ",
            "/* */",
            "#if \"",
            "__has_include(<",
            "#include_next <a",
            "%:",
        ] {
            assert_linear(unit, |text| drop(header_names(text)));
        }
    }

    /// Every spelling of a directive that NVRTC of CUDA 11.8 or 13.5 accepts.
    #[test]
    fn include_spellings_are_recognized() {
        for text in [
            "#include \"a.h\"",
            " \t# \tinclude\"a.h\"",
            "#/**/include/* x */\"a.h\"",
            "/* x */ #include \"a.h\"",
            "/* # */ /* y */#include \"a.h\"",
            "in a comment # */ # include \"a.h\"",
            "#inc\\\nlude \\\r\n \"a.h\"",
            "%:include \"a.h\"",
            "??=include \"a.h\"",
            "int x;\n#include_next \"a.h\" // why",
        ] {
            assert_eq!(header_names(text), [quoted("a.h")], "{text}");
        }
        assert_eq!(header_names("#include <a/b.h>"), [angled("a/b.h")]);
    }

    #[test]
    fn macro_operands_are_computed() {
        assert_eq!(header_names("#include HEADER(x)"), [HeaderName::Computed]);
        assert_eq!(header_names("# /* no end"), [HeaderName::Computed]);
        assert_eq!(header_names("#include /* no"), [HeaderName::Computed]);
        assert_eq!(header_names("#include \"a.h"), [HeaderName::Computed]);
    }

    #[test]
    fn names_in_conditions_and_definitions_are_found() {
        assert_eq!(
            header_names("#if 1 < 2 && __has_include( <late.h>) || HAS (\"b.h\")"),
            [angled("late.h"), quoted("b.h")]
        );
        assert_eq!(header_names("# define H <c.h>"), [angled("c.h")]);
        assert_eq!(header_names("#if defined(A) && a < b && c > d"), []);
    }

    #[test]
    fn text_that_is_no_directive_is_ignored() {
        for text in [
            "// #include \"a.h\"",
            " * #include <a.h>",
            "const char* text = \"#include\";",
            "#pragma once",
            "#error \"a.h\"",
            "#",
        ] {
            assert_eq!(header_names(text), [], "{text}");
        }
    }
}

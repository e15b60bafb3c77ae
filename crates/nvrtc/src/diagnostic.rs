//! What the compiler says about a place in the source.

use std::fmt;

/// What the compiler says about one place in the source.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The name of the source or of a header.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The column in bytes, counted from 1. NVRTC before 12 does not say it.
    pub column: Option<u32>,
    /// How bad it is.
    pub severity: Severity,
    /// The number of the warning, such as `177-D`, with which it can be suppressed.
    pub number: Option<String>,
    /// What is wrong. Further lines say how the compiler came there, such as by which instantiation.
    pub message: String,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Severity {
    /// The program is not compiled.
    Error,
    /// The program is compiled, but may not do what was meant.
    Warning,
    /// For information.
    Remark,
}

/// The words for each severity, the longer before those that they end in.
const SEVERITIES: [(&str, Severity); 5] = [
    ("catastrophic error", Severity::Error),
    ("internal error", Severity::Error),
    ("error", Severity::Error),
    ("warning", Severity::Warning),
    ("remark", Severity::Remark),
];

/// The compiler shifts the source that it repeats by this many spaces.
const INDENTATION: usize = 2;

/// The diagnostics of a compiler's log, in its order.
pub(crate) fn parse(log: &str) -> Vec<Diagnostic> {
    let lines: Vec<_> = log.lines().collect();
    let heads = lines.iter().enumerate().filter_map(|(at, line)| Some((at, head(line)?)));
    heads.map(|(at, diagnostic)| with_details(diagnostic, &lines[at + 1..])).collect()
}

/// The diagnostic that begins with a line such as `a.cu(3): warning #177-D: variable "x" was declared but never referenced`.
fn head(line: &str) -> Option<Diagnostic> {
    // A file's name may hold anything: the first place that reads like the end of one counts.
    line.match_indices("): ").find_map(|(end, separator)| {
        let (file, number) = line[..end].rsplit_once('(')?;
        let line_number = number.parse().ok()?;
        let (severity, number, message) = kind(&line[end + separator.len()..])?;
        Some(Diagnostic {
            file: file.to_owned(),
            line: line_number,
            column: None,
            severity,
            number: number.map(str::to_owned),
            message: message.to_owned(),
        })
    })
}

/// Severity, number and message of `warning #177-D: variable …`.
fn kind(text: &str) -> Option<(Severity, Option<&str>, &str)> {
    let (word, severity) = SEVERITIES.into_iter().find(|(word, _)| text.starts_with(word))?;
    let (number, message) = text[word.len()..].split_once(": ")?;
    match number.strip_prefix(" #") {
        Some(number) => Some((severity, Some(number), message)),
        None => number.is_empty().then_some((severity, None, message)),
    }
}

/// Adds what stands in the lines below the head, up to an empty one: the source with a caret below it, and notes.
fn with_details(mut diagnostic: Diagnostic, below: &[&str]) -> Diagnostic {
    let end = below.iter().position(|line| line.trim().is_empty() || head(line).is_some());
    let block = &below[..end.unwrap_or(below.len())];
    let caret = block.iter().position(|line| line.trim() == "^");
    diagnostic.column = caret.and_then(|at| column(block[at]));
    for (at, line) in block.iter().enumerate() {
        let is_source = caret.is_some_and(|caret| at == caret || at + 1 == caret);
        if !is_source {
            diagnostic.message.push('\n');
            diagnostic.message.push_str(line.trim());
        }
    }
    diagnostic
}

fn column(caret: &str) -> Option<u32> {
    let position = caret.find('^')?.checked_sub(INDENTATION)?;
    u32::try_from(position + 1).ok()
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, severity, number, message } = self;
        write!(formatter, "{file}:{line}:")?;
        if let Some(column) = column {
            write!(formatter, "{column}:")?;
        }
        write!(formatter, " {severity}")?;
        if let Some(number) = number {
            write!(formatter, " #{number}")?;
        }
        write!(formatter, ": {message}")
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Remark => "remark",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(log: &str) -> Vec<String> {
        parse(log).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn caret_gives_the_column_where_tabs_count_as_one() {
        let log = "bad.cu(4): error: identifier \"foo\" is undefined\n  \t  float y = foo(3);\n  \t            ^\n\n\
                   1 error detected in the compilation of \"bad.cu\".\n";
        assert_eq!(shown(log), ["bad.cu:4:14: error: identifier \"foo\" is undefined"]);
        assert_eq!("\t  float y = foo(3);".find("foo"), Some(13));
    }

    #[test]
    fn log_without_carets_gives_no_columns() {
        let log = "a.h(2): error: expected an expression\n\nbad.cu(2): warning #1105-D: #warning directive: hm\n\n";
        assert_eq!(
            shown(log),
            ["a.h:2: error: expected an expression", "bad.cu:2: warning #1105-D: #warning directive: hm"]
        );
    }

    #[test]
    fn neither_file_names_nor_messages_confuse_the_parser() {
        let log = "dir (1): x/y.cu(7): error: static assertion failed with \"no: (1): error: really\"\n";
        let [diagnostic] = &parse(log)[..] else { panic!("one diagnostic: {:?}", parse(log)) };
        assert_eq!((diagnostic.file.as_str(), diagnostic.line), ("dir (1): x/y.cu", 7));
        assert_eq!(diagnostic.message, "static assertion failed with \"no: (1): error: really\"");
    }

    #[test]
    fn notes_belong_to_the_message() {
        let log = "k.cu(1): error: expression must have class type\n  return x.y;\n         ^\n          detected during \
                   instantiation of \"T f(T) [with T=int]\" at line 1\n\n";
        let message =
            "expression must have class type\ndetected during instantiation of \"T f(T) [with T=int]\" at line 1";
        assert_eq!(parse(log)[0].message, message);
        assert_eq!(parse(log)[0].column, Some(8));
    }

    #[test]
    fn catastrophic_errors_are_errors_and_lines_without_a_place_are_none() {
        let log = "a.cu(1): catastrophic error: cannot open source file \"b.h\"\n\nnvrtc: error: unrecognized option --x found\n";
        assert_eq!(shown(log), ["a.cu:1: error: cannot open source file \"b.h\""]);
    }
}

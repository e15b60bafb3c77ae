//! Diagnostics of the compiler.

mod hint;
mod parse;

use std::fmt;

pub(crate) use self::parse::parse;

/// A diagnostic of the compiler. Its text shows the source line with a mark below the location.
///
/// ```text
/// error: identifier "nonsense" is undefined
///  --> bad.cu:3:4
///   |
/// 3 |     nonsense(3);
///   |     ^^^^^^^^
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The number of the warning, such as `177-D`, with which it can be disabled.
    pub number: Option<String>,
    /// The message.
    pub message: String,
    /// The location; `None` if the diagnostic has none, such as one about an option.
    pub location: Option<SourceLocation>,
    /// Notes, such as the instantiation or the candidates.
    pub notes: Vec<Diagnostic>,
    /// A hint, if one applies, such as how to add a missing header.
    pub hint: Option<String>,
}

/// A location in a source.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SourceLocation {
    /// The name of the source or of a header.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The column in bytes, counted from 1. NVRTC before CUDA 12.1 does not report it.
    pub column: Option<u32>,
    /// The text of the line, if it is known.
    pub source: Option<String>,
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Severity {
    /// The program is not compiled.
    Error,
    /// The program is compiled, but may not behave as intended.
    Warning,
    /// Information only.
    Remark,
    /// A note to another diagnostic.
    Note,
}

/// The replacement of a tab in displayed lines.
const TAB: &str = "    ";

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.severity)?;
        if let Some(number) = &self.number {
            write!(formatter, "[{number}]")?;
        }
        write!(formatter, ": {}", self.message)?;
        let margin = self
            .location
            .as_ref()
            .map_or(0, |location| location.line.to_string().len());
        if let Some(location) = &self.location {
            write!(formatter, "\n{:margin$}--> {location}", "")?;
            location.show_source(formatter, margin)?;
        }
        for note in &self.notes {
            match note.location {
                Some(_) => write!(formatter, "\n{note}")?,
                None => write!(formatter, "\n{:margin$} = note: {}", "", note.message)?,
            }
        }
        match &self.hint {
            Some(hint) => write!(formatter, "\n{:margin$} = hint: {hint}", ""),
            None => Ok(()),
        }
    }
}

impl SourceLocation {
    /// Writes the source line with a mark below the word at the column. `margin` is the width of
    /// the line number.
    fn show_source(&self, formatter: &mut fmt::Formatter<'_>, margin: usize) -> fmt::Result {
        let Some(source) = &self.source else {
            return Ok(());
        };
        let shown = source.trim_end().replace('\t', TAB);
        write!(formatter, "\n{:margin$} |\n{} | {shown}", "", self.line)?;
        let Some(column) = self.column else {
            return Ok(());
        };
        let before = column.saturating_sub(1) as usize;
        let start = (0..=before.min(source.len()))
            .rev()
            .find(|index| source.is_char_boundary(*index))
            .unwrap_or_default();
        let offset: usize = source[..start]
            .chars()
            .map(|letter| if letter == '\t' { TAB.len() } else { 1 })
            .sum();
        let word = source[start..]
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_');
        let mark = "^".repeat(word.count().max(1));
        write!(formatter, "\n{:margin$} | {:offset$}{mark}", "", "")
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)?;
        self.column
            .map_or(Ok(()), |column| write!(formatter, ":{column}"))
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Remark => "remark",
            Self::Note => "note",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(line: u32, column: Option<u32>, source: Option<&str>) -> Option<SourceLocation> {
        Some(SourceLocation {
            file: "a.cu".to_owned(),
            line,
            column,
            source: source.map(str::to_owned),
        })
    }

    fn diagnostic(
        severity: Severity,
        message: &str,
        location: Option<SourceLocation>,
    ) -> Diagnostic {
        Diagnostic {
            severity,
            number: None,
            message: message.to_owned(),
            location,
            notes: Vec::new(),
            hint: None,
        }
    }

    #[test]
    fn source_is_shown_with_the_word_marked() {
        let error = diagnostic(
            Severity::Error,
            "`foo` is undefined",
            location(12, Some(14), Some("\t  float y = foo(3);")),
        );
        let expected = "error: `foo` is undefined\n  --> a.cu:12:14\n   |\n12 |       float y = foo(3);\n   |                 ^^^";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn incomplete_location_is_shown_in_part() {
        let warning = diagnostic(Severity::Warning, "hm", location(3, None, Some("x")));
        assert_eq!(warning.to_string(), "warning: hm\n --> a.cu:3\n  |\n3 | x");
        let warning = diagnostic(Severity::Warning, "hm", location(3, Some(9), None));
        assert_eq!(warning.to_string(), "warning: hm\n --> a.cu:3:9");
        assert_eq!(
            diagnostic(Severity::Error, "bad option", None).to_string(),
            "error: bad option"
        );
    }

    #[test]
    fn notes_are_shown_below_with_their_own_locations() {
        let mut error = diagnostic(Severity::Error, "no", location(7, None, None));
        error.number = Some("20".to_owned());
        error
            .notes
            .push(diagnostic(Severity::Note, "because", None));
        error.notes.push(diagnostic(
            Severity::Note,
            "candidate",
            location(2, Some(1), None),
        ));
        assert_eq!(
            error.to_string(),
            "error[20]: no\n --> a.cu:7\n  = note: because\nnote: candidate\n --> a.cu:2:1"
        );
        error.notes.clear();
        error.hint = Some("do this".to_owned());
        assert_eq!(
            error.to_string(),
            "error[20]: no\n --> a.cu:7\n  = hint: do this"
        );
    }

    #[test]
    fn column_beyond_the_line_is_marked() {
        let error = diagnostic(
            Severity::Error,
            "missing",
            location(1, Some(5), Some("ab\u{e9}")),
        );
        assert!(
            error.to_string().ends_with("1 | ab\u{e9}\n  |    ^"),
            "{error}"
        );
    }
}

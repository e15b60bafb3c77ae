//! The parts of an error's text, and how `Display` and `Debug` write them.

use std::borrow::Cow;
use std::fmt;

/// The parts of an error message.
///
/// `Display` writes the problem and the notes on one line, followed by the logs. `Debug`, which
/// `unwrap` and a `main` that returns an error print, writes each note on its own line.
pub(crate) trait Report {
    /// Writes `operation: problem (facts)`.
    fn problem(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Returns the hint and the failed attempts.
    fn notes(&self) -> Vec<Note<'_>>;

    /// Writes the logs, each starting with a newline.
    fn logs(&self, _formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// A part of an error message that follows the problem.
pub(crate) enum Note<'a> {
    /// A hint.
    Hint(Cow<'a, str>),
    /// Failed attempts.
    Tried(String),
}

impl Note<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Hint(text) => text,
            Self::Tried(text) => text,
        }
    }
}

/// Splits `problem (facts); hint`. Facts may contain `; `, as the type `[u8; 4]` does.
pub(crate) fn split(text: &str) -> (&str, Option<&str>) {
    let mut depth = 0_i32;
    for (position, letter) in text.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ';' if depth <= 0 => {
                if let Some(hint) = text[position..].strip_prefix("; ") {
                    return (&text[..position], Some(hint));
                }
            }
            _ => {}
        }
    }
    (text, None)
}

/// An adaptor that writes a report on one line, for `#[error]` of `thiserror`.
pub(crate) struct OneLine<'a>(pub(crate) &'a dyn Report);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.problem(formatter)?;
        for note in self.0.notes() {
            match &note {
                Note::Hint(text) => write!(formatter, "; {text}")?,
                Note::Tried(text) => write!(formatter, "; tried: {text}")?,
            }
        }
        self.0.logs(formatter)
    }
}

pub(crate) fn debug(report: &dyn Report, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    report.problem(formatter)?;
    for note in report.notes() {
        let label = match note {
            Note::Hint(_) => "hint",
            Note::Tried(_) => "tried",
        };
        write!(formatter, "\n  {label}: {}", note.text())?;
    }
    report.logs(formatter)
}

/// Implements `Debug` for types with a [`Report`].
macro_rules! debug_as_report {
    ($($ty:ty),* $(,)?) => {$(
        impl fmt::Debug for $ty {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                $crate::base::error::report::debug(self, formatter)
            }
        }
    )*};
}

pub(crate) use debug_as_report;

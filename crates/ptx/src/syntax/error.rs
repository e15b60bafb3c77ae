//! Errors in PTX source text.

use super::opcode::Opcode;

/// A position in the source, in lines and characters from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Span {
    /// The line.
    pub(crate) line: u32,
    /// The character in the line.
    pub(crate) column: u32,
}

/// The class of an [`Error`], which the driver maps to a status code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not valid PTX, or refers to something that does not exist.
    Syntax,
    /// `.version` is newer than
    /// [`PtxVersion::NEWEST_KNOWN`](curium_format::PtxVersion::NEWEST_KNOWN).
    UnsupportedVersion,
    /// `.target` names an unsupported architecture.
    UnsupportedTarget,
    /// `.address_size` is 32 or absent.
    UnsupportedAddressSize,
    /// The text exceeds a limit of the front end, such as the depth of nesting.
    Limit,
}

/// An error in PTX source text, with its position.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {}, column {}: {problem}", span.line, span.column)]
pub struct Error {
    kind: ErrorKind,
    span: Span,
    problem: String,
}

impl Error {
    /// Creates an error.
    pub(super) fn new(kind: ErrorKind, span: Span, problem: impl Into<String>) -> Self {
        Self {
            kind,
            span,
            problem: problem.into(),
        }
    }

    /// Creates an [`ErrorKind::Syntax`] error.
    pub(super) fn syntax(span: Span, problem: impl Into<String>) -> Self {
        Self::new(ErrorKind::Syntax, span, problem)
    }

    /// Creates an [`ErrorKind::Syntax`] error for an unexpected token. `found` is the token as the
    /// message quotes it.
    pub(super) fn unexpected(span: Span, expected: &str, found: &str) -> Self {
        Self::syntax(span, format!("expected {expected}, found {found}"))
    }

    /// Creates an [`ErrorKind::Syntax`] error for an instruction.
    pub(super) fn instruction(span: Span, opcode: Opcode, problem: &str) -> Self {
        Self::syntax(span, format!("{opcode}: {problem}"))
    }

    /// Returns the class of the error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the line, from 1.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.span.line
    }

    /// Returns the column in characters, from 1.
    #[cfg(test)]
    pub(crate) const fn column(&self) -> u32 {
        self.span.column
    }
}

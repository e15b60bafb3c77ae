//! The text of PTX, read without its instructions.
//!
//! The functions accept every text. What they return is right for texts that a compiler of NVIDIA
//! accepts.

mod kernel;
mod scanner;
mod statement;

pub use self::kernel::{Kernel, Kernels, Parameter, Parameters, kernels};
pub use self::scanner::{Scanner, Token, TokenKind, integer};
pub use self::statement::{
    Linkage, Names, Statement, StatementKind, Statements, statements, variables,
};

use crate::PtxVersion;

/// The header of PTX.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Header<'a> {
    /// The version in `.version`.
    pub version: PtxVersion,
    /// The name of the target in `.target`, such as `sm_90a`, without options.
    pub target: &'a str,
}

/// Returns the header of a text. Other text than PTX has none.
#[must_use]
pub fn header(text: &str) -> Option<Header<'_>> {
    let mut tokens = Scanner::new(text);
    let version = version_directive(&mut tokens)?;
    tokens.next().filter(|token| token.is_directive("target"))?;
    let target = tokens.next()?;
    (target.kind == TokenKind::Word).then_some(Header {
        version,
        target: target.text,
    })
}

/// Returns the version in the header of a text.
#[must_use]
pub fn version(text: &str) -> Option<PtxVersion> {
    version_directive(&mut Scanner::new(text))
}

fn version_directive(tokens: &mut Scanner<'_>) -> Option<PtxVersion> {
    tokens
        .next()
        .filter(|token| token.is_directive("version"))?;
    let version = tokens.next()?;
    PtxVersion::parse(version.text).filter(|_| version.kind == TokenKind::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_read_past_comments() {
        let expected = Header {
            version: PtxVersion::new(8, 7),
            target: "sm_90a",
        };
        for text in [
            "//\n// .version 1.0\n.version 8.7\n.target sm_90a, texmode_independent\n.address_size 64\n",
            "/* .version 1.0 // */.version 8.7 /*/ .target sm_10 */ .target sm_90a, texmode_independent",
            // ptxas accepts directives without blanks between them.
            ".version 8.7.target sm_90a.address_size 64",
            ".version 8.7 .target sm_90a",
        ] {
            assert_eq!(header(text), Some(expected), "{text:?}");
            assert_eq!(version(text), Some(expected.version), "{text:?}");
        }
    }

    #[test]
    fn other_text_has_no_header() {
        for text in [
            "",
            "int main() {}",
            "/* .version 8.7 .target sm_90",
            "// .version 8.7 .target sm_90",
            "int i; .version 8.7 .target sm_90",
            ".version .target sm_90",
            ".version 8.7",
            ".version 8.7 .target",
            ".version 8.7 .target 90",
            ".version 8.7\n.target \x1b[31mred\n",
            ".target sm_90 .version 8.7",
        ] {
            assert_eq!(header(text), None, "{text:?}");
        }
    }
}

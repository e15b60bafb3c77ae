//! Tokens with their values and positions.

use curium_format::ptx::{self, Scanner, integer};

use super::error::Span;

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum TokenKind {
    /// A name, `%r1` or `foo`, or `_`.
    Word,
    /// A word after a dot, `.u32` or `.L2::128B`; the text is without the dot.
    Dot,
    /// An integer, and `true` if its suffix or its size makes it unsigned.
    Integer(u64, bool),
    /// The bits of `0f…`.
    Single(u32),
    /// The bits of `0d…` or of a decimal fraction.
    Double(u64),
    /// A string; the text is without the quotes.
    Text,
    /// An operator or separator.
    Symbol,
    /// An invalid token, with the problem.
    Invalid(&'static str),
    /// The end of the source.
    End,
}

/// A token of the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) span: Span,
}

impl Token<'_> {
    /// Returns `true` if this is the operator or separator `symbol`.
    pub(super) fn is(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == symbol
    }

    /// Returns `true` if this is the dotted word `.word`.
    pub(super) fn is_dot(&self, word: &str) -> bool {
        self.kind == TokenKind::Dot && self.text == word
    }

    /// Returns the token as an error message quotes it, shortened if it is long.
    pub(super) fn quote(&self) -> String {
        const MAX_LENGTH: usize = 40;
        let dot = if self.kind == TokenKind::Dot { "." } else { "" };
        match self.kind {
            TokenKind::End => "the end of the text".into(),
            _ if self.text.chars().count() > MAX_LENGTH => {
                format!(
                    "'{dot}{}…'",
                    self.text.chars().take(MAX_LENGTH).collect::<String>()
                )
            }
            _ => format!("'{dot}{}'", self.text),
        }
    }
}

/// Returns the tokens of `source`; the last one is [`TokenKind::End`]. The source must be shorter
/// than 4 GiB.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::with_capacity(source.len() / 4 + 1);
    let mut position = Position::new(source);
    for token in Scanner::new(source) {
        tokens.push(Token {
            kind: kind(&token),
            text: token.text,
            span: position.advance(token.start),
        });
    }
    tokens.push(Token {
        kind: TokenKind::End,
        text: "",
        span: position.advance(source.len()),
    });
    tokens
}

/// A position in the source.
struct Position<'a> {
    source: &'a [u8],
    offset: usize,
    line: u32,
    /// The number of characters before the position in its line.
    column: u32,
}

impl<'a> Position<'a> {
    fn new(source: &'a str) -> Self {
        Self {
            source: source.as_bytes(),
            offset: 0,
            line: 1,
            column: 0,
        }
    }

    /// Advances to an offset, and returns its line and column.
    fn advance(&mut self, offset: usize) -> Span {
        for byte in &self.source[self.offset..offset] {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.column = 0;
                }
                // The continuation of a character.
                0x80..=0xBF => {}
                _ => self.column += 1,
            }
        }
        self.offset = offset;
        Span {
            line: self.line,
            column: self.column + 1,
        }
    }
}

fn kind(token: &ptx::Token<'_>) -> TokenKind {
    match token.kind {
        ptx::TokenKind::Word => TokenKind::Word,
        ptx::TokenKind::Directive => TokenKind::Dot,
        ptx::TokenKind::Number => number_kind(token.text),
        ptx::TokenKind::String => TokenKind::Text,
        ptx::TokenKind::Symbol => TokenKind::Symbol,
        ptx::TokenKind::Invalid(problem) => TokenKind::Invalid(problem),
        _ => TokenKind::Invalid("unexpected token"),
    }
}

/// Returns `true` for a decimal number with a fraction or an exponent. Only decimal numbers contain
/// a dot.
fn is_fraction(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let has_exponent =
        mantissa.len() < text.len() && mantissa.bytes().all(|byte| byte.is_ascii_digit());
    has_exponent || text.contains('.')
}

fn number_kind(text: &str) -> TokenKind {
    if is_fraction(text) {
        return text
            .parse::<f64>()
            .map_or(TokenKind::Invalid("malformed decimal number"), |value| {
                TokenKind::Double(value.to_bits())
            });
    }
    if let Some(digits) = strip_any(text, ["0f", "0F"]) {
        return hexadecimal(digits, 8)
            .and_then(|bits| u32::try_from(bits).ok())
            .map_or(
                TokenKind::Invalid("malformed f32: expected 8 hexadecimal digits"),
                TokenKind::Single,
            );
    }
    if let Some(digits) = strip_any(text, ["0d", "0D"]) {
        return hexadecimal(digits, 16).map_or(
            TokenKind::Invalid("malformed f64: expected 16 hexadecimal digits"),
            TokenKind::Double,
        );
    }
    let (digits, unsigned) = text
        .strip_suffix('U')
        .map_or((text, false), |digits| (digits, true));
    integer(digits).map_or(
        TokenKind::Invalid("malformed integer or more than 64 bits"),
        |value| TokenKind::Integer(value, unsigned || i64::try_from(value).is_err()),
    )
}

fn strip_any<'t>(text: &'t str, prefixes: [&str; 2]) -> Option<&'t str> {
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))
}

fn hexadecimal(digits: &str, count: usize) -> Option<u64> {
    (digits.len() == count).then(|| u64::from_str_radix(digits, 16).ok())?
}

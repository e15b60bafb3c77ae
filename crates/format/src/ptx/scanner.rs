//! Tokens with their positions.

use core::iter::FusedIterator;

/// A token of PTX text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Token<'a> {
    /// The kind of the token.
    pub kind: TokenKind,
    /// The text: that of a directive without its dot, that of a string without its quotes.
    pub text: &'a str,
    /// The offset of the token in bytes.
    pub start: usize,
    /// The offset of the end of the token in bytes.
    pub end: usize,
}

/// The kind of a [`Token`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TokenKind {
    /// A name, `%r1` or `foo`, or `_`.
    Word,
    /// A word after a dot, `.u32` or `.L2::128B`.
    Directive,
    /// A number, also a malformed one.
    Number,
    /// A string.
    String,
    /// An operator or separator.
    Symbol,
    /// A comment or string without an end, or a character that PTX does not use.
    Invalid(&'static str),
}

impl Token<'_> {
    /// Returns `true` if this is the directive `.word`.
    #[must_use]
    pub fn is_directive(&self, word: &str) -> bool {
        self.kind == TokenKind::Directive && self.text == word
    }

    /// Returns `true` if this is the operator or separator `symbol`.
    #[must_use]
    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == symbol
    }
}

/// An iterator over the tokens of a text, without blanks and comments. It reads the text once,
/// whatever it contains.
///
/// ```
/// use curium_format::ptx::Scanner;
///
/// let tokens = Scanner::new(".version 8.7 // by hand\n");
/// assert!(tokens.map(|token| token.text).eq(["version", "8.7"]));
/// ```
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Scanner<'a> {
    /// Creates an iterator over the tokens of `text`.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.offset + ahead).copied()
    }

    fn has_word_at(&self, ahead: usize) -> bool {
        self.byte(ahead).is_some_and(is_word)
    }

    /// Advances up to the first byte that does not fulfill the condition.
    fn skip_while(&mut self, condition: impl Fn(u8) -> bool) {
        let remaining = &self.text.as_bytes()[self.offset..];
        let len = remaining
            .iter()
            .position(|byte| !condition(*byte))
            .unwrap_or(remaining.len());
        self.offset += len;
    }

    /// Skips blanks and comments. Fails with the offset of a comment without an end.
    fn skip_blanks(&mut self) -> Result<(), usize> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C), _) => self.offset += 1,
                (Some(b'/'), Some(b'/')) => self.skip_while(|byte| byte != b'\n'),
                (Some(b'/'), Some(b'*')) => match self.text[self.offset + 2..].find("*/") {
                    Some(len) => self.offset += len + 4,
                    None => return Err(self.offset),
                },
                _ => return Ok(()),
            }
        }
    }

    /// Advances past `.word` or `.word::word`.
    fn skip_directive(&mut self) {
        self.offset += 1;
        self.skip_while(is_word);
        while self.text.as_bytes()[self.offset..].starts_with(b"::") && self.has_word_at(2) {
            self.offset += 2;
            self.skip_while(is_word);
        }
    }

    /// Advances past a string, and returns `true` if it ends in its line.
    fn skip_string(&mut self) -> bool {
        self.offset += 1;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'"' => {
                    self.offset += 1;
                    return true;
                }
                b'\n' => return false,
                // Any character after a backslash belongs to the string.
                b'\\' if self.byte(1).is_some_and(|next| next != b'\n') => self.offset += 2,
                _ => self.offset += 1,
            }
        }
        false
    }

    /// Advances past a number: digits and letters, and for a decimal number its fraction and its
    /// exponent with a sign.
    fn skip_number(&mut self) {
        let start = self.offset;
        self.skip_while(is_word);
        if !is_decimal(&self.text[start..self.offset]) {
            return;
        }
        if self.byte(0) == Some(b'.') {
            self.offset += 1;
            self.skip_while(is_word);
        }
        let has_exponent = self.text[start..self.offset].ends_with(['e', 'E']);
        if has_exponent && matches!(self.byte(0), Some(b'+' | b'-')) {
            self.offset += 1;
            self.skip_while(is_word);
        }
    }

    /// Advances past an operator, a separator or any other character.
    fn skip_symbol(&mut self) -> TokenKind {
        let first = self.byte(0).unwrap_or_default();
        if self.byte(1).is_some_and(|second| is_pair(first, second)) {
            self.offset += 2;
            return TokenKind::Symbol;
        }
        self.offset += 1;
        self.skip_while(|byte| matches!(byte, 0x80..=0xBF));
        if is_symbol(first) {
            TokenKind::Symbol
        } else {
            TokenKind::Invalid("unexpected character")
        }
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Err(start) = self.skip_blanks() {
            self.offset = self.text.len();
            return Some(Token {
                kind: TokenKind::Invalid("unterminated comment"),
                text: "/*",
                start,
                end: self.offset,
            });
        }
        let start = self.offset;
        let kind = match self.byte(0)? {
            b'0'..=b'9' => {
                self.skip_number();
                TokenKind::Number
            }
            b'"' if self.skip_string() => TokenKind::String,
            b'"' => TokenKind::Invalid("unterminated string"),
            b'.' if self.has_word_at(1) => {
                self.skip_directive();
                TokenKind::Directive
            }
            b'%' if !self.has_word_at(1) => self.skip_symbol(),
            first if is_word(first) || first == b'%' => {
                self.offset += 1;
                self.skip_while(is_word);
                TokenKind::Word
            }
            _ => self.skip_symbol(),
        };
        let text = &self.text[start..self.offset];
        let text = match kind {
            TokenKind::Directive => &text[1..],
            TokenKind::String => &text[1..text.len() - 1],
            _ => text,
        };
        Some(Token {
            kind,
            text,
            start,
            end: self.offset,
        })
    }
}

impl FusedIterator for Scanner<'_> {}

/// Returns the value of an integer in decimal, octal (`0…`), hexadecimal (`0x…`) or binary (`0b…`)
/// notation, without its suffix.
#[must_use]
pub fn integer(digits: &str) -> Option<u64> {
    let (digits, radix) = if let Some(hexadecimal) = strip_any(digits, ["0x", "0X"]) {
        (hexadecimal, 16)
    } else if let Some(binary) = strip_any(digits, ["0b", "0B"]) {
        (binary, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (&digits[1..], 8)
    } else {
        (digits, 10)
    };
    u64::from_str_radix(digits, radix).ok()
}

fn strip_any<'t>(text: &'t str, prefixes: [&str; 2]) -> Option<&'t str> {
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))
}

/// Returns `true` if two bytes are one symbol.
const fn is_pair(first: u8, second: u8) -> bool {
    match first {
        b'<' | b'>' => second == first || second == b'=',
        b'=' | b'!' => second == b'=',
        b'&' | b'|' => second == first,
        _ => false,
    }
}

/// Returns `true` if the byte is a symbol: ASCII punctuation except `"`, `#`, `$`, `'`, `\\`, `_`
/// and the grave accent.
const fn is_symbol(byte: u8) -> bool {
    byte.is_ascii_punctuation() && !matches!(byte, b'"' | b'#' | b'$' | b'\'' | b'\\' | b'_' | b'`')
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// Returns `true` if `text` is digits, optionally with an exponent, whose digits may be missing.
fn is_decimal(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    mantissa.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn tokens(text: &str) -> Vec<(TokenKind, &str)> {
        Scanner::new(text)
            .map(|token| (token.kind, token.text))
            .collect()
    }

    #[test]
    fn tokens_have_their_kind() {
        use TokenKind::{Directive, Number, String, Symbol, Word};
        assert_eq!(
            tokens("@%p ld.global.L2::128B\t%r1, [a$b+0x4U]; // \"\n.file\t1 \"a//\\\"b\""),
            [
                (Symbol, "@"),
                (Word, "%p"),
                (Word, "ld"),
                (Directive, "global"),
                (Directive, "L2::128B"),
                (Word, "%r1"),
                (Symbol, ","),
                (Symbol, "["),
                (Word, "a$b"),
                (Symbol, "+"),
                (Number, "0x4U"),
                (Symbol, "]"),
                (Symbol, ";"),
                (Directive, "file"),
                (Number, "1"),
                (String, "a//\\\"b"),
            ]
        );
        assert_eq!(
            tokens("8.7.target 1e-5 0f3F800000 1.5E+3x a<<=b"),
            [
                (Number, "8.7"),
                (Directive, "target"),
                (Number, "1e-5"),
                (Number, "0f3F800000"),
                (Number, "1.5E+3x"),
                (Word, "a"),
                (Symbol, "<<"),
                (Symbol, "="),
                (Word, "b"),
            ]
        );
    }

    #[test]
    fn invalid_tokens_name_their_problem() {
        use TokenKind::{Invalid, Word};
        let comment = Invalid("unterminated comment");
        let string = Invalid("unterminated string");
        let character = Invalid("unexpected character");
        for (text, expected) in [
            ("a /* b", &[(Word, "a"), (comment, "/*")][..]),
            ("/*/", &[(comment, "/*")]),
            ("\"a\nb", &[(string, "\"a"), (Word, "b")]),
            ("\"\\", &[(string, "\"\\")]),
            ("\u{e9}a", &[(character, "\u{e9}"), (Word, "a")]),
            ("#", &[(character, "#")]),
        ] {
            assert_eq!(tokens(text), expected, "{text:?}");
        }
    }

    #[test]
    fn integers_have_four_notations() {
        for (text, value) in [
            ("0", Some(0)),
            ("42", Some(42)),
            ("052", Some(42)),
            ("0x2a", Some(42)),
            ("0b101010", Some(42)),
            ("", None),
            ("09", None),
            ("18446744073709551616", None),
        ] {
            assert_eq!(integer(text), value, "{text:?}");
        }
    }
}

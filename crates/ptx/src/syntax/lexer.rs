//! Tokens with their positions.

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

/// Returns the tokens of `source`; the last one is [`TokenKind::End`]. The source must be shorter than 4 GiB.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        source,
        offset: 0,
        line: 1,
        line_start: 0,
        continuation: 0,
    };
    let mut tokens = Vec::with_capacity(source.len() / 4 + 1);
    loop {
        let token = lexer.next();
        tokens.push(token);
        if token.kind == TokenKind::End {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    offset: usize,
    line: u32,
    /// The offset at which the line starts.
    line_start: usize,
    /// The number of continuation bytes in the line so far.
    continuation: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Token<'a> {
        if let Err(token) = self.skip_blank() {
            return token;
        }
        let span = self.span();
        let start = self.offset;
        let Some(first) = self.byte(0) else {
            return Token {
                kind: TokenKind::End,
                text: "",
                span,
            };
        };
        let (kind, text) = match first {
            b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'.' if self.byte(1).is_some_and(is_word) => self.dotted(),
            b'%' if !self.byte(1).is_some_and(is_word) => self.symbol(),
            _ if is_word(first) || first == b'%' => (TokenKind::Word, self.word(1)),
            _ => self.symbol(),
        };
        debug_assert!(self.offset > start, "every token takes at least a byte");
        Token { kind, text, span }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.offset + ahead).copied()
    }

    fn span(&self) -> Span {
        let column = self.offset - self.line_start - self.continuation + 1;
        Span {
            line: self.line,
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }

    /// Advances by one byte, and updates the position.
    fn bump(&mut self) {
        match self.byte(0) {
            Some(b'\n') => {
                self.line += 1;
                self.line_start = self.offset + 1;
                self.continuation = 0;
            }
            Some(0x80..=0xBF) => self.continuation += 1,
            _ => {}
        }
        self.offset += 1;
    }

    /// Skips blanks and comments. A comment without an end is an invalid token.
    fn skip_blank(&mut self) -> Result<(), Token<'a>> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C), _) => self.bump(),
                (Some(b'/'), Some(b'/')) => {
                    while self.byte(0).is_some_and(|byte| byte != b'\n') {
                        self.bump();
                    }
                }
                (Some(b'/'), Some(b'*')) => self.skip_block_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_block_comment(&mut self) -> Result<(), Token<'a>> {
        let span = self.span();
        self.offset += 2;
        while self.byte(0).is_some() {
            if self.source.as_bytes()[self.offset..].starts_with(b"*/") {
                self.offset += 2;
                return Ok(());
            }
            self.bump();
        }
        Err(Token {
            kind: TokenKind::Invalid("unterminated comment"),
            text: "/*",
            span,
        })
    }

    /// Returns the word at the current position. Its first `first` bytes may be any.
    fn word(&mut self, first: usize) -> &'a str {
        let start = self.offset;
        self.offset += first;
        while self.byte(0).is_some_and(is_word) {
            self.offset += 1;
        }
        &self.source[start..self.offset]
    }

    /// Returns the token of `.word` or `.word::word`.
    fn dotted(&mut self) -> (TokenKind, &'a str) {
        let start = self.offset + 1;
        self.word(1);
        while self.source.as_bytes()[self.offset..].starts_with(b"::")
            && self.byte(2).is_some_and(is_word)
        {
            self.word(2);
        }
        (TokenKind::Dot, &self.source[start..self.offset])
    }

    fn string(&mut self) -> (TokenKind, &'a str) {
        let start = self.offset + 1;
        self.offset += 1;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'"' => {
                    self.offset += 1;
                    return (TokenKind::Text, &self.source[start..self.offset - 1]);
                }
                b'\n' => break,
                // Any character after a backslash belongs to the string.
                b'\\' if self.byte(1).is_some_and(|next| next != b'\n') => {
                    self.bump();
                    self.bump();
                }
                _ => self.bump(),
            }
        }
        (
            TokenKind::Invalid("unterminated string"),
            &self.source[start - 1..self.offset],
        )
    }

    fn number(&mut self) -> (TokenKind, &'a str) {
        let start = self.offset;
        self.word(1);
        let text = &self.source[start..self.offset];
        if is_decimal(text) && (self.byte(0) == Some(b'.') || text.contains(['e', 'E'])) {
            return self.fraction(start);
        }
        (number_kind(text), text)
    }

    /// Returns a decimal number with a fraction or an exponent that begins at `start`.
    fn fraction(&mut self, start: usize) -> (TokenKind, &'a str) {
        if self.byte(0) == Some(b'.') {
            self.word(1);
        }
        let so_far = &self.source[start..self.offset];
        if so_far.ends_with(['e', 'E']) && matches!(self.byte(0), Some(b'+' | b'-')) {
            self.word(1);
        }
        let text = &self.source[start..self.offset];
        match text.parse::<f64>() {
            Ok(value) => (TokenKind::Double(value.to_bits()), text),
            Err(_) => (TokenKind::Invalid("malformed decimal number"), text),
        }
    }

    fn symbol(&mut self) -> (TokenKind, &'a str) {
        let start = self.offset;
        if self
            .byte(0)
            .zip(self.byte(1))
            .is_some_and(|(first, second)| is_pair(first, second))
        {
            self.offset += 2;
            return (TokenKind::Symbol, &self.source[start..self.offset]);
        }
        let is_valid = self.byte(0).is_some_and(is_symbol);
        self.bump();
        while matches!(self.byte(0), Some(0x80..=0xBF)) {
            self.bump();
        }
        let kind = if is_valid {
            TokenKind::Symbol
        } else {
            TokenKind::Invalid("unexpected character")
        };
        (kind, &self.source[start..self.offset])
    }
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

/// Returns `true` if the byte is a symbol: ASCII punctuation except `"`, `#`, `$`, `'`, `\\`, `_` and the grave accent.
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

/// Returns the kind of a number without a fraction.
fn number_kind(text: &str) -> TokenKind {
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

fn integer(digits: &str) -> Option<u64> {
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

//! Tokens of LLVM IR.

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// `@name`; a quoted name has its quotes.
    Global(&'a str),
    /// `%name` or `%12`: a register, a basic block or a named type.
    Local(&'a str),
    /// `!name`, `!12`, or `!` before `{` and `"`.
    Metadata(&'a str),
    /// `#12`: a group of attributes.
    AttributeGroup(&'a str),
    /// A keyword, a type, a number, or the name of a label.
    Word(&'a str),
    /// `"…"`.
    String(&'a str),
    /// `c"…"`.
    Bytes(&'a str),
    Punctuation(char),
}

/// A token with its range in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexeme<'a> {
    pub(crate) token: Token<'a>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Lexeme<'_> {
    pub(crate) fn is(&self, character: char) -> bool {
        self.token == Token::Punctuation(character)
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.token == Token::Word(word)
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._$-".contains(&byte)
}

/// Returns the end of the name that begins at `start`: a quoted string, or a run of the characters
/// of names.
fn name_end(text: &[u8], start: usize) -> usize {
    if text.get(start) == Some(&b'"') {
        return string_end(text, start + 1);
    }
    let length = text[start..]
        .iter()
        .take_while(|byte| is_name_byte(**byte))
        .count();
    start + length
}

/// Returns the end of a string whose contents begin at `start`, behind the closing quote. A quote
/// inside of a string is written `\22`.
fn string_end(text: &[u8], start: usize) -> usize {
    let length = text[start..]
        .iter()
        .take_while(|byte| **byte != b'"')
        .count();
    (start + length + 1).min(text.len())
}

/// Splits a text into tokens. Comments are left out.
pub(crate) fn lex(text: &str) -> Vec<Lexeme<'_>> {
    let bytes = text.as_bytes();
    let mut lexemes = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let first = bytes[start];
        if first.is_ascii_whitespace() {
            start += 1;
            continue;
        }
        if first == b';' {
            start += bytes[start..]
                .iter()
                .take_while(|byte| **byte != b'\n')
                .count();
            continue;
        }
        let (token, end) = match first {
            b'@' => {
                let end = name_end(bytes, start + 1);
                (Token::Global(&text[start + 1..end]), end)
            }
            b'%' => {
                let end = name_end(bytes, start + 1);
                (Token::Local(&text[start + 1..end]), end)
            }
            b'!' => {
                let length = bytes[start + 1..]
                    .iter()
                    .take_while(|byte| is_name_byte(**byte) || **byte == b'\\')
                    .count();
                let end = start + 1 + length;
                (Token::Metadata(&text[start + 1..end]), end)
            }
            b'#' => {
                let end = name_end(bytes, start + 1);
                (Token::AttributeGroup(&text[start + 1..end]), end)
            }
            b'"' => {
                let end = string_end(bytes, start + 1);
                (Token::String(&text[start + 1..end - 1]), end)
            }
            b'c' if bytes.get(start + 1) == Some(&b'"') => {
                let end = string_end(bytes, start + 2);
                (Token::Bytes(&text[start + 2..end - 1]), end)
            }
            _ if is_name_byte(first) || first == b'+' => {
                let length = bytes[start..]
                    .iter()
                    .take_while(|byte| is_name_byte(**byte) || **byte == b'+')
                    .count();
                (Token::Word(&text[start..start + length]), start + length)
            }
            _ => {
                let character = text[start..].chars().next().unwrap_or('\0');
                (Token::Punctuation(character), start + character.len_utf8())
            }
        };
        lexemes.push(Lexeme { token, start, end });
        start = end;
    }
    lexemes
}

/// Returns the name that a token `Global` spells: without quotes and escapes.
pub(crate) fn name(spelling: &str) -> String {
    match spelling
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(quoted) => String::from_utf8_lossy(&bytes(quoted)).into_owned(),
        None => spelling.to_owned(),
    }
}

/// Returns the bytes that the contents of a string spell: `\\` is a backslash, and `\0A` a byte in
/// hexadecimal digits.
pub(crate) fn bytes(contents: &str) -> Vec<u8> {
    let mut result = Vec::with_capacity(contents.len());
    let mut rest = contents.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            result.push(*first);
            continue;
        }
        let digits = tail
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(value) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            result.push(value);
            rest = &tail[2..];
        } else {
            result.push(b'\\');
            rest = tail.strip_prefix(b"\\").unwrap_or(tail);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        lex(text).into_iter().map(|lexeme| lexeme.token).collect()
    }

    /// Names with quotes contain any characters, also those of other tokens.
    #[test]
    fn quoted_names_are_one_token() {
        assert_eq!(
            tokens(r#"call float @"curium.asm|ex2 $0, $1;|=f,f|"(float %"a b") #3, !dbg !7 ; %x"#),
            [
                Token::Word("call"),
                Token::Word("float"),
                Token::Global(r#""curium.asm|ex2 $0, $1;|=f,f|""#),
                Token::Punctuation('('),
                Token::Word("float"),
                Token::Local(r#""a b""#),
                Token::Punctuation(')'),
                Token::AttributeGroup("3"),
                Token::Punctuation(','),
                Token::Metadata("dbg"),
                Token::Metadata("7"),
            ]
        );
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(bytes(r"a\\b\22\00"), b"a\\b\"\0");
        assert_eq!(name(r#""a\22b""#), "a\"b");
        assert_eq!(name("a.b"), "a.b");
    }

    #[test]
    fn numbers_are_words() {
        assert_eq!(
            tokens("-0.000000e+00, 0x7FF8000000000000"),
            [
                Token::Word("-0.000000e+00"),
                Token::Punctuation(','),
                Token::Word("0x7FF8000000000000")
            ]
        );
    }
}

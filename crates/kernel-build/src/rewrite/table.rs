//! The table of a kernel, which `#[kernel]` puts into a static of the section `.curium.kernel`.

use crate::ir::{Global, Token, bytes, lex};

/// The version of the table's form. The device crate and this crate must agree.
const VERSION: u32 = 1;

/// The number of `u32` words before the words of the parameters.
const HEADER_WORDS: usize = 13;

/// The number of `u32` words that describe a word of a parameter.
const WORDS_PER_WORD: usize = 3;

/// A parameter is passed as up to this many words.
const WORDS_PER_PARAMETER: usize = 3;

/// Declarations of `#[kernel]` that the compiler needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Threads compute on their own, without barriers. Otherwise the block is the program.
    pub(crate) is_element_wise: bool,
    /// The size of the block, or `None` if the host chooses it.
    pub(crate) block: Option<[u32; 3]>,
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) max_threads: Option<u32>,
    pub(crate) min_blocks: Option<u32>,
    pub(crate) words: Vec<Word>,
    /// All bytes of the static, for the comparison with the host.
    pub(crate) bytes: Vec<u8>,
}

/// The assumptions of the compiler about a word that the host passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Value,
    /// Memory that other threads may access.
    Pointer,
    /// Memory that nothing writes during the launch.
    ReadOnly,
    /// Memory that only this parameter accesses.
    Exclusive,
    /// A struct that is passed by value, whose address is used.
    GridConstant {
        size: u32,
        align: u32,
    },
}

impl Table {
    pub(crate) fn parse(kernel: &str, global: &Global<'_>) -> Result<Self, String> {
        let error = |problem: &str| {
            format!("kernel `{kernel}`: {problem}; declare kernels with `#[kernel]`")
        };
        let bytes = constant_bytes(global).ok_or_else(|| error("its table has an unknown form"))?;
        let word = |index: usize| -> Result<u32, String> {
            let bytes = bytes
                .get(4 * index..4 * index + 4)
                .and_then(|bytes| bytes.try_into().ok());
            bytes
                .map(u32::from_le_bytes)
                .ok_or_else(|| error("its table is too short"))
        };
        if word(0)? != VERSION {
            return Err(format!(
                "kernel `{kernel}`: its table has version {}, and this compiler reads version {VERSION}; use the same version of \
                 curium-kernel and curium-kernel-build",
                word(0)?
            ));
        }
        let size = |first: usize| -> Result<Option<[u32; 3]>, String> {
            let size = [word(first)?, word(first + 1)?, word(first + 2)?];
            Ok((size != [0; 3]).then_some(size))
        };
        let mut words = Vec::new();
        let parameters = word(HEADER_WORDS - 1)? as usize;
        for index in 0..parameters * WORDS_PER_PARAMETER {
            let flag = word(HEADER_WORDS + index * WORDS_PER_WORD)?;
            words.extend(match u8::try_from(flag) {
                Ok(b'_') => None,
                Ok(b'v') => Some(Word::Value),
                Ok(b'p') => Some(Word::Pointer),
                Ok(b'r') => Some(Word::ReadOnly),
                Ok(b'w') => Some(Word::Exclusive),
                Ok(b'g') => Some(Word::GridConstant {
                    size: word(HEADER_WORDS + index * WORDS_PER_WORD + 1)?,
                    align: word(HEADER_WORDS + index * WORDS_PER_WORD + 2)?,
                }),
                _ => return Err(error("its table has an unknown flag")),
            });
        }
        Ok(Self {
            is_element_wise: word(1)? == 0,
            block: size(2)?,
            cluster: size(5)?,
            max_threads: Some(word(8)?).filter(|threads| *threads > 0),
            min_blocks: Some(word(9)?).filter(|blocks| *blocks > 0),
            words,
            bytes,
        })
    }
}

/// Returns the bytes of a constant, if it consists of bytes only.
pub(crate) fn constant_bytes(global: &Global<'_>) -> Option<Vec<u8>> {
    let lexemes = lex(global.initializer?);
    let literals: Vec<_> = lexemes
        .iter()
        .filter_map(|lexeme| match lexeme.token {
            Token::Bytes(contents) => Some(contents),
            _ => None,
        })
        .collect();
    let is_pure = lexemes.iter().all(|lexeme| {
        matches!(lexeme.token, Token::Bytes(_) | Token::Punctuation(_))
            || matches!(lexeme.token, Token::Word(word) if word == "x" || word == "i8" || word.bytes().all(|byte| byte.is_ascii_digit()))
    });
    match literals[..] {
        [contents] if is_pure => Some(bytes(contents)),
        _ => None,
    }
}

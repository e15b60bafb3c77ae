//! Conversion of texts to and from C.

use std::ffi::{CString, c_char};

use crate::{Error, Result};

/// C strings, with an array of their addresses.
pub(crate) struct Texts {
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
}

impl Texts {
    /// Converts `texts` to C strings. `what` describes one of them, for the error if it contains a
    /// NUL.
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a String>, what: &str) -> Result<Self> {
        let texts = texts.map(|text| c_text(text, || format!("{what} ({:?})", first_line(text))));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        Ok(Self {
            pointers: texts.iter().map(|text| text.as_ptr()).collect(),
            _texts: texts,
        })
    }

    pub(crate) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    /// Returns the number of texts, which always fits.
    pub(crate) fn count<N: TryFrom<usize>>(&self) -> N {
        let count = N::try_from(self.pointers.len());
        count.unwrap_or_else(|_| panic!("too many sources ({})", self.pointers.len()))
    }
}

/// Converts a text to a C string. `what` describes it, for the error if it contains a NUL.
pub(crate) fn c_text(text: &str, what: impl FnOnce() -> String) -> Result<CString> {
    CString::new(text).map_err(|error| Error::Nul {
        what: what().into(),
        position: error.nul_position(),
    })
}

/// Returns the bytes that `write` stores in a buffer of `size` bytes.
pub(crate) fn bytes(size: usize, write: impl FnOnce(*mut c_char) -> Result<()>) -> Result<Vec<u8>> {
    let mut buffer = vec![0_u8; size];
    write(buffer.as_mut_ptr().cast())?;
    Ok(buffer)
}

/// Returns the text that `write` stores in a buffer of `size` bytes, including its NUL.
pub(crate) fn read_text(
    size: usize,
    write: impl FnOnce(*mut c_char) -> Result<()>,
) -> Result<String> {
    let mut buffer = bytes(size.max(1), write)?;
    let end = buffer
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(buffer.len());
    buffer.truncate(end);
    Ok(match String::from_utf8(buffer) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

//! Texts on their way to C and back.

use std::ffi::{CString, c_char};

use crate::{Error, Result};

/// Texts as C reads them, with their addresses in an array.
pub(crate) struct Texts {
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
}

impl Texts {
    /// `what` is what each of `texts` is, for the error if one has a NUL.
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a String>, what: &str) -> Result<Self> {
        let texts = texts.map(|text| c_text(text, || format!("{what} ({:?})", first_line(text))));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        Ok(Self { pointers: texts.iter().map(|text| text.as_ptr()).collect(), _texts: texts })
    }

    pub(crate) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    /// How many texts there are. There is no memory for more than C can count.
    pub(crate) fn count<N: TryFrom<usize>>(&self) -> N {
        let count = N::try_from(self.pointers.len());
        count.unwrap_or_else(|_| panic!("{} texts are too many", self.pointers.len()))
    }
}

/// A text as C reads it; `what` is what it is, for the error if it has a NUL.
pub(crate) fn c_text(text: &str, what: impl FnOnce() -> String) -> Result<CString> {
    CString::new(text).map_err(|error| Error::Nul { what: what().into(), position: error.nul_position() })
}

/// The bytes that `write` puts into a buffer of `size` bytes.
pub(crate) fn bytes(size: usize, write: impl FnOnce(*mut c_char) -> Result<()>) -> Result<Vec<u8>> {
    let mut buffer = vec![0_u8; size];
    write(buffer.as_mut_ptr().cast())?;
    Ok(buffer)
}

/// The text that `write` puts into a buffer of `size` bytes, its NUL included.
pub(crate) fn text(size: usize, write: impl FnOnce(*mut c_char) -> Result<()>) -> Result<String> {
    let mut buffer = bytes(size.max(1), write)?;
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    buffer.truncate(end);
    Ok(match String::from_utf8(buffer) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

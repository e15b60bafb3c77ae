//! A program while it is compiled.

use std::ffi::{CString, c_char, c_int};
use std::ptr;

use crate::api::{Api, RawProgram, RawResult, call};
use crate::diagnostic;
use crate::{CompileError, CompileOptions, Error, Ptx, Result};

/// NVRTC's object for one source.
pub(crate) struct Program<'a> {
    raw: RawProgram,
    api: &'a Api,
    name: &'a str,
}

/// Texts as C reads them, with their addresses in an array.
struct Texts {
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
}

impl<'a> Program<'a> {
    /// Hands a source and its headers to NVRTC, which copies them.
    pub(crate) fn new(api: &'a Api, source: &str, name: &'a str, headers: &[(String, String)]) -> Result<Self> {
        let source = c_text(source, || format!("the source of `{name}`"))?;
        let file = c_text(name, || "the name of the source".to_owned())?;
        let names = Texts::new(headers.iter().map(|(name, _)| name), "the name of a header")?;
        let sources = Texts::new(headers.iter().map(|(_, source)| source), "a header")?;
        let (source, file) = (source.as_ptr(), file.as_ptr());
        let (count, names, sources) = (names.count(), names.pointers.as_ptr(), sources.pointers.as_ptr());
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a valid place for the answer, and both arrays have `count` texts that end in NUL and are alive here.
        unsafe { call!(api, nvrtcCreateProgram(&raw mut raw, source, file, count, sources, names)) }?;
        Ok(Self { raw, api, name })
    }

    /// Compiles the program.
    pub(crate) fn compile(&self, options: &CompileOptions) -> Result<Ptx> {
        let arguments = Texts::new(options.to_arguments().iter(), "an option")?;
        let (count, pointers) = (arguments.count(), arguments.pointers.as_ptr());
        // SAFETY: the program is live, and `pointers` is an array of `count` texts that end in NUL and are alive here.
        let result = unsafe { call!(self.api, nvrtcCompileProgram(self.raw, count, pointers)) };
        let log = self.log()?;
        let diagnostics = diagnostic::parse(&log);
        match result {
            Ok(()) => Ok(Ptx { text: self.ptx()?, log, diagnostics }),
            Err(Error::Call(call)) => {
                let (name, log) = (self.name.into(), log.into());
                Err(Error::Compile(Box::new(CompileError { name, call, log, diagnostics })))
            }
            Err(error) => Err(error),
        }
    }

    fn log(&self) -> Result<String> {
        let mut size = 0;
        // SAFETY: the program is live, and `size` is a valid place for the answer.
        unsafe { call!(self.api, nvrtcGetProgramLogSize(self.raw, &raw mut size)) }?;
        text(size, |buffer| {
            // SAFETY: the program is live, and `buffer` has the room that NVRTC asked for.
            unsafe { call!(self.api, nvrtcGetProgramLog(self.raw, buffer)) }
        })
    }

    fn ptx(&self) -> Result<String> {
        let mut size = 0;
        // SAFETY: the program is live, and `size` is a valid place for the answer.
        unsafe { call!(self.api, nvrtcGetPTXSize(self.raw, &raw mut size)) }?;
        text(size, |buffer| {
            // SAFETY: the program is live, and `buffer` has the room that NVRTC asked for.
            unsafe { call!(self.api, nvrtcGetPTX(self.raw, buffer)) }
        })
    }

    fn destroy(&mut self) -> RawResult {
        // SAFETY: the program is live, we own it, and this is the last use of it.
        unsafe { (self.api.nvrtcDestroyProgram)(&raw mut self.raw) }
    }
}

impl Texts {
    fn new<'a>(texts: impl Iterator<Item = &'a String>, what: &'static str) -> Result<Self> {
        let texts = texts.map(|text| c_text(text, || format!("{what} ({:?})", first_line(text))));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        Ok(Self { pointers: texts.iter().map(|text| text.as_ptr()).collect(), _texts: texts })
    }

    fn count(&self) -> c_int {
        c_int::try_from(self.pointers.len()).unwrap_or(c_int::MAX)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // The only failure is an invalid handle, which ours is not, and there is nobody to tell.
        let _ = self.destroy();
    }
}

fn c_text(text: &str, what: impl FnOnce() -> String) -> Result<CString> {
    CString::new(text).map_err(|error| Error::Nul { what: what().into(), position: error.nul_position() })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The text that `write` puts into a buffer of `size` bytes, its NUL included.
fn text(size: usize, write: impl FnOnce(*mut c_char) -> Result<()>) -> Result<String> {
    let mut buffer = vec![0_u8; size.max(1)];
    write(buffer.as_mut_ptr().cast())?;
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    Ok(String::from_utf8_lossy(&buffer[..end]).into_owned())
}

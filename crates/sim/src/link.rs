//! Links: several PTX texts become one image.

pub(crate) mod merge;
pub(crate) mod runtime;
pub(crate) mod symbols;

use std::ffi::c_void;

use curium_ptx::syntax::Module;
use curium_sys::{CUlinkState_st, CUresult};

use crate::argument::Pointer;
use crate::handle::{Kind, Object};
use crate::image::Refusal;
use crate::image::jit::JitOptions;
use crate::link::symbols::Symbols;
use crate::result::Result;

/// A link with its inputs.
pub(crate) struct Link {
    pub(crate) logs: Logs,
    pub(crate) texts: Vec<String>,
    pub(crate) symbols: Symbols,
    pub(crate) max_registers: Option<u32>,
    /// The image, once the link is complete.
    pub(crate) image: Option<Box<[u8]>>,
}

/// The options that a link was created with: the buffers for the logs.
#[derive(Clone)]
pub(crate) struct Logs(pub(crate) JitOptions);

// SAFETY: the caller keeps the buffers valid until the link is destroyed, and every call with the
// link may write to them.
unsafe impl Send for Logs {}

impl Object for Link {
    type Raw = CUlinkState_st;
    const KIND: Kind = Kind::Link;
}

/// The text of a link without an input.
pub(crate) const EMPTY_MODULE: &str = ".version 7.0\n.target sm_52\n.address_size 64\n";

impl Link {
    /// Adds a text, unless its symbols contradict those of other texts.
    pub(crate) fn add(
        &mut self,
        text: String,
        module: &Module,
        name: &str,
    ) -> std::result::Result<(), Refusal> {
        let added = self.symbols.add(module, self.texts.len(), name);
        added.map_err(|log| {
            Refusal::new(
                CUresult::CUDA_ERROR_INVALID_SOURCE,
                &format!("error   : {log}"),
            )
        })?;
        self.texts.push(text);
        Ok(())
    }
}

/// Returns `true` if a binary begins as ELF files do.
///
/// # Safety
///
/// `data` points to text that ends with a NUL, or to a binary of four bytes or more.
pub(crate) unsafe fn is_elf(data: Pointer<c_void>) -> bool {
    const MARK: [u8; 4] = *b"\x7fELF";
    let first = data.as_ptr().cast_const().cast::<u8>();
    MARK.iter().enumerate().all(|(index, mark)| {
        // SAFETY: the bytes before this one are those of the mark, so the data has not ended.
        let byte = unsafe { first.add(index) };
        // SAFETY: the byte is in the data.
        unsafe { byte.read() == *mark }
    })
}

impl Logs {
    /// Writes the error log, and returns the code. A success leaves the buffers unchanged for later
    /// calls.
    pub(crate) fn report<T>(&self, outcome: std::result::Result<T, Refusal>) -> Result<T> {
        outcome.map_err(|refusal| {
            self.0.report(&refusal.log);
            refusal.code
        })
    }
}

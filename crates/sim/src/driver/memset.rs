//! Filling memory.

use curium_sys::{CUdeviceptr, CUresult};

use crate::driver::copy::Operands;
use crate::result::Result;

/// Rows of the same length in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

impl Operands<'_> {
    /// Checks that memory can be filled: it is allocated.
    pub(crate) fn filled(&self, address: CUdeviceptr, size: usize) -> Result {
        if size == 0 || self.memory.contains(address, size as u64) {
            Ok(())
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }
}

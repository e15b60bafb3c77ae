//! Filling rows.

use curium_sys::{CUdeviceptr, CUresult, CUstream_st};

use crate::argument::Pointer;
use crate::driver::Driver;
use crate::memory::Fill;
use crate::object::graph::content::{Content, Set};
use crate::result::Result;

/// Rows of the same length in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

impl Driver {
    pub(crate) fn fill_rows(
        &self,
        address: CUdeviceptr,
        fill: Fill,
        rows: Rows,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
        let row = fill.count.checked_mul(fill.width).ok_or(INVALID)?;
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        let is_pitch_valid =
            rows.height <= 1 || (rows.pitch >= row && rows.pitch.is_multiple_of(fill.width));
        if !address.is_multiple_of(fill.width as u64) || !is_pitch_valid {
            return Err(INVALID);
        }
        if row == 0 || rows.height == 0 {
            return Ok(());
        }
        let span = (rows.height - 1)
            .checked_mul(rows.pitch)
            .and_then(|rows| rows.checked_add(row))
            .ok_or(INVALID)?;
        self.filled(address, span)?;
        state.enqueue(
            stream,
            Content::Set(Set::new(address, fill, rows.pitch, rows.height)),
        )
    }
}

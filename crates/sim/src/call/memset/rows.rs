//! Filling rows.

use curium_sys::{CUdeviceptr, CUresult, CUstream_st};

use crate::argument::Pointer;
use crate::call::Call;
use crate::driver::copy::legacy;
use crate::driver::memset::Rows;
use crate::memory::Fill;
use crate::object::graph::content::{Content, Set};
use crate::result::Result;

/// Methods for one width: the synchronous form and the asynchronous one.
macro_rules! widths {
    ($($now:ident $later:ident $ty:ty;)*) => {
        #[expect(non_snake_case, reason = "the methods have the names of the C functions")]
        impl Call<'_> {
            $(
                pub(crate) fn $now(
                    &self,
                    address: CUdeviceptr,
                    pitch: usize,
                    value: $ty,
                    width: usize,
                    height: usize,
                ) -> Result {
                    self.require_current()?;
                    self.$later(address, pitch, value, width, height, legacy())?;
                    let is_on_host = self.memory().find(address).is_some_and(|allocation| allocation.purpose.is_on_host());
                    if is_on_host { self.cuStreamSynchronize(legacy()) } else { Ok(()) }
                }

                pub(crate) fn $later(
                    &self,
                    address: CUdeviceptr,
                    pitch: usize,
                    value: $ty,
                    width: usize,
                    height: usize,
                    stream: Pointer<CUstream_st>,
                ) -> Result {
                    let fill = Fill { value: value.into(), width: size_of::<$ty>(), count: width };
                    self.fill_rows(address, fill, Rows { pitch, height }, stream)
                }
            )*
        }
    };
}

widths! {
    cuMemsetD2D8_v2 cuMemsetD2D8Async u8;
    cuMemsetD2D16_v2 cuMemsetD2D16Async u16;
    cuMemsetD2D32_v2 cuMemsetD2D32Async u32;
}

impl Call<'_> {
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
        self.operands().filled(address, span)?;
        state.enqueue(
            stream,
            Content::Set(Set::new(address, fill, rows.pitch, rows.height)),
        )
    }
}

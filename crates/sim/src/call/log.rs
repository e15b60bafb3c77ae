//! The driver's log: a line for each call that failed.

use std::ffi::{c_char, c_void};

use curium_sys::{
    CUlogIterator, CUlogsCallback, CUlogsCallbackEntry_st, CUlogsCallbackHandle, CUresult,
};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuLogsRegisterCallback(
        &self,
        callback: CUlogsCallback,
        data: Pointer<c_void>,
        handle: Pointer<CUlogsCallbackHandle>,
    ) -> Result {
        let callback = callback.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let number = self.log().register(callback, data.as_ptr());
        handle.write_if_not_null(std::ptr::without_provenance_mut(number));
        Ok(())
    }

    pub(crate) fn cuLogsUnregisterCallback(
        &self,
        handle: Pointer<CUlogsCallbackEntry_st>,
    ) -> Result {
        if self.log().unregister(handle.address() as usize) {
            Ok(())
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    /// Ignores the flags, as on hardware.
    pub(crate) fn cuLogsCurrent(&self, iterator: Pointer<CUlogIterator>, _flags: u32) -> Result {
        iterator.write(self.log().end())
    }

    /// Ignores the flags, as on hardware.
    pub(crate) fn cuLogsDumpToMemory(
        &self,
        iterator: Pointer<CUlogIterator>,
        buffer: Pointer<c_char>,
        size: Pointer<usize>,
        _flags: u32,
    ) -> Result {
        let buffer = buffer.required()?;
        // The terminating NUL occupies one byte.
        let room = size
            .read()?
            .checked_sub(1)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let Some((text, end)) = self.log().text(iterator.read().ok(), room) else {
            size.write(0)?;
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        };
        iterator.write_if_not_null(end);
        // SAFETY: the caller passed a buffer of one byte more than `room`, and the text is not
        // longer than that.
        size.write(unsafe { buffer.fill_with(&text, room + 1) })
    }

    pub(crate) fn cuLogsDumpToFile(
        &self,
        iterator: Pointer<CUlogIterator>,
        path: ConstPointer<c_char>,
        flags: u32,
    ) -> Result {
        let path = path
            .text()?
            .to_str()
            .ok()
            .filter(|_| flags == 0)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let (text, end) = self
            .log()
            .text(iterator.read().ok(), usize::MAX)
            .unwrap_or_default();
        std::fs::write(path, text).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
        iterator.write_if_not_null(end);
        Ok(())
    }
}

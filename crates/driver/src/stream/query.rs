//! Queries of a stream's properties.

use curium_sys::{CUcontext, CUdevice, CUgreenCtx};

use crate::AsRawStream as _;
use crate::call;
use crate::{Result, Stream, StreamFlags};

impl Stream {
    /// Returns the driver's identifier of the stream, which is unique in the process.
    ///
    /// CUDA: `cuStreamGetId`, since 12.0.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuStreamGetId")]
    #[doc(alias = "cudaStreamGetId")]
    #[inline]
    pub fn id(&self) -> Result<u64> {
        let mut id = 0;
        // SAFETY: `id` is valid for writes, and the stream is live.
        unsafe { call!(self.driver(), cuStreamGetId(self.as_raw(), &raw mut id)) }?;
        Ok(id)
    }

    /// Returns the flags of the stream.
    ///
    /// CUDA: `cuStreamGetFlags`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuStreamGetFlags")]
    #[doc(alias = "cudaStreamGetFlags")]
    #[inline]
    pub fn flags(&self) -> Result<StreamFlags> {
        let mut flags = 0;
        // SAFETY: `flags` is valid for writes, and the stream is live.
        unsafe {
            call!(
                self.driver(),
                cuStreamGetFlags(self.as_raw(), &raw mut flags)
            )
        }?;
        Ok(StreamFlags::from_bits_retain(flags))
    }

    /// Returns the priority of the stream after clamping. Lower numbers have greater priority.
    ///
    /// CUDA: `cuStreamGetPriority`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuStreamGetPriority")]
    #[doc(alias = "cudaStreamGetPriority")]
    #[inline]
    pub fn priority(&self) -> Result<i32> {
        let mut priority = 0;
        // SAFETY: `priority` is valid for writes, and the stream is live.
        unsafe {
            call!(
                self.driver(),
                cuStreamGetPriority(self.as_raw(), &raw mut priority)
            )
        }?;
        Ok(priority)
    }

    /// Returns the raw context of this stream as reported by the driver. It equals that of
    /// [`Stream::context`], except for a default stream, whose context is the current one.
    ///
    /// CUDA: `cuStreamGetCtx`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` for a default stream if no context is current.
    #[doc(alias = "cuStreamGetCtx")]
    #[inline]
    pub fn context_raw(&self) -> Result<CUcontext> {
        let mut context = std::ptr::null_mut();
        // SAFETY: `context` is valid for writes, and the stream is live.
        unsafe {
            call!(
                self.driver(),
                cuStreamGetCtx(self.as_raw(), &raw mut context)
            )
        }?;
        Ok(context)
    }

    /// Returns the raw context and the raw green context of this stream. The latter is null if the
    /// stream has none; otherwise the former is the primary context.
    ///
    /// Requires CUDA 12.5. CUDA: `cuStreamGetCtx_v2`.
    ///
    /// # Errors
    ///
    /// As for [`Stream::context_raw`].
    #[inline]
    pub fn contexts_raw(&self) -> Result<(CUcontext, CUgreenCtx)> {
        let mut context = std::ptr::null_mut();
        let mut green = std::ptr::null_mut();
        // SAFETY: both pointers are valid for writes, and the stream is live.
        unsafe {
            call!(
                self.driver(),
                cuStreamGetCtx_v2(self.as_raw(), &raw mut context, &raw mut green)
            )
        }?;
        Ok((context, green))
    }

    /// Returns the raw device of this stream as reported by the driver. [`Stream::device`] returns
    /// it without a driver call.
    ///
    /// Requires CUDA 12.8. CUDA: `cuStreamGetDevice`.
    ///
    /// # Errors
    ///
    /// As for [`Stream::context_raw`].
    #[doc(alias = "cuStreamGetDevice")]
    #[inline]
    pub fn device_raw(&self) -> Result<CUdevice> {
        let mut device = 0;
        // SAFETY: `device` is valid for writes, and the stream is live.
        unsafe {
            call!(
                self.driver(),
                cuStreamGetDevice(self.as_raw(), &raw mut device)
            )
        }?;
        Ok(device)
    }
}

//! The constructor.

use curium_sys::Function;

use super::raw::Ownership;
use super::{Stream, StreamOptions};
use crate::{Context, Result, call};

impl Stream {
    /// Creates a stream in `context`.
    ///
    /// CUDA: `cuStreamCreateWithPriority`, and `cuGreenCtxStreamCreate` in a green context.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` in a green context without
    /// [`StreamFlags::NON_BLOCKING`](crate::StreamFlags::NON_BLOCKING).
    #[doc(alias = "cuStreamCreate")]
    #[doc(alias = "cudaStreamCreate")]
    #[doc(alias = "cudaStreamCreateWithFlags")]
    #[doc(alias = "cuStreamCreateWithPriority")]
    #[doc(alias = "cudaStreamCreateWithPriority")]
    #[doc(alias = "cuGreenCtxStreamCreate")]
    pub fn new(context: &Context, options: StreamOptions) -> Result<Self> {
        if let Some(green) = context.green_raw()
            && context.driver().has(Function::cuGreenCtxStreamCreate)
        {
            let mut raw = std::ptr::null_mut();
            let StreamOptions { flags, priority } = options;
            let driver = context.driver();
            // SAFETY: `raw` is valid for writes, and the green context is live.
            unsafe {
                call!(driver, cuGreenCtxStreamCreate(&raw mut raw, green, flags.bits(), priority) creates raw)
            }?;
            return Ok(Self::with_ownership(context, raw, Ownership::Owned));
        }
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            let StreamOptions { flags, priority } = options;
            // SAFETY: `raw` is valid for writes, and the context is current.
            unsafe { call!(driver, cuStreamCreateWithPriority(&raw mut raw, flags.bits(), priority) creates raw) }?;
            Ok(raw)
        })?;
        Ok(Self::with_ownership(context, raw, Ownership::Owned))
    }
}

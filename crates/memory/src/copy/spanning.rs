//! Copies of memory that lies behind several mappings in a row.

use curium_driver::sys::CUresult;
use curium_driver::{Result, Stream};

/// Puts a copy on `stream`. Drivers take a range that spans mappings only while a context is current, whichever, and call it an
/// invalid value otherwise; so a copy that is refused as that is tried once more with the stream's context current.
#[inline]
pub(crate) fn enqueue(stream: &Stream, copy: impl Fn() -> Result<()>) -> Result<()> {
    let result = copy();
    match &result {
        Err(error) if error.code() == Some(CUresult::CUDA_ERROR_INVALID_VALUE) => stream.context().entered(|_| copy()),
        _ => result,
    }
}

//! Work on memory that lies behind several mappings in a row.

use curium_driver::sys::CUresult;
use curium_driver::{Result, Stream};

/// Puts a copy or a fill on `stream`. Drivers take a range that spans mappings only while a context is current, whichever, and call it an
/// invalid value otherwise; so what is refused as that is tried once more with the stream's context current.
#[inline]
pub(crate) fn enqueue(stream: &Stream, put: impl Fn() -> Result<()>) -> Result<()> {
    let result = put();
    match &result {
        Err(error) if error.code() == Some(CUresult::CUDA_ERROR_INVALID_VALUE) => stream.context().entered(|_| put()),
        _ => result,
    }
}

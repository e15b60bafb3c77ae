//! Work on memory that spans several mappings.

use curium_driver::Result;
use curium_driver::hazard::Operation;
use curium_driver::sys::CUresult;

/// Calls `enqueue` to enqueue a copy or a fill. Drivers reject ranges that span several mappings as invalid values if no
/// context is current, so a failed call is repeated with the stream's context current.
pub(crate) fn enqueue(operation: &Operation<'_>, enqueue: impl Fn() -> Result<()>) -> Result<()> {
    let result = enqueue();
    match &result {
        Err(error) if error.code() == Some(CUresult::CUDA_ERROR_INVALID_VALUE) => {
            operation.stream().context().entered(|_| enqueue())
        }
        _ => result,
    }
}

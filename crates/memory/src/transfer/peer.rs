//! Copies between devices.

use curium_driver::hazard::Operation;
use curium_driver::{Result, call};

use crate::operand::{Operand, transfer};
use crate::peer_access;

/// Enqueues a copy between devices.
#[cold]
pub(crate) fn copy(operation: Operation<'_>, to: Operand<'_>, from: Operand<'_>) -> Result<()> {
    let to_context = to.stream().context();
    let from_context = from.stream().context();
    peer_access::connect(to_context, from_context)?;
    transfer(operation, &to, &from, |operation| {
        enqueue(operation, &to, &from)
    })
}

/// Enqueues a copy between operands on any device. The operation has waited for conflicting
/// accesses.
pub(crate) fn enqueue(
    operation: &Operation<'_>,
    to: &Operand<'_>,
    from: &Operand<'_>,
) -> Result<()> {
    let to_context = to.stream().context().as_raw();
    let from_context = from.stream().context().as_raw();
    let bytes = to.bytes;
    let to = to.address;
    let from = from.address;
    let raw = operation.raw_stream();
    // SAFETY: both operands have this many bytes, belong to the given contexts, and are live on
    // this stream, which has waited for conflicting accesses.
    unsafe {
        call!(
            operation.driver(),
            cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, raw)
        )
    }
}

//! Access of devices to each other's memory.

use curium_driver::sys::{CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUresult};
use curium_driver::{Context, Error, Result, Stream, call};

use crate::{MemoryLocation, pointer_info};

/// Enables peer access between two contexts if their devices support it, so that copies between
/// them are direct.
pub(crate) fn connect(one: &Context, other: &Context) -> Result<()> {
    for (from, to) in [(one, other), (other, one)] {
        if from.device().can_access_peer(to.device())? {
            unless_impossible(from.enable_peer_access(to))?;
        }
    }
    Ok(())
}

/// Grants kernels on `stream` access to memory at `address` that belongs to `owner`, a stream of
/// another device.
pub(crate) fn enable_access(
    operation: &'static str,
    stream: &Stream,
    owner: &Stream,
    address: CUdeviceptr,
) -> Result<()> {
    let from = stream.device();
    let to = owner.device();
    if !from.can_access_peer(to)? {
        let from = from.as_raw();
        let to = to.as_raw();
        let reason = format!(
            "device {from} cannot use memory at {address:#x}, which is on device {to}: copy it"
        );
        return Err(Error::argument(operation, reason));
    }
    let pool = pointer_info::pool_at(owner.driver(), address)?;
    if pool.is_null() {
        return stream.context().enable_peer_access(owner.context());
    }
    let location = MemoryLocation::from(from).to_raw();
    let access = CUmemAccessDesc {
        location,
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    // SAFETY: the pool exists for as long as memory is allocated from it, and there is one entry.
    unsafe {
        call!(
            owner.driver(),
            cuMemPoolSetAccess(pool, &raw const access, 1)
        )
    }
}

/// Ignores an error that peer access is impossible; copies are then staged.
fn unless_impossible(result: Result<()>) -> Result<()> {
    const IMPOSSIBLE: [CUresult; 2] = [
        CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
        CUresult::CUDA_ERROR_TOO_MANY_PEERS,
    ];
    match result {
        Err(error) if error.code().is_some_and(|code| IMPOSSIBLE.contains(&code)) => Ok(()),
        result => result,
    }
}

//! Links between devices, and to the host.
//!
//! Every two devices have a link that supports accesses and all atomic operations, as between GPUs
//! on one board, except integrated devices and those on Windows.

use curium_sys::{CUatomicOperation, CUctx_st, CUdevice, CUdevice_P2PAttribute, CUresult};

use crate::argument::{ConstPointer, Pointer, elements};
use crate::call::Call;
use crate::call::context::named_context;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuDeviceCanAccessPeer(
        &self,
        access: Pointer<i32>,
        device: CUdevice,
        peer: CUdevice,
    ) -> Result {
        let output = access.required()?;
        let differ = self.devices().device(device)? != self.devices().device(peer)?;
        output.write((differ && self.config().has_peers()).into())
    }

    pub(crate) fn cuDeviceGetP2PAttribute(
        &self,
        value: Pointer<i32>,
        attribute: CUdevice_P2PAttribute,
        source: CUdevice,
        target: CUdevice,
    ) -> Result {
        use CUdevice_P2PAttribute as Attribute;
        let output = value.required()?;
        self.devices().link(source, target)?;
        output.write(match attribute {
            Attribute::CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK
            | Attribute::CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED => 0,
            Attribute::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED
            | Attribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED
            | Attribute::CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED => {
                self.config().has_peers().into()
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        })
    }

    /// Reports no form of any operation. Drivers do so for GPUs with NVLink too, although the
    /// attribute of the link has all of them.
    pub(crate) fn cuDeviceGetP2PAtomicCapabilities(
        &self,
        capabilities: Pointer<u32>,
        operations: ConstPointer<CUatomicOperation>,
        count: u32,
        source: CUdevice,
        target: CUdevice,
    ) -> Result {
        let operations = requested(capabilities, operations, count)?;
        self.devices().link(source, target)?;
        write_no_forms(capabilities, operations)
    }

    /// Reports no atomic operations, since the link to the host is PCI Express.
    pub(crate) fn cuDeviceGetHostAtomicCapabilities(
        &self,
        capabilities: Pointer<u32>,
        operations: ConstPointer<CUatomicOperation>,
        count: u32,
        device: CUdevice,
    ) -> Result {
        let operations = requested(capabilities, operations, count)?;
        self.devices().device(device)?;
        write_no_forms(capabilities, operations)
    }

    pub(crate) fn cuCtxEnablePeerAccess(&self, peer: Pointer<CUctx_st>, flags: u32) -> Result {
        let (mut state, current) = self.enter_current()?;
        let current = state.contexts.owning_context(current);
        let peer = state.contexts.owning_context(named_context(peer)?);
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if state.contexts.live_context(peer)?.device()
            == state.contexts.live_context(current)?.device()
            || !self.config().has_peers()
        {
            return Err(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
        }
        if state.contexts.valid_context_mut(current)?.add_peer(peer) {
            Ok(())
        } else {
            Err(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        }
    }

    pub(crate) fn cuCtxDisablePeerAccess(&self, peer: Pointer<CUctx_st>) -> Result {
        let (mut state, current) = self.enter_current()?;
        let current = state.contexts.owning_context(current);
        let peer = state.contexts.owning_context(named_context(peer)?);
        state.contexts.live_context(peer)?;
        state.check_potentially_unsafe_call()?;
        if state.contexts.valid_context_mut(current)?.remove_peer(peer) {
            Ok(())
        } else {
            Err(CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
        }
    }
}

/// Returns the operations of a query, at least one.
fn requested<'a>(
    capabilities: Pointer<u32>,
    operations: ConstPointer<CUatomicOperation>,
    count: u32,
) -> Result<&'a [CUatomicOperation]> {
    capabilities.required()?;
    // SAFETY: the caller of the C function passed `count` operations, or a null pointer.
    let operations = unsafe { elements(operations.as_ptr(), count as usize) }?;
    if operations.is_empty() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(operations)
}

/// Reports each operation as unsupported.
fn write_no_forms(capabilities: Pointer<u32>, operations: &[CUatomicOperation]) -> Result {
    let is_known = operations
        .iter()
        .all(|operation| operation.0 < CUatomicOperation::CU_ATOMIC_OPERATION_MAX.0);
    if !is_known {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    for index in 0..operations.len() {
        // SAFETY: the caller of the C function passed room for as many answers as operations.
        unsafe { capabilities.at(index) }.write(0)?;
    }
    Ok(())
}

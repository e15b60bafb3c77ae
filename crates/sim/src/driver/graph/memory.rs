//! Memory of graphs: nodes that allocate and free, and what devices keep for them.

use std::ffi::c_void;
use std::sync::{Arc, Weak};

use curium_sys::{CUDA_MEM_ALLOC_NODE_PARAMS, CUdevice, CUdeviceptr, CUgraphMem_attribute, CUgraphNode_st, CUresult};

use super::Content;
use crate::argument::Pointer;
use crate::driver::{Context, Driver, Result};
use crate::handle::Id;
use crate::memory::{Owner, Purpose};

/// Memory of an allocation node. It is there for as long as the graph and its executables are; what it holds is not kept between
/// launches.
#[derive(Clone)]
pub(crate) struct Allocation {
    pub(super) params: CUDA_MEM_ALLOC_NODE_PARAMS,
    _memory: Arc<Reservation>,
}

/// Memory that is freed with the last node and step that has it.
struct Reservation {
    driver: Weak<Driver>,
    address: CUdeviceptr,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.upgrade() {
            driver.memory().free(self.address);
        }
    }
}

// SAFETY: the pointer to the access descriptions is null: they were read when the node was made.
unsafe impl Send for Allocation {}
// SAFETY: as for `Send`.
unsafe impl Sync for Allocation {}

impl Driver {
    /// An allocation node of the current device's pool.
    pub(super) fn allocation_content(
        &self,
        context: Id<Context>,
        mut params: CUDA_MEM_ALLOC_NODE_PARAMS,
    ) -> Result<Content> {
        if params.bytesize == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the union's first member is a number, for which any bytes are valid.
        let device = self.device(unsafe { params.poolProps.location.__bindgen_anon_1.id })?;
        let pool = self.memory().read().default_pools[device];
        let owner = Owner { context, device };
        params.dptr = self.memory().allocate_on_device(params.bytesize as u64, owner, Purpose::Pool(pool))?;
        params.accessDescs = std::ptr::null();
        params.accessDescCount = 0;
        let driver = self.shared().map(|driver| Arc::downgrade(&driver)).unwrap_or_default();
        let memory = Arc::new(Reservation { driver, address: params.dptr });
        Ok(Content::Allocate(Allocation { params, _memory: memory }))
    }
}

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuGraphMemAllocNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_MEM_ALLOC_NODE_PARAMS>,
    ) -> Result {
        match &self.lock().node(node)?.1.content {
            Content::Allocate(allocation) => params.write(allocation.params),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub(crate) fn cuGraphMemFreeNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        address: Pointer<CUdeviceptr>,
    ) -> Result {
        match self.lock().node(node)?.1.content {
            Content::Free(freed) => address.write(freed),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub(crate) fn cuDeviceGraphMemTrim(&self, device: CUdevice) -> Result {
        self.device(device).map(|_| ())
    }

    /// The memory counts to the pools of the device here, and so none is kept for graphs.
    pub(crate) fn cuDeviceGetGraphMemAttribute(
        &self,
        device: CUdevice,
        attribute: CUgraphMem_attribute,
        value: Pointer<c_void>,
    ) -> Result {
        self.device(device)?;
        if attribute.0 > CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: every attribute is a 64-bit number.
        unsafe { value.cast::<u64>() }.write(0)
    }
}

//! Sharing attributes of a pointer.

use std::ffi::c_void;
use std::ops::Range;

use curium_driver::sys::{CUdeviceptr, CUmemAccess_flags, CUpointer_attribute, CudaVersion};
use curium_driver::{Context, DevicePointer, Driver, MemoryHandleTypes, Result};

use super::query;
use crate::MemoryAccess;

/// Sharing attributes of a pointer.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PointerSharing {
    /// The access rights of the context's device.
    pub access: MemoryAccess,
    /// The handle types that the memory can be exported as.
    pub handle_types: MemoryHandleTypes,
    /// `true` if another process can open the allocation through an IPC handle.
    pub is_ipc_capable: bool,
    /// `true` if other PCIe devices can access the memory.
    pub is_gpu_direct_rdma_capable: bool,
    /// `true` if the decompression engine can write the memory; `None` for drivers before CUDA
    /// 12.8.
    pub is_hw_decompress_capable: Option<bool>,
    /// The address range of the mapping, which may be larger than the allocation; `None` for
    /// drivers before CUDA 12.0.
    pub mapping: Option<Range<u64>>,
    /// The ID of the physical memory block, which allocations may share; `None` for drivers before
    /// CUDA 12.0.
    pub block_id: Option<u64>,
}

/// The results as raw values.
#[derive(Default)]
struct Answers {
    kind: u32,
    access: u32,
    handle_types: u64,
    is_ipc_capable: u32,
    is_gpu_direct_rdma_capable: u32,
    is_hw_decompress_capable: u32,
    mapping_base: CUdeviceptr,
    mapping_size: usize,
    block_id: u64,
}

impl PointerSharing {
    /// Queries the sharing attributes of `pointer` for the device of `context`. Returns `None` for
    /// an address that is unknown to the driver, such as pageable host memory.
    ///
    /// CUDA: `cuPointerGetAttributes`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuPointerGetAttributes")]
    #[doc(alias = "cudaPointerGetAttributes")]
    pub fn of<T>(context: &Context, pointer: DevicePointer<T>) -> Result<Option<Self>> {
        let mut answers = Answers::default();
        let driver = context.driver();
        let [has_mappings, has_engine] = [(12, 0), (12, 8)].map(|(major, minor)| {
            let since = CudaVersion::new(major, minor);
            driver.version() >= since
        });
        context.entered(|driver| {
            answers.query(driver, pointer.as_raw(), [has_mappings, has_engine])
        })?;
        Ok((answers.kind != 0).then(|| answers.into_sharing([has_mappings, has_engine])))
    }
}

impl Answers {
    fn query(
        &mut self,
        driver: &Driver,
        address: CUdeviceptr,
        [has_mappings, has_engine]: [bool; 2],
    ) -> Result<()> {
        use CUpointer_attribute as Attribute;

        let outputs: [(CUpointer_attribute, *mut c_void, bool); 9] = [
            (
                Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                (&raw mut self.kind).cast(),
                true,
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,
                (&raw mut self.access).cast(),
                true,
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
                (&raw mut self.handle_types).cast(),
                true,
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                (&raw mut self.is_ipc_capable).cast(),
                true,
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE,
                (&raw mut self.is_gpu_direct_rdma_capable).cast(),
                true,
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE,
                (&raw mut self.is_hw_decompress_capable).cast(),
                has_engine,
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                (&raw mut self.mapping_base).cast(),
                has_mappings,
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
                (&raw mut self.mapping_size).cast(),
                has_mappings,
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID,
                (&raw mut self.block_id).cast(),
                has_mappings,
            ),
        ];
        let supported = outputs
            .into_iter()
            .filter(|(_, _, is_supported)| *is_supported);
        let (mut attributes, mut outputs): (Vec<_>, Vec<_>) = supported
            .map(|(attribute, output, _)| (attribute, output))
            .unzip();
        // SAFETY: each pointer is valid for the type of its attribute.
        unsafe { query(driver, address, &mut attributes, &mut outputs) }
    }

    fn into_sharing(self, [has_mappings, has_engine]: [bool; 2]) -> PointerSharing {
        let end = self.mapping_base.saturating_add(self.mapping_size as u64);
        PointerSharing {
            access: MemoryAccess::from_raw(CUmemAccess_flags(self.access)),
            handle_types: MemoryHandleTypes::from_bits_retain(self.handle_types as u32),
            is_ipc_capable: self.is_ipc_capable != 0,
            is_gpu_direct_rdma_capable: self.is_gpu_direct_rdma_capable != 0,
            is_hw_decompress_capable: has_engine.then_some(self.is_hw_decompress_capable != 0),
            mapping: has_mappings.then_some(self.mapping_base..end),
            block_id: has_mappings.then_some(self.block_id),
        }
    }
}

//! Physical memory shared between processes by descriptors.

use std::ffi::c_void;

use curium_sys::{CUmemAllocationHandleType, CUmemGenericAllocationHandle, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::call::virtual_memory::physical;
use crate::memory::Location;
use crate::result::Result;

const DESCRIPTOR: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemExportToShareableHandle(
        &self,
        exported: Pointer<c_void>,
        handle: CUmemGenericAllocationHandle,
        handle_type: CUmemAllocationHandleType,
        flags: u64,
    ) -> Result {
        let output = exported.required()?;
        if flags != 0 || handle_type != DESCRIPTOR {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let descriptor = self
            .memory()
            .mappings()
            .export_physical(physical(handle), handle_type.0)?;
        // SAFETY: for this type the caller passes a pointer to an `int`.
        unsafe { output.cast::<i32>() }.write(descriptor)
    }

    /// Imports from a descriptor, which remains owned by the caller.
    pub(crate) fn cuMemImportFromShareableHandle(
        &self,
        handle: Pointer<CUmemGenericAllocationHandle>,
        exported: Pointer<c_void>,
        handle_type: CUmemAllocationHandleType,
    ) -> Result {
        let output = handle.required()?;
        exported.required()?;
        match handle_type {
            DESCRIPTOR => {}
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32
            | CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32_KMT
            | CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC => {
                return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
        // The pointer contains the number.
        let descriptor =
            i32::try_from(exported.address()).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let devices = self.config().devices as usize;
        let imported = self.memory().mappings().import_physical(descriptor, |properties| {
            !matches!(properties.location, Location::Device(device) if device >= devices)
        })?;
        output.write(imported.number())
    }
}

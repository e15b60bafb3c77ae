//! The C functions for virtual memory.

mod sharing;

use std::ffi::c_void;

use curium_sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType,
    CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType, CUresult,
};

use crate::argument::{ConstPointer, Pointer, elements};
use crate::call::Call;
use crate::driver::virtual_memory::raw_location;
use crate::handle::Id;
use crate::memory::{GRANULARITY, Location, Physical, Properties, READ, WRITE};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemAddressReserve(
        &self,
        address: Pointer<CUdeviceptr>,
        size: usize,
        alignment: usize,
        hint: CUdeviceptr,
        flags: u64,
    ) -> Result {
        let output = address.required()?;
        let is_aligned =
            (alignment == 0 || alignment.is_power_of_two()) && hint.is_multiple_of(GRANULARITY);
        if flags != 0 || !is_aligned || !is_granular(size as u64) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        output.write(
            self.memory()
                .mappings()
                .reserve(size as u64, alignment as u64, hint)?,
        )
    }

    pub(crate) fn cuMemAddressFree(&self, address: CUdeviceptr, size: usize) -> Result {
        self.memory()
            .mappings()
            .free_reservation(address, size as u64)
    }

    pub(crate) fn cuMemCreate(
        &self,
        handle: Pointer<CUmemGenericAllocationHandle>,
        size: usize,
        properties: ConstPointer<CUmemAllocationProp>,
        flags: u64,
    ) -> Result {
        let output = handle.required()?;
        let properties = self.properties(&properties.read()?)?;
        if flags != 0 || !is_granular(size as u64) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        output.write(
            self.memory()
                .mappings()
                .create_physical(size as u64, properties)?
                .number(),
        )
    }

    /// Releases the handle. The memory exists until its mappings are removed.
    pub(crate) fn cuMemRelease(&self, handle: CUmemGenericAllocationHandle) -> Result {
        self.memory()
            .mappings()
            .release_physical(physical(handle))?;
        self.drop_retired_memory();
        Ok(())
    }

    pub(crate) fn cuMemRetainAllocationHandle(
        &self,
        handle: Pointer<CUmemGenericAllocationHandle>,
        address: Pointer<c_void>,
    ) -> Result {
        handle.required()?.write(
            self.memory()
                .mappings()
                .retain_physical(address.address())?
                .number(),
        )
    }

    /// Maps physical allocations as a whole only, as documented.
    pub(crate) fn cuMemMap(
        &self,
        address: CUdeviceptr,
        size: usize,
        offset: usize,
        handle: CUmemGenericAllocationHandle,
        flags: u64,
    ) -> Result {
        if handle == 0 || size == 0 || address == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if offset != 0 {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        if flags != 0 || !address.is_multiple_of(GRANULARITY) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let whole = self.memory().mappings().physical_size(physical(handle))?;
        if size as u64 != whole {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        self.memory()
            .mappings()
            .map(address, size as u64, physical(handle))
    }

    /// Unmaps memory. Queued work that accesses it later fails with an illegal address.
    pub(crate) fn cuMemUnmap(&self, address: CUdeviceptr, size: usize) -> Result {
        // As on hardware, there may be nothing to unmap in a reservation, whatever the offset and
        // the size.
        if size != 0 && self.memory().mappings().is_unmapped(address) {
            return Ok(());
        }
        self.memory().mappings().unmap(address, size as u64)?;
        self.drop_retired_memory();
        Ok(())
    }

    pub(crate) fn cuMemSetAccess(
        &self,
        address: CUdeviceptr,
        size: usize,
        rights: ConstPointer<CUmemAccessDesc>,
        count: usize,
    ) -> Result {
        // SAFETY: by the contract of the C function, the array has `count` descriptions.
        let rights = unsafe { elements(rights.as_ptr(), count) }?;
        if rights.is_empty() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let rights = self
            .access_rights(rights)
            .or(Err(CUresult::CUDA_ERROR_INVALID_VALUE))?;
        self.memory()
            .mappings()
            .set_access(address, size as u64, &rights)
    }

    pub(crate) fn cuMemGetAccess(
        &self,
        flags: Pointer<u64>,
        location: ConstPointer<CUmemLocation>,
        address: CUdeviceptr,
    ) -> Result {
        let output = flags.required()?;
        let location = location.read()?;
        // As on hardware, the node of the calling thread is no location of a mapping.
        let unknown = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
        if location.type_.0 >= unknown.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_DEVICE);
        }
        let location = self.devices().location(&location)?;
        output.write(self.memory().mappings().access(address, location)?.into())
    }

    pub(crate) fn cuMemGetAllocationGranularity(
        &self,
        granularity: Pointer<usize>,
        properties: ConstPointer<CUmemAllocationProp>,
        option: CUmemAllocationGranularity_flags,
    ) -> Result {
        let output = granularity.required()?;
        // As on hardware, the properties are not checked.
        properties.read()?;
        match option {
            CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM
            | CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED => {
                output.write(GRANULARITY as usize)
            }
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub(crate) fn cuMemGetAllocationPropertiesFromHandle(
        &self,
        properties: Pointer<CUmemAllocationProp>,
        handle: CUmemGenericAllocationHandle,
    ) -> Result {
        let output = properties.required()?;
        let physical = self
            .memory()
            .mappings()
            .physical_properties(physical(handle))?;
        let mut properties = CUmemAllocationProp {
            type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: CUmemAllocationHandleType(physical.handle_types),
            ..CUmemAllocationProp::default()
        };
        properties.location = raw_location(physical.location);
        properties.allocFlags.compressionType = physical.compression;
        properties.allocFlags.gpuDirectRDMACapable = physical.gpu_direct;
        properties.allocFlags.usage = physical.usage;
        output.write(properties)
    }
}

impl Call<'_> {
    /// Returns the checked properties of a physical allocation.
    fn properties(&self, raw: &CUmemAllocationProp) -> Result<Properties> {
        let is_reserved_used = raw.allocFlags.reserved.iter().any(|byte| *byte != 0);
        if raw.type_ != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED || is_reserved_used {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let location = self.devices().location(&raw.location)?;
        if location == Location::Host {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // As on hardware, handles of Windows are unknown here, and other platforms' are not
        // supported.
        const WIN32: u32 = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32.0
            | CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32_KMT.0;
        if raw.requestedHandleTypes.0 & WIN32 & !self.config().handle_types() != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if raw.requestedHandleTypes.0 & !self.config().handle_types() != 0 {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        Ok(Properties {
            location,
            handle_types: raw.requestedHandleTypes.0,
            compression: raw.allocFlags.compressionType,
            gpu_direct: raw.allocFlags.gpuDirectRDMACapable,
            usage: raw.allocFlags.usage,
        })
    }

    /// Converts access descriptions to locations with their access flags.
    pub(crate) fn access_rights(
        &self,
        descriptions: &[CUmemAccessDesc],
    ) -> Result<Vec<(Location, u32)>> {
        descriptions
            .iter()
            .map(|description| {
                Ok((
                    self.devices().location(&description.location)?,
                    checked_access(description.flags)?,
                ))
            })
            .collect()
    }

    /// Releases memory without owners if no work is pending. Otherwise a later call releases it.
    fn drop_retired_memory(&self) {
        let state = self.lock();
        if state.schedule.pending(|_| true).is_empty() {
            self.memory().mappings().drop_retired();
        }
    }
}

/// Returns the bits of valid access rights: none, read, or read and write.
pub(crate) fn checked_access(flags: CUmemAccess_flags) -> Result<u32> {
    match flags.0 {
        bits if bits == 0 || bits == READ || bits == READ | WRITE => Ok(bits),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub(crate) fn physical(handle: CUmemGenericAllocationHandle) -> Id<Physical> {
    Id::from_number(handle)
}

fn is_granular(size: u64) -> bool {
    size != 0 && size.is_multiple_of(GRANULARITY)
}

//! Pools that are shared between processes, and their memory.

use std::ffi::c_void;

use curium_sys::{
    CUdeviceptr, CUmemAllocationHandleType, CUmemPoolHandle_st, CUmemPoolPtrExportData,
    CUmemoryPool, CUresult,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::handle::Id;
use crate::memory::{Foreign, Location, Owner, Pool, Purpose, SharedAllocation};
use crate::result::Result;

const DESCRIPTOR: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

/// The device of a pool of host memory. The simulated machine has one NUMA node.
const HOST: usize = u32::MAX as usize;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemPoolExportToShareableHandle(
        &self,
        exported: Pointer<c_void>,
        pool: Pointer<CUmemPoolHandle_st>,
        handle_type: CUmemAllocationHandleType,
        flags: u64,
    ) -> Result {
        let output = exported.required()?;
        let id = self.pool(pool)?;
        if flags != 0 || handle_type != DESCRIPTOR {
            return Err(INVALID);
        }
        let (handle_types, location) = {
            let records = self.memory().read();
            let pool = records.pools.get(id).ok_or(INVALID)?;
            let location = pool.location.filter(|_| !pool.is_managed);
            (
                pool.handle_types,
                location.ok_or(CUresult::CUDA_ERROR_NOT_SUPPORTED)?,
            )
        };
        if handle_types & handle_type.0 == 0 {
            return Err(INVALID);
        }
        let origin = self
            .memory()
            .sharing()
            .origin(self.thread().serial)
            .ok_or(CUresult::CUDA_ERROR_NOT_SUPPORTED)?;
        let name = SharedAllocation {
            origin,
            offset: 0,
            size: 0,
            device: match location {
                Location::Device(device) => device,
                Location::Host | Location::HostNuma(_) => HOST,
            },
            pool: id.number(),
        };
        // SAFETY: for this type the caller passes a pointer to an `int`.
        unsafe { output.cast::<i32>() }.write(self.memory().sharing().publish(&name)?)?;
        if let Some(pool) = self.memory().write().pools.get_mut(id) {
            pool.is_shared = true;
        }
        Ok(())
    }

    /// Imports from a descriptor, which remains owned by the caller.
    pub(crate) fn cuMemPoolImportFromShareableHandle(
        &self,
        pool: Pointer<CUmemoryPool>,
        exported: Pointer<c_void>,
        handle_type: CUmemAllocationHandleType,
        flags: u64,
    ) -> Result {
        let output = pool.required()?;
        exported.required()?;
        match handle_type {
            _ if flags != 0 => return Err(INVALID),
            DESCRIPTOR => {}
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32
            | CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC => {
                return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
            }
            _ => return Err(INVALID),
        }
        // The pointer contains the number.
        let descriptor = i32::try_from(exported.address()).map_err(|_| INVALID)?;
        let name = self
            .memory()
            .sharing()
            .published(descriptor)
            .ok_or(INVALID)?;
        let location = match name.device {
            HOST => Location::HostNuma(0),
            device if device < self.config().devices as usize => Location::Device(device),
            _ => return Err(CUresult::CUDA_ERROR_INVALID_DEVICE),
        };
        let foreign = Some(Foreign {
            origin: name.origin,
            pool: name.pool,
        });
        let pool = Pool {
            foreign,
            ..Pool::at(Some(location), false)
        };
        output.write(self.memory().write().pools.insert(pool).as_raw())
    }

    pub(crate) fn cuMemPoolExportPointer(
        &self,
        data: Pointer<CUmemPoolPtrExportData>,
        address: CUdeviceptr,
    ) -> Result {
        let output = data.required()?;
        let allocation = self
            .memory()
            .find(address)
            .filter(|allocation| allocation.base == address && !allocation.is_retired);
        let allocation = allocation
            .filter(|allocation| match allocation.purpose {
                Purpose::Pool(pool) | Purpose::HostPool(pool) => {
                    self.memory().pools().is_exported(pool)
                }
                _ => false,
            })
            .ok_or(INVALID)?;
        // Memory of host pools is not in a file that other processes can map.
        if matches!(allocation.purpose, Purpose::HostPool(_)) {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        if self.memory().sharing().is_private(&allocation) {
            drop(self.lock().wait_for_device(allocation.owner.device)?);
        }
        let shared = self
            .memory()
            .sharing()
            .share(&allocation, self.thread().serial)
            .ok_or(CUresult::CUDA_ERROR_NOT_SUPPORTED)?;
        self.memory().record_sharing(allocation.base);
        output.write(CUmemPoolPtrExportData {
            reserved: shared.to_bytes(),
        })
    }

    pub(crate) fn cuMemPoolImportPointer(
        &self,
        address: Pointer<CUdeviceptr>,
        pool: Pointer<CUmemPoolHandle_st>,
        data: Pointer<CUmemPoolPtrExportData>,
    ) -> Result {
        let output = address.required()?;
        let pool = self.pool(pool)?;
        let foreign = self
            .memory()
            .read()
            .pools
            .get(pool)
            .and_then(|pool| pool.foreign);
        let shared = SharedAllocation::from_bytes(&data.read()?.reserved).ok_or(INVALID)?;
        if foreign
            != Some(Foreign {
                origin: shared.origin,
                pool: shared.pool,
            })
        {
            return Err(INVALID);
        }
        // Imported memory belongs to no context.
        let owner = Owner {
            context: Id::from_number(0),
            device: shared.device,
        };
        output.write(self.memory().sharing().open_foreign(shared, owner)?)
    }
}

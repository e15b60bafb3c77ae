//! Pools that are shared between processes, and their memory.

use std::ffi::c_void;

use curium_sys::{
    CUdeviceptr, CUmemAllocationHandleType, CUmemPoolHandle_st, CUmemPoolPtrExportData,
    CUmemoryPool, CUresult,
};

use crate::argument::Pointer;
use crate::driver::{Driver, Result};
use crate::handle::Id;
use crate::memory::{Foreign, Location, Owner, Place, Pool, Purpose};

const DESCRIPTOR: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuMemPoolExportToShareableHandle(
        &self,
        exported: Pointer<c_void>,
        pool: Pointer<CUmemPoolHandle_st>,
        handle_type: CUmemAllocationHandleType,
        flags: u64,
    ) -> Result {
        let place = exported.required()?;
        let id = self.pool(pool)?;
        let (handle_types, device) = {
            let records = self.memory().read();
            let pool = records.pools.get(id).ok_or(INVALID)?;
            (
                pool.handle_types,
                pool.device().ok_or(CUresult::CUDA_ERROR_NOT_SUPPORTED)?,
            )
        };
        if flags != 0 || handle_type != DESCRIPTOR || handle_types & handle_type.0 == 0 {
            return Err(INVALID);
        }
        let origin = self
            .memory()
            .origin(self.serial)
            .ok_or(CUresult::CUDA_ERROR_NOT_SUPPORTED)?;
        let name = Place {
            origin,
            offset: 0,
            size: 0,
            device,
            pool: id.number(),
        };
        // SAFETY: for this type the caller passes a pointer to an `int`.
        unsafe { place.cast::<i32>() }.write(self.memory().publish(&name)?)?;
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
        let place = pool.required()?;
        if flags != 0 || handle_type != DESCRIPTOR {
            return Err(INVALID);
        }
        // The pointer contains the number.
        let descriptor = i32::try_from(exported.address()).map_err(|_| INVALID)?;
        let name = self.memory().published(descriptor).ok_or(INVALID)?;
        if name.device >= self.config().devices as usize {
            return Err(CUresult::CUDA_ERROR_INVALID_DEVICE);
        }
        let foreign = Some(Foreign {
            origin: name.origin,
            pool: name.pool,
        });
        let pool = Pool {
            foreign,
            ..Pool::at(Some(Location::Device(name.device)), false)
        };
        place.write(self.memory().write().pools.insert(pool).as_raw())
    }

    pub(crate) fn cuMemPoolExportPointer(
        &self,
        data: Pointer<CUmemPoolPtrExportData>,
        address: CUdeviceptr,
    ) -> Result {
        let place = data.required()?;
        let found = self
            .memory()
            .find(address)
            .filter(|found| found.base == address && !found.is_retired);
        let found = found
            .filter(|found| self.is_exportable(found.purpose))
            .ok_or(INVALID)?;
        if self.memory().is_private(&found) {
            drop(self.wait_for_device(self.lock(), found.owner.device)?);
        }
        let at = self
            .memory()
            .place_of(&found, self.serial)
            .ok_or(CUresult::CUDA_ERROR_NOT_SUPPORTED)?;
        self.memory().note_shared(found.base);
        place.write(CUmemPoolPtrExportData {
            reserved: at.to_bytes(),
        })
    }

    pub(crate) fn cuMemPoolImportPointer(
        &self,
        address: Pointer<CUdeviceptr>,
        pool: Pointer<CUmemPoolHandle_st>,
        data: Pointer<CUmemPoolPtrExportData>,
    ) -> Result {
        let place = address.required()?;
        let foreign = self
            .memory()
            .read()
            .pools
            .get(self.pool(pool)?)
            .and_then(|pool| pool.foreign);
        let at = Place::from_bytes(&data.read()?.reserved).ok_or(INVALID)?;
        if foreign
            != Some(Foreign {
                origin: at.origin,
                pool: at.pool,
            })
        {
            return Err(INVALID);
        }
        // Imported memory belongs to no context.
        let owner = Owner {
            context: Id::from_number(0),
            device: at.device,
        };
        place.write(self.memory().open_foreign(at, owner)?)
    }
}

impl Driver {
    /// Returns `true` if memory can be exported: its pool was exported before.
    fn is_exportable(&self, purpose: Purpose) -> bool {
        let Purpose::Pool(pool) = purpose else {
            return false;
        };
        self.memory()
            .read()
            .pools
            .get(pool)
            .is_some_and(|pool| pool.is_shared)
    }
}

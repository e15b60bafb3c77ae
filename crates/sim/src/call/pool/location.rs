//! Pools by the location of their memory, and access rights.

use curium_sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationType, CUmemLocation, CUmemLocationType,
    CUmemPoolHandle_st, CUmemoryPool, CUresult,
};

use crate::argument::{ConstPointer, Pointer, elements};
use crate::call::Call;
use crate::call::managed::as_invalid_value;
use crate::driver::pool::PoolLocation;
use crate::memory::Location;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemGetDefaultMemPool(
        &self,
        pool: Pointer<CUmemoryPool>,
        location: Pointer<CUmemLocation>,
        kind: CUmemAllocationType,
    ) -> Result {
        let output = pool.required()?;
        let PoolLocation {
            location,
            is_managed,
        } = self.current_pool_location(&location.read()?, kind)?;
        output.write(
            self.memory()
                .pools()
                .default_pool(location, is_managed)
                .as_raw(),
        )
    }

    pub(crate) fn cuMemGetMemPool(
        &self,
        pool: Pointer<CUmemoryPool>,
        location: Pointer<CUmemLocation>,
        kind: CUmemAllocationType,
    ) -> Result {
        let output = pool.required()?;
        let PoolLocation {
            location,
            is_managed,
        } = self.current_pool_location(&location.read()?, kind)?;
        output.write(
            self.memory()
                .pools()
                .current_pool(location, is_managed)
                .as_raw(),
        )
    }

    pub(crate) fn cuMemSetMemPool(
        &self,
        location: Pointer<CUmemLocation>,
        kind: CUmemAllocationType,
        pool: Pointer<CUmemPoolHandle_st>,
    ) -> Result {
        let location = location.read()?;
        let pool = self.pool(pool)?;
        let PoolLocation {
            location,
            is_managed,
        } = self.current_pool_location(&location, kind)?;
        self.memory()
            .pools()
            .set_current_pool(location, is_managed, pool)
    }

    pub(crate) fn cuMemPoolSetAccess(
        &self,
        pool: Pointer<CUmemPoolHandle_st>,
        rights: ConstPointer<CUmemAccessDesc>,
        count: usize,
    ) -> Result {
        let id = self.pool(pool)?;
        if rights.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: by the contract of the C function, the array has `count` descriptions.
        let rights = unsafe { elements(rights.as_ptr(), count) }?;
        let has_unknown = rights.iter().any(|right| {
            let last = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
            right.location.type_ == CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE
                || right.location.type_.0 > last.0
        });
        let is_on_device = self
            .memory()
            .read()
            .pools
            .get(id)
            .is_some_and(|pool| pool.device().is_some());
        if has_unknown && is_on_device {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let rights = self.access_rights(rights)?;
        let mut records = self.memory().write();
        let pool = records
            .pools
            .get_mut(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if !self.config().has_peers() && matches!(pool.location, Some(Location::Device(_))) {
            let has_peer = rights.iter().any(|(location, _)| {
                matches!(location, Location::Device(_)) && pool.location != Some(*location)
            });
            if has_peer {
                return Err(CUresult::CUDA_ERROR_INVALID_DEVICE);
            }
        }
        for (location, flags) in &rights {
            // The device of a pool keeps its rights, and only devices can be given any.
            let is_rejected = match location {
                Location::Device(_) => pool.location == Some(*location) && *flags != 3,
                Location::Host | Location::HostNuma(_) => true,
            };
            if is_rejected {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
        }
        for (location, flags) in rights {
            pool.set_rights(location, flags);
        }
        Ok(())
    }

    pub(crate) fn cuMemPoolGetAccess(
        &self,
        flags: Pointer<CUmemAccess_flags>,
        pool: Pointer<CUmemPoolHandle_st>,
        location: Pointer<CUmemLocation>,
    ) -> Result {
        let output = flags.required()?;
        let id = self.pool(pool)?;
        let location = self
            .devices()
            .location(&location.read()?)
            .map_err(as_invalid_value)?;
        let records = self.memory().read();
        let pool = records
            .pools
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        output.write(CUmemAccess_flags(pool.rights(location)))
    }
}

impl Call<'_> {
    /// Returns the memory of a current pool. The codes for unknown locations are not those of other
    /// functions.
    fn current_pool_location(
        &self,
        location: &CUmemLocation,
        kind: CUmemAllocationType,
    ) -> Result<PoolLocation> {
        let last = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
        if location.type_.0 > last.0 {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let is_managed = kind == CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED;
        if is_managed && location.type_ == last {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        self.devices()
            .pool_location(location, kind)
            .map_err(as_invalid_value)
    }
}

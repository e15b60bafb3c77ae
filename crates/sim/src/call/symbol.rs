//! Look-up of driver functions by name and version.

use std::ffi::{c_char, c_void};
use std::ptr;

use curium_sys::{
    CUdriverProcAddress_flags, CUdriverProcAddressQueryResult, CUresult, CUuuid, CudaVersion,
    Function,
};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::per_thread;
use crate::result::Result;

/// The flags of `cuGetProcAddress` that choose between functions and their variants.
const LEGACY: u64 = CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_LEGACY_STREAM.0 as u64;

const PER_THREAD: u64 =
    CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.0 as u64;

/// The result of a look-up by name and version.
enum Lookup {
    Found(Function),
    /// The function exists, but every version of it is newer than the requested one.
    TooNew,
    Unknown,
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGetProcAddress(
        &self,
        symbol: ConstPointer<c_char>,
        address: Pointer<*mut c_void>,
        version: i32,
        flags: u64,
    ) -> Result {
        match self.look_up(symbol, address, version, flags)? {
            Lookup::Found(_) => Ok(()),
            Lookup::TooNew | Lookup::Unknown => Err(CUresult::CUDA_ERROR_NOT_FOUND),
        }
    }

    pub(crate) fn cuGetProcAddress_v2(
        &self,
        symbol: ConstPointer<c_char>,
        address: Pointer<*mut c_void>,
        version: i32,
        flags: u64,
        status: Pointer<CUdriverProcAddressQueryResult>,
    ) -> Result {
        if status.is_null() {
            return self.cuGetProcAddress(symbol, address, version, flags);
        }
        status.write(match self.look_up(symbol, address, version, flags)? {
            Lookup::Found(_) => CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS,
            Lookup::TooNew => {
                CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
            }
            Lookup::Unknown => CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
        })
    }

    /// Fails: the private tables of NVIDIA's own libraries are not simulated.
    pub(crate) fn cuGetExportTable(
        &self,
        table: Pointer<*const c_void>,
        _id: ConstPointer<CUuuid>,
    ) -> Result {
        table.write_if_not_null(ptr::null());
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Looks a function up by its unversioned name and writes its address, or null.
    fn look_up(
        &self,
        symbol: ConstPointer<c_char>,
        address: Pointer<*mut c_void>,
        version: i32,
        flags: u64,
    ) -> Result<Lookup> {
        let name = symbol.text()?;
        // As on hardware, a negative version is that of the driver.
        let version = u32::try_from(version).map_or(self.config().driver_version, |version| {
            CudaVersion::from_raw(version)
        });
        let is_known = [0, LEGACY, PER_THREAD].contains(&flags);
        if version > self.config().driver_version || !is_known {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let is_per_thread =
            flags & PER_THREAD != 0 || flags & LEGACY == 0 && per_thread::is_default();
        let lookup = self.newest(name.to_str().unwrap_or_default(), version);
        if address.is_null() && !matches!(lookup, Lookup::Found(_)) {
            return Ok(lookup);
        }
        address.write(match lookup {
            Lookup::Found(function) => self.function_address(function, is_per_thread).cast_mut(),
            Lookup::TooNew | Lookup::Unknown => ptr::null_mut(),
        })?;
        Ok(lookup)
    }

    /// Returns the newest function of this base name that `version` has.
    fn newest(&self, name: &str, version: CudaVersion) -> Lookup {
        let versions: Vec<Function> = Function::all()
            .filter(|function| function.base_name() == name && self.config().has(*function))
            .collect();
        let newest = versions
            .iter()
            .filter(|function| function.since() <= version)
            .max_by_key(|function| function.since());
        match newest {
            Some(function) => Lookup::Found(*function),
            None if versions.is_empty() => Lookup::Unknown,
            None => Lookup::TooNew,
        }
    }
}

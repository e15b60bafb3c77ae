//! Pointer attributes.

mod sharing;

use std::ffi::c_void;
use std::ops::Range;
use std::{ptr, slice};

use curium_driver::sys::{CUdeviceptr, CUmemoryPool, CUmemorytype, CUpointer_attribute, CUresult};
use curium_driver::{Context, DevicePointer, Driver, Result, call};

pub use self::sharing::PointerSharing;

/// The attributes of a pointer to memory that the driver allocated, mapped or registered.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PointerInfo {
    /// The type of memory.
    pub kind: MemoryType,
    /// The address range of the allocation.
    pub range: Range<u64>,
    /// The raw handle of the device on which the memory is located, or for which it was allocated.
    pub device: i32,
    /// The device address.
    pub device_pointer: DevicePointer<u8>,
    /// The host address, if the host can access the memory.
    pub host_address: Option<u64>,
    /// The buffer ID, which is unique within the process.
    pub buffer_id: u64,
    /// `true` for managed memory.
    pub is_managed: bool,
    /// `true` if memory is mapped at the address, `false` if it is only reserved.
    pub is_mapped: bool,
    /// `true` if the memory was allocated from a memory pool.
    pub is_pooled: bool,
}

/// The type of memory at an address (`CUmemorytype`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum MemoryType {
    /// Host memory.
    Host,
    /// Device memory.
    Device,
    /// A CUDA array.
    Array,
    /// Managed memory, for drivers that report it separately.
    Unified,
    /// A type defined by a newer driver.
    Unknown(u32),
}

/// The results of one call as raw values.
#[derive(Default)]
struct Answers {
    kind: u32,
    start: CUdeviceptr,
    size: usize,
    device: i32,
    device_pointer: CUdeviceptr,
    host_pointer: u64,
    buffer_id: u64,
    is_managed: u32,
    is_mapped: u32,
}

impl PointerInfo {
    /// Queries the attributes of `pointer`. Returns `None` for an address that is unknown to the
    /// driver, such as pageable host memory.
    ///
    /// CUDA: `cuPointerGetAttributes`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuPointerGetAttribute")]
    #[doc(alias = "cuPointerGetAttributes")]
    #[doc(alias = "cudaPointerGetAttributes")]
    pub fn of<T>(driver: &Driver, pointer: DevicePointer<T>) -> Result<Option<Self>> {
        Self::at_address(driver, pointer.as_raw())
    }

    pub(crate) fn at_address(driver: &Driver, address: CUdeviceptr) -> Result<Option<Self>> {
        let mut answers = Answers::default();
        answers.query(driver, address)?;
        if answers.kind == 0 {
            return Ok(None);
        }
        let pool = pool_at(driver, address)?;
        Ok(Some(answers.into_info(!pool.is_null())))
    }
}

impl Answers {
    fn query(&mut self, driver: &Driver, address: CUdeviceptr) -> Result<()> {
        use CUpointer_attribute as Attribute;

        let outputs: [(CUpointer_attribute, *mut c_void); 9] = [
            (
                Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                (&raw mut self.kind).cast(),
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                (&raw mut self.start).cast(),
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                (&raw mut self.size).cast(),
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                (&raw mut self.device).cast(),
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                (&raw mut self.device_pointer).cast(),
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER,
                (&raw mut self.host_pointer).cast(),
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID,
                (&raw mut self.buffer_id).cast(),
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
                (&raw mut self.is_managed).cast(),
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_MAPPED,
                (&raw mut self.is_mapped).cast(),
            ),
        ];
        let mut attributes = outputs.map(|(attribute, _)| attribute);
        let mut outputs = outputs.map(|(_, output)| output);
        // SAFETY: each pointer is valid for the type of its attribute.
        unsafe { query(driver, address, &mut attributes, &mut outputs) }
    }

    fn into_info(self, is_pooled: bool) -> PointerInfo {
        PointerInfo {
            kind: MemoryType::from_raw(self.kind),
            range: self.start..self.start.saturating_add(self.size as u64),
            device: self.device,
            device_pointer: DevicePointer::from_raw(self.device_pointer),
            host_address: (self.host_pointer != 0).then_some(self.host_pointer),
            buffer_id: self.buffer_id,
            is_managed: self.is_managed != 0,
            is_mapped: self.is_mapped != 0,
            is_pooled,
        }
    }
}

impl MemoryType {
    fn from_raw(raw: u32) -> Self {
        match CUmemorytype(raw) {
            CUmemorytype::CU_MEMORYTYPE_HOST => Self::Host,
            CUmemorytype::CU_MEMORYTYPE_DEVICE => Self::Device,
            CUmemorytype::CU_MEMORYTYPE_ARRAY => Self::Array,
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => Self::Unified,
            CUmemorytype(other) => Self::Unknown(other),
        }
    }
}

/// Returns the address range of the allocation of `context` that contains `pointer`, or `None` if
/// there is none.
///
/// CUDA: `cuMemGetAddressRange_v2`.
///
/// # Errors
///
/// An error returned by the driver.
#[doc(alias = "cuMemGetAddressRange")]
pub fn address_range<T>(
    context: &Context,
    pointer: DevicePointer<T>,
) -> Result<Option<Range<u64>>> {
    let result = context.entered(|driver| {
        let mut base = 0;
        let mut size = 0;
        let address = pointer.as_raw();
        // SAFETY: both are valid pointers, the driver looks the address up, and the context is
        // current.
        unsafe {
            call!(
                driver,
                cuMemGetAddressRange_v2(&raw mut base, &raw mut size, address)
            )
        }?;
        Ok(base..base + size as u64)
    });
    match result {
        Ok(range) => Ok(Some(range)),
        Err(error) if error.code() == Some(CUresult::CUDA_ERROR_NOT_FOUND) => Ok(None),
        Err(error) => Err(error.about(format!("{pointer:?}"))),
    }
}

/// Sets the attribute `SYNC_MEMOPS` of the allocation that contains `pointer`. If `true`, memory
/// operations on it always synchronize, which GPUDirect RDMA requires. This makes asynchronous
/// copies slow.
///
/// CUDA: `cuPointerSetAttribute`.
///
/// # Errors
///
/// `CUDA_ERROR_INVALID_VALUE` if there is no allocation at the address, or the memory belongs to a
/// pool.
#[doc(alias = "cuPointerSetAttribute")]
pub fn set_sync_memops<T>(
    driver: &Driver,
    pointer: DevicePointer<T>,
    synchronous: bool,
) -> Result<()> {
    let value = i32::from(synchronous);
    let address = pointer.as_raw();
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    // SAFETY: the value has the attribute's type, and the driver validates the address.
    let result = unsafe {
        call!(
            driver,
            cuPointerSetAttribute((&raw const value).cast(), attribute, address)
        )
    };
    result.map_err(|error| error.about(format!("{pointer:?}")))
}

/// Returns the pool from which the memory was allocated, or null.
pub(crate) fn pool_at(driver: &Driver, address: CUdeviceptr) -> Result<CUmemoryPool> {
    let mut pool: CUmemoryPool = ptr::null_mut();
    let mut attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
    let mut output: *mut c_void = (&raw mut pool).cast();
    // SAFETY: the pointer is valid for the type of the attribute.
    unsafe {
        query(
            driver,
            address,
            slice::from_mut(&mut attribute),
            slice::from_mut(&mut output),
        )
    }?;
    Ok(pool)
}

/// Queries attributes of any address. They are zero for an address that is unknown to the driver.
///
/// # Safety
///
/// There are as many pointers as attributes, each valid for writes of the type of its attribute.
unsafe fn query(
    driver: &Driver,
    address: CUdeviceptr,
    attributes: &mut [CUpointer_attribute],
    outputs: &mut [*mut c_void],
) -> Result<()> {
    let count = outputs.len() as u32;
    let attributes = attributes.as_mut_ptr();
    let outputs = outputs.as_mut_ptr();
    // SAFETY: both arrays have this many entries, and the caller guarantees that the pointers are
    // valid.
    let result = unsafe {
        call!(
            driver,
            cuPointerGetAttributes(count, attributes, outputs, address)
        )
    };
    result.map_err(|error| error.about(format!("{address:#x}")))
}

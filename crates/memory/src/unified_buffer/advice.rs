//! Memory advice and prefetch.

use std::borrow::Cow;
use std::ffi::c_void;
use std::ops::RangeBounds;

use curium_driver::extend::NOT_WHILE_CAPTURING;
use curium_driver::hazard::Operation;
use curium_driver::sys::{
    CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemLocation, CUmemLocationType, CUresult,
};
use curium_driver::{
    CudaVersion, Device, DeviceAttribute, DevicePointer, Driver, Error, Function, Result, Stream,
    call,
};

use super::UnifiedBuffer;
use crate::{MemoryLocation, size};

/// Advice about a range of managed memory (`CUmem_advise`). It affects page placement, never
/// contents.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum MemoryAdvice {
    /// The range is mostly read: readers get read-only copies of a page, and a write invalidates
    /// them.
    ReadMostly,
    /// Undoes [`MemoryAdvice::ReadMostly`].
    NotReadMostly,
    /// Pages stay at this location if possible, and other processors access them remotely.
    PreferredLocation(MemoryLocation),
    /// Removes the preferred location.
    NoPreferredLocation,
    /// The range is accessed by this location: it is kept mapped for it, so accesses do not fault.
    AccessedBy(MemoryLocation),
    /// Undoes [`MemoryAdvice::AccessedBy`].
    NotAccessedBy(MemoryLocation),
}

/// Attributes of a range of managed memory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RangeAttributes {
    /// `true` if [`MemoryAdvice::ReadMostly`] is set for all pages.
    pub is_read_mostly: bool,
    /// The preferred location, if it is the same for all pages. Drivers for CUDA 13.0 accept a NUMA
    /// node but report `None` for it.
    pub preferred_location: Option<MemoryLocation>,
    /// The location of the last prefetch, if it is the same for all pages.
    pub last_prefetch_location: Option<MemoryLocation>,
    /// The locations for which [`MemoryAdvice::AccessedBy`] is set for all pages.
    pub accessed_by: Vec<MemoryLocation>,
}

/// `CU_DEVICE_CPU` and `CU_DEVICE_INVALID`.
const HOST: i32 = -1;
const NOWHERE: i32 = -2;

impl<T> UnifiedBuffer<T> {
    /// Prefetches the elements in `range` to `location`, in stream order. Contents do not change.
    ///
    /// CUDA: `cuMemPrefetchAsync_v2`; `cuMemPrefetchAsync` before CUDA 12.2, for devices and the
    /// host only.
    ///
    /// # Errors
    ///
    /// An argument error if the range is reversed or out of bounds.
    #[doc(alias = "cuMemPrefetchAsync")]
    #[doc(alias = "cudaMemPrefetchAsync")]
    pub fn prefetch(
        &self,
        stream: &Stream,
        range: impl RangeBounds<usize>,
        location: MemoryLocation,
    ) -> Result<()> {
        let (address, bytes) = self.byte_range("UnifiedBuffer::prefetch", range)?;
        stream
            .driver()
            .check_same(self.stream().driver(), "UnifiedBuffer::prefetch")?;
        let mut operation = stream.enqueue_uncaptured("UnifiedBuffer::prefetch")?;
        if bytes == 0 {
            return Ok(());
        }
        enqueue_prefetch(&operation, address, bytes, location)?;
        self.parts.origin.after_read(&mut operation);
        Ok(())
    }

    /// Advises the driver about the elements in `range`. Advice applies to whole pages.
    ///
    /// CUDA: `cuMemAdvise_v2`; `cuMemAdvise` before CUDA 12.2, for devices and the host only.
    ///
    /// # Errors
    ///
    /// An argument error if the range is reversed or out of bounds, or within the closure of a
    /// capture.
    #[doc(alias = "cuMemAdvise")]
    #[doc(alias = "cudaMemAdvise")]
    pub fn advise(&self, range: impl RangeBounds<usize>, advice: MemoryAdvice) -> Result<()> {
        const OPERATION: &str = "UnifiedBuffer::advise";
        let (address, bytes) = self.byte_range(OPERATION, range)?;
        self.stream()
            .check_enqueue(OPERATION, NOT_WHILE_CAPTURING)?;
        if bytes == 0 {
            return Ok(());
        }
        let (raw, location) = advice.to_raw();
        let result = self.stream().context().entered(|driver| {
            if driver.has(Function::cuMemAdvise_v2) {
                // SAFETY: the range is in live managed memory, and a context is current.
                return unsafe {
                    call!(
                        driver,
                        cuMemAdvise_v2(address, bytes, raw, location.to_raw())
                    )
                };
            }
            let device = legacy_device(OPERATION, location)?;
            // SAFETY: the range is in live managed memory, and a context is current.
            unsafe { call!(driver, cuMemAdvise(address, bytes, raw, device)) }
        });
        result.map_err(|error| error.about(format!("{bytes} bytes, {advice:?}")))
    }

    /// Queries the attributes of the elements in `range`.
    ///
    /// CUDA: `cuMemRangeGetAttributes`.
    ///
    /// # Errors
    ///
    /// An argument error if the range is empty, reversed or out of bounds.
    #[doc(alias = "cuMemRangeGetAttribute")]
    #[doc(alias = "cudaMemRangeGetAttribute")]
    #[doc(alias = "cuMemRangeGetAttributes")]
    #[doc(alias = "cudaMemRangeGetAttributes")]
    pub fn range_attributes(&self, range: impl RangeBounds<usize>) -> Result<RangeAttributes> {
        const OPERATION: &str = "UnifiedBuffer::range_attributes";
        let (address, bytes) = self.byte_range(OPERATION, range)?;
        if bytes == 0 {
            return Err(Error::argument(OPERATION, "empty range"));
        }
        let driver = self.stream().driver();
        let mut users = vec![NOWHERE; driver.device_count()? + 1];
        let mut numbers = [0_i32; 5];
        let has_types = driver.version() >= CudaVersion::new(12, 2);
        let attributes: &[_] = if has_types { &TYPED } else { &UNTYPED };
        let mut outputs: Vec<*mut c_void> = numbers
            .iter_mut()
            .map(|number| (&raw mut *number).cast())
            .collect();
        outputs.truncate(attributes.len() - 1);
        outputs.push(users.as_mut_ptr().cast());
        let mut sizes = vec![size_of::<i32>(); attributes.len() - 1];
        sizes.push(size_of_val(&users[..]));
        let mut attributes = attributes.to_vec();
        let count = outputs.len();
        let attributes = attributes.as_mut_ptr();
        let outputs = outputs.as_mut_ptr();
        let sizes = sizes.as_mut_ptr();
        self.stream().context().entered(|driver| {
            // SAFETY: the arrays have `count` entries, each pointer is valid for writes of the
            // given size, the range is live managed memory, and a context is current.
            unsafe {
                call!(
                    driver,
                    cuMemRangeGetAttributes(outputs, sizes, attributes, count, address, bytes)
                )
            }
        })?;
        Ok(RangeAttributes::from_raw(has_types, numbers, &users))
    }

    /// Returns the address and size in bytes of a range of elements.
    pub(super) fn byte_range(
        &self,
        operation: &'static str,
        range: impl RangeBounds<usize>,
    ) -> Result<(CUdeviceptr, usize)> {
        let range = size::range(operation, self.len(), range)?;
        let start: DevicePointer<T> = self.parts.pointer.wrapping_add(range.start);
        Ok((start.as_raw(), range.len() * size_of::<T>()))
    }
}

/// The queried attributes; the list of accessing locations is last.
const UNTYPED: [CUmem_range_attribute; 4] = [
    CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
    CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
    CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
    CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
];
const TYPED: [CUmem_range_attribute; 6] = [
    CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
    CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE,
    CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID,
    CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE,
    CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID,
    CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
];

impl RangeAttributes {
    fn from_raw(has_types: bool, numbers: [i32; 5], users: &[i32]) -> Self {
        let [read_mostly, first, second, third, fourth] = numbers;
        let (preferred_location, last_prefetch_location) = if has_types {
            (typed_location(first, second), typed_location(third, fourth))
        } else {
            (legacy_location(first), legacy_location(second))
        };
        let accessed_by = users
            .iter()
            .filter_map(|user| legacy_location(*user))
            .collect();
        Self {
            is_read_mostly: read_mostly != 0,
            preferred_location,
            last_prefetch_location,
            accessed_by,
        }
    }
}

impl MemoryAdvice {
    /// Returns the raw CUDA value. Advice without a location passes the host.
    fn to_raw(self) -> (CUmem_advise, MemoryLocation) {
        let host = MemoryLocation::Host;
        match self {
            Self::ReadMostly => (CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY, host),
            Self::NotReadMostly => (CUmem_advise::CU_MEM_ADVISE_UNSET_READ_MOSTLY, host),
            Self::PreferredLocation(location) => {
                (CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, location)
            }
            Self::NoPreferredLocation => {
                (CUmem_advise::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, host)
            }
            Self::AccessedBy(location) => (CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY, location),
            Self::NotAccessedBy(location) => {
                (CUmem_advise::CU_MEM_ADVISE_UNSET_ACCESSED_BY, location)
            }
        }
    }
}

/// Enqueues a prefetch of live managed memory on `stream`.
pub(super) fn enqueue_prefetch(
    operation: &Operation<'_>,
    address: CUdeviceptr,
    bytes: usize,
    location: MemoryLocation,
) -> Result<()> {
    let driver = operation.driver();
    let raw = operation.raw_stream();
    let result = if driver.has(Function::cuMemPrefetchAsync_v2) {
        // SAFETY: the range is in managed memory that is live until the work has completed, because
        // freeing waits for it.
        unsafe {
            call!(
                driver,
                cuMemPrefetchAsync_v2(address, bytes, location.to_raw(), 0, raw)
            )
        }
    } else {
        let device = legacy_device("UnifiedBuffer::prefetch", location)?;
        // SAFETY: the range is in managed memory that is live until the work has completed, because
        // freeing waits for it.
        unsafe { call!(driver, cuMemPrefetchAsync(address, bytes, device, raw)) }
    };
    result.map_err(|error| {
        let error = error.about(format!("{bytes} bytes to {location}"));
        error.advised(|call| {
            if call.code == CUresult::CUDA_ERROR_INVALID_DEVICE {
                prefetch_advice(driver, location)
            } else {
                None
            }
        })
    })
}

/// Returns advice if the device takes no prefetches.
#[cold]
fn prefetch_advice(driver: &Driver, location: MemoryLocation) -> Option<Cow<'static, str>> {
    let MemoryLocation::Device(id) = location else {
        return None;
    };
    let attribute = DeviceAttribute::CONCURRENT_MANAGED_ACCESS;
    let is_concurrent = Device::from_raw(driver, id)
        .attribute(attribute)
        .unwrap_or(true);
    let advice = "the device has no concurrent managed access, as on Windows, WSL and Jetson: omit the prefetch";
    (!is_concurrent).then(|| advice.into())
}

/// Returns the location for functions before CUDA 12.2.
fn legacy_device(operation: &'static str, location: MemoryLocation) -> Result<i32> {
    match location {
        MemoryLocation::Device(id) => Ok(id),
        MemoryLocation::Host => Ok(HOST),
        other => Err(Error::argument(
            operation,
            format!("unsupported location ({other} needs a driver for CUDA 12.2)"),
        )),
    }
}

fn typed_location(kind: i32, id: i32) -> Option<MemoryLocation> {
    let mut raw = CUmemLocation {
        type_: CUmemLocationType(kind.cast_unsigned()),
        ..CUmemLocation::default()
    };
    raw.__bindgen_anon_1.id = id;
    (kind != 0).then(|| MemoryLocation::from_raw(&raw))
}

fn legacy_location(device: i32) -> Option<MemoryLocation> {
    match device {
        NOWHERE => None,
        HOST => Some(MemoryLocation::Host),
        id => Some(MemoryLocation::Device(id)),
    }
}

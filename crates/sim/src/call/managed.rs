//! The C functions for managed memory.
//!
//! No memory migrates here, since all of it is host memory; advice and prefetches are recorded and
//! reported.

use std::ffi::c_void;

use curium_sys::{
    CUdevice, CUdeviceptr, CUmem_advise, CUmem_range_attribute, CUmemDecompressParams,
    CUmemLocation, CUmemLocationType, CUresult, CUstream_st,
};

use crate::argument::{Pointer, elements};
use crate::call::Call;
use crate::call::stream::check_no_legacy;
use crate::driver::managed::HOST;
use crate::driver::schedule::Work;
use crate::memory::{Advice, PageLocation, Purpose};
use crate::result::Result;

const NOWHERE: i32 = -2;

/// `CU_MEM_ATTACH_GLOBAL`, `CU_MEM_ATTACH_HOST` and `CU_MEM_ATTACH_SINGLE`.
const ATTACH_FLAGS: [u32; 3] = [1, 2, 4];

const ATTACH_SINGLE: u32 = 4;

/// The lists of a batch of ranges, each with the location that it belongs to.
struct Ranges<'a> {
    addresses: &'a [CUdeviceptr],
    sizes: &'a [usize],
    locations: &'a [CUmemLocation],
    firsts: &'a [usize],
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
#[expect(
    clippy::too_many_arguments,
    reason = "the parameters are those of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemAdvise(
        &self,
        address: CUdeviceptr,
        size: usize,
        advice: CUmem_advise,
        device: CUdevice,
    ) -> Result {
        self.require_current()?;
        self.advise(address, size, advice, device_location(device))
    }

    pub(crate) fn cuMemAdvise_v2(
        &self,
        address: CUdeviceptr,
        size: usize,
        advice: CUmem_advise,
        location: CUmemLocation,
    ) -> Result {
        self.require_current()?;
        let advised = self.advise(address, size, advice, page_location(&location));
        advised.map_err(as_invalid_value)
    }

    pub(crate) fn cuMemPrefetchAsync(
        &self,
        address: CUdeviceptr,
        size: usize,
        device: CUdevice,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.prefetch(address, size, device_location(device), stream)
    }

    pub(crate) fn cuMemPrefetchAsync_v2(
        &self,
        address: CUdeviceptr,
        size: usize,
        location: CUmemLocation,
        flags: u32,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.prefetch(address, size, page_location(&location), stream)
    }

    pub(crate) fn cuMemRangeGetAttribute(
        &self,
        data: Pointer<c_void>,
        data_size: usize,
        attribute: CUmem_range_attribute,
        address: CUdeviceptr,
        size: usize,
    ) -> Result {
        let data = data.required()?;
        self.require_current()?;
        write_attribute(
            data,
            data_size,
            attribute,
            &self.memory().advice(address, size as u64)?,
        )
    }

    pub(crate) fn cuMemRangeGetAttributes(
        &self,
        data: Pointer<*mut c_void>,
        sizes: Pointer<usize>,
        attributes: Pointer<CUmem_range_attribute>,
        count: usize,
        address: CUdeviceptr,
        size: usize,
    ) -> Result {
        self.require_current()?;
        if count == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: by the contract of the C function, the array has `count` pointers.
        let outputs = unsafe { elements(data.as_ptr().cast_const(), count) }?;
        // SAFETY: by the contract of the C function, the array has `count` sizes.
        let sizes = unsafe { elements(sizes.as_ptr().cast_const(), count) }?;
        // SAFETY: by the contract of the C function, the array has `count` attributes.
        let attributes = unsafe { elements(attributes.as_ptr().cast_const(), count) }?;
        let advice = self.memory().advice(address, size as u64)?;
        for ((output, data_size), attribute) in outputs.iter().zip(sizes).zip(attributes) {
            // SAFETY: each pointer is to as many bytes as the caller passes for it.
            let output = unsafe { Pointer::from_raw(*output) };
            write_attribute(output.required()?, *data_size, *attribute, &advice)?;
        }
        Ok(())
    }

    pub(crate) fn cuStreamAttachMemAsync(
        &self,
        stream: Pointer<CUstream_st>,
        address: CUdeviceptr,
        size: usize,
        flags: u32,
    ) -> Result {
        self.lock().uncaptured_stream(stream)?;
        let is_single = flags == ATTACH_SINGLE;
        if !ATTACH_FLAGS.contains(&flags) || (is_single && stream.is_null()) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let allocation = self
            .memory()
            .find(address)
            .filter(|allocation| allocation.purpose == Purpose::Managed);
        let is_whole = allocation.is_some_and(|allocation| {
            allocation.base == address && [0, allocation.size].contains(&(size as u64))
        });
        if !is_whole {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.queue_nothing(stream)
    }

    pub(crate) fn cuMemPrefetchBatchAsync(
        &self,
        addresses: Pointer<CUdeviceptr>,
        sizes: Pointer<usize>,
        count: usize,
        locations: Pointer<CUmemLocation>,
        firsts: Pointer<usize>,
        location_count: usize,
        flags: u64,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        check_no_legacy(stream)?;
        self.lock().uncaptured_stream(stream)?;
        let ranges = ranges(
            addresses,
            sizes,
            count,
            LocationList {
                locations,
                firsts,
                count: location_count,
            },
            flags,
        )?;
        ranges.for_each(|address, size, location| {
            self.prefetch(
                address,
                size,
                page_location(location.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?),
                stream,
            )
            .map_err(as_invalid_value)
        })
    }

    pub(crate) fn cuMemDiscardBatchAsync(
        &self,
        addresses: Pointer<CUdeviceptr>,
        sizes: Pointer<usize>,
        count: usize,
        flags: u64,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let no_locations = LocationList {
            locations: Pointer::null(),
            firsts: Pointer::null(),
            count: 0,
        };
        check_no_legacy(stream)?;
        let ranges = ranges(addresses, sizes, count, no_locations, flags)?;
        ranges.for_each(|address, size, _| self.discard(address, size, stream))
    }

    /// Fails: the device has no decompression engine.
    pub(crate) fn cuMemBatchDecompressAsync(
        &self,
        _pieces: Pointer<CUmemDecompressParams>,
        _count: usize,
        _flags: u32,
        failed: Pointer<usize>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        failed.write_if_not_null(usize::MAX);
        self.lock().uncaptured_stream(stream)?;
        Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
    }

    pub(crate) fn cuMemDiscardAndPrefetchBatchAsync(
        &self,
        addresses: Pointer<CUdeviceptr>,
        sizes: Pointer<usize>,
        count: usize,
        locations: Pointer<CUmemLocation>,
        firsts: Pointer<usize>,
        location_count: usize,
        flags: u64,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.cuMemDiscardBatchAsync(addresses, sizes, count, flags, stream)?;
        self.cuMemPrefetchBatchAsync(
            addresses,
            sizes,
            count,
            locations,
            firsts,
            location_count,
            flags,
            stream,
        )
    }
}

impl Call<'_> {
    fn prefetch(
        &self,
        address: CUdeviceptr,
        size: usize,
        location: PageLocation,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.devices().validate_location(location)?;
        if location.0 == CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE
            && !self.config().has_concurrent_managed_access()
        {
            return Err(CUresult::CUDA_ERROR_INVALID_DEVICE);
        }
        self.memory().advise(address, size as u64, |advice| {
            advice.last_prefetch = Some(location);
        })?;
        self.queue_nothing(stream)
    }

    /// Enqueues an operation without effect.
    pub(crate) fn queue_nothing(&self, stream: Pointer<CUstream_st>) -> Result {
        let mut state = self.lock();
        let stream = state.uncaptured_stream(stream)?;
        state.queue(stream, Work::Device(Box::new(|_| Ok(()))));
        Ok(())
    }
}

impl Ranges<'_> {
    fn for_each(
        &self,
        mut operation: impl FnMut(u64, usize, Option<&CUmemLocation>) -> Result,
    ) -> Result {
        for (index, (address, size)) in self.addresses.iter().zip(self.sizes).enumerate() {
            let location = self
                .firsts
                .iter()
                .rposition(|first| *first <= index)
                .map(|first| &self.locations[first]);
            operation(*address, *size, location)?;
        }
        Ok(())
    }
}

/// The locations that a caller passed for ranges.
#[derive(Clone, Copy)]
struct LocationList {
    locations: Pointer<CUmemLocation>,
    /// The first range of each location.
    firsts: Pointer<usize>,
    count: usize,
}

fn ranges<'a>(
    addresses: Pointer<CUdeviceptr>,
    sizes: Pointer<usize>,
    count: usize,
    list: LocationList,
    flags: u64,
) -> Result<Ranges<'a>> {
    if count == 0 || flags != 0 || list.count > count {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let ranges = Ranges {
        // SAFETY: by the contract of the C function, the array has `count` addresses.
        addresses: unsafe { elements(addresses.as_ptr().cast_const(), count) }?,
        // SAFETY: by the contract of the C function, the array has `count` sizes.
        sizes: unsafe { elements(sizes.as_ptr().cast_const(), count) }?,
        // SAFETY: the caller of the C function passes a count of locations.
        locations: unsafe { elements(list.locations.as_ptr().cast_const(), list.count) }?,
        // SAFETY: the caller of the C function passes as many indices as locations.
        firsts: unsafe { elements(list.firsts.as_ptr().cast_const(), list.count) }?,
    };
    let is_ascending = ranges.firsts.windows(2).all(|pair| pair[0] < pair[1]);
    let is_in_bounds = match ranges.firsts {
        [] => true,
        [first, ..] => *first == 0 && ranges.firsts[list.count - 1] < count,
    };
    if is_ascending && is_in_bounds {
        Ok(ranges)
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Returns the location that the older functions specify by a device number.
fn device_location(device: CUdevice) -> PageLocation {
    match device {
        HOST => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0),
        device => (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, device),
    }
}

/// Returns the code for a location whose device does not exist.
pub(crate) fn as_invalid_value(code: CUresult) -> CUresult {
    match code {
        CUresult::CUDA_ERROR_INVALID_DEVICE => CUresult::CUDA_ERROR_INVALID_VALUE,
        code => code,
    }
}

fn page_location(location: &CUmemLocation) -> PageLocation {
    // SAFETY: the union's first member is a number, for which any bytes are valid.
    match (location.type_, unsafe { location.__bindgen_anon_1.id }) {
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id) => device_location(id),
        location => location,
    }
}

/// Returns the location that all parts of a range have in common.
fn common_location(
    parts: &[Advice],
    location: fn(&Advice) -> Option<PageLocation>,
) -> Option<PageLocation> {
    let first = parts.first().and_then(location);
    first.filter(|_| parts.iter().all(|part| location(part) == first))
}

/// Writes the value that is common to all parts of a range.
fn write_attribute(
    data: Pointer<c_void>,
    size: usize,
    attribute: CUmem_range_attribute,
    parts: &[Advice],
) -> Result {
    use CUmem_range_attribute as Attribute;

    let preferred = common_location(parts, |advice| advice.preferred);
    let prefetched = common_location(parts, |advice| advice.last_prefetch);
    let value = match attribute {
        Attribute::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY => {
            i32::from(parts.iter().all(|part| part.is_read_mostly))
        }
        Attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION => location_device(preferred),
        Attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION => location_device(prefetched),
        // As on hardware, a node is accepted as advice and not reported.
        Attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE => location_type(
            preferred
                .filter(|(kind, _)| *kind != CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA),
        ),
        Attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE => location_type(prefetched),
        Attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID => {
            preferred.map_or(0, |(_, id)| id)
        }
        Attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID => {
            prefetched.map_or(0, |(_, id)| id)
        }
        Attribute::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY => {
            return write_accessing_devices(data, size, parts);
        }
        _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    };
    if size != size_of::<i32>() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: by the contract of the C function, the pointer is to `size` bytes, the size of a
    // number.
    unsafe { data.cast::<i32>() }.write(value)
}

/// Writes the devices that access all parts, in ascending order, then the host, and fills the rest
/// of the list.
fn write_accessing_devices(data: Pointer<c_void>, size: usize, parts: &[Advice]) -> Result {
    if size == 0 || !size.is_multiple_of(size_of::<i32>()) {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let mut users = parts
        .first()
        .map(|part| part.accessed_by.clone())
        .unwrap_or_default();
    users.sort_unstable_by_key(|user| (*user == HOST, *user));
    let users = users
        .into_iter()
        .filter(|user| parts.iter().all(|part| part.accessed_by.contains(user)));
    let list = users
        .chain(std::iter::repeat(NOWHERE))
        .take(size / size_of::<i32>());
    // SAFETY: by the contract of the C function, the pointer is to `size` bytes, the size of that
    // many numbers.
    let output = unsafe { data.cast::<i32>() };
    // SAFETY: the list has as many numbers as fit into `size` bytes.
    unsafe { output.write_all(list) }
}

fn location_device(location: Option<PageLocation>) -> i32 {
    match location {
        Some((CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id)) => id,
        Some(_) => HOST,
        None => NOWHERE,
    }
}

fn location_type(location: Option<PageLocation>) -> i32 {
    location
        .map_or(
            CUmemLocationType::CU_MEM_LOCATION_TYPE_INVALID,
            |(kind, _)| kind,
        )
        .0
        .cast_signed()
}

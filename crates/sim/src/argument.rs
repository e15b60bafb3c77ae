//! The arguments of the C functions, as the driver's methods receive them.

use std::ffi::{CStr, c_char};
use std::{fmt, ptr, slice};

use curium_sys::*;

use crate::result::Result;

/// A `T *` that a caller of the C functions passed: null, the address of a `T`, or a handle if `T`
/// is opaque.
///
/// A caller that creates one guarantees the C contract of the function: a pointer that is not null
/// may be read and written as a `T` for the duration of the call. Opaque types have no size, so
/// this implies nothing about the memory behind a handle.
pub(crate) struct Pointer<T>(*mut T);

/// A `const T *` that a caller of the C functions passed: null, or a `T` to read for the duration
/// of the call.
pub(crate) struct ConstPointer<T>(*const T);

impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Pointer<T> {}

impl<T> Clone for ConstPointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ConstPointer<T> {}

impl<T> Pointer<T> {
    pub(crate) const fn null() -> Self {
        Self(ptr::null_mut())
    }

    /// Creates the pointer from a C pointer.
    ///
    /// # Safety
    ///
    /// As for a parameter of this type: the pointer is null, or may be read and written as a `T`
    /// during the call.
    pub(crate) unsafe fn from_raw(pointer: *mut T) -> Self {
        Self(pointer)
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the address. For a handle this is its only content.
    pub(crate) fn address(self) -> u64 {
        self.0.addr() as u64
    }

    pub(crate) fn as_ptr(self) -> *mut T {
        self.0
    }

    /// Returns the pointer, or an error if it is null.
    pub(crate) fn required(self) -> Result<Self> {
        if self.is_null() {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        } else {
            Ok(self)
        }
    }

    /// Writes `value` to the pointer; a null pointer is an invalid value.
    pub(crate) fn write(self, value: T) -> Result {
        let output = self.required()?;
        // SAFETY: the pointer is not null, and the creator of `self` guarantees that it may be
        // written.
        unsafe { output.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes `value` if the pointer is not null.
    pub(crate) fn write_if_not_null(self, value: T) {
        // A null pointer means that the caller does not request the value.
        self.write(value).unwrap_or_default();
    }

    /// Reads the value; a null pointer is an invalid value.
    pub(crate) fn read(self) -> Result<T> {
        let output = self.required()?;
        // SAFETY: the pointer is not null, and the creator of `self` guarantees that it may be
        // read.
        Ok(unsafe { output.0.read_unaligned() })
    }

    /// Writes values to consecutive elements.
    ///
    /// # Safety
    ///
    /// The caller of the C function passed room for all of them, or a null pointer.
    pub(crate) unsafe fn write_all(self, values: impl Iterator<Item = T>) -> Result {
        let first = self.required()?;
        for (index, value) in values.enumerate() {
            // SAFETY: the caller guarantees the capacity.
            let element = unsafe { first.0.add(index) };
            // SAFETY: the caller guarantees that each element may be written.
            unsafe { element.write(value) };
        }
        Ok(())
    }

    /// Casts the pointer to another type.
    ///
    /// # Safety
    ///
    /// The caller of the C function passed a pointer that is null or may be read and written as a
    /// `U`.
    pub(crate) unsafe fn cast<U>(self) -> Pointer<U> {
        Pointer(self.0.cast())
    }

    /// Returns the pointer to the `index`-th of several in a row.
    ///
    /// # Safety
    ///
    /// The caller of the C function passed more than `index` of them, or a null pointer.
    pub(crate) unsafe fn at(self, index: usize) -> Self {
        Self(self.0.wrapping_add(if self.is_null() { 0 } else { index }))
    }
}

impl<T> ConstPointer<T> {
    pub(crate) fn as_ptr(self) -> *const T {
        self.0
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Reads the value; a null pointer is an invalid value.
    pub(crate) fn read(self) -> Result<T> {
        if self.0.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the pointer is not null, and the creator of `self` guarantees that it may be
        // read.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

impl ConstPointer<c_char> {
    /// Returns the text; a null pointer is an invalid value.
    pub(crate) fn text<'a>(self) -> Result<&'a CStr> {
        if self.0.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the pointer is not null, and functions with a `const char *` parameter require
        // NUL-terminated text that is valid for the duration of the call.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }
}

impl Pointer<c_char> {
    /// Writes `text` with a terminating NUL into a buffer of `capacity` bytes, truncating it if
    /// necessary.
    pub(crate) fn write_text(self, text: &str, capacity: i32) -> Result {
        let output = self.required()?;
        let capacity = usize::try_from(capacity)
            .ok()
            .filter(|capacity| *capacity > 0);
        let capacity = capacity.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        // SAFETY: the pointer is not null, and the caller of the C function passed a buffer of
        // `capacity` bytes.
        unsafe { output.fill_with(text, capacity) };
        Ok(())
    }

    /// Writes `text` with a terminating NUL, truncated to `capacity` bytes, and returns its length.
    ///
    /// # Safety
    ///
    /// The buffer holds `capacity` bytes, at least one.
    pub(crate) unsafe fn fill_with(self, text: &str, capacity: usize) -> usize {
        let length = text.len().min(capacity - 1);
        // SAFETY: `length` bytes of `text` fit into the buffer, which the caller of the C function
        // owns.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), self.0.cast(), length) };
        // SAFETY: `length` is below the buffer's capacity.
        let end = unsafe { self.0.add(length) };
        // SAFETY: `end` is within the buffer.
        unsafe { end.write(0) };
        length
    }
}

/// Returns the elements that a pointer and a count describe.
///
/// # Safety
///
/// `first` is null, or points to `count` elements that are not modified for `'a`.
pub(crate) unsafe fn elements<'a, T>(first: *const T, count: usize) -> Result<&'a [T]> {
    match (count, first.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        // SAFETY: the caller guarantees `count` elements at a pointer that is not null.
        _ => Ok(unsafe { slice::from_raw_parts(first, count) }),
    }
}

impl<T> fmt::Debug for Pointer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.0, formatter)
    }
}

/// A type of the C functions' parameters.
pub(crate) trait Argument {
    /// The type that the driver's methods receive.
    type Received;

    /// Converts the argument.
    ///
    /// # Safety
    ///
    /// The value is an argument for which the C contract of its function holds, and it is used
    /// during the call only.
    unsafe fn receive(self) -> Self::Received;
}

impl<T> Argument for *mut T {
    type Received = Pointer<T>;

    unsafe fn receive(self) -> Pointer<T> {
        Pointer(self)
    }
}

impl<T> Argument for *const T {
    type Received = ConstPointer<T>;

    unsafe fn receive(self) -> ConstPointer<T> {
        ConstPointer(self)
    }
}

impl<T> Argument for Option<T> {
    type Received = Self;

    unsafe fn receive(self) -> Self {
        self
    }
}

macro_rules! by_value {
    ($($name:ty)*) => {
        $(
            impl Argument for $name {
                type Received = Self;

                unsafe fn receive(self) -> Self {
                    self
                }
            }
        )*
    };
}

by_value! {
    u8 u16 u32 i32 u64 usize f32
    CUresult CUmemAllocationHandleType CUjitInputType CUfunction_attribute CUdevResourceType CUcoredumpSettings
    CUtensorMapSwizzle CUtensorMapL2promotion CUtensorMapInterleave CUtensorMapFloatOOBfill CUtensorMapDataType
    CUstreamCaptureMode CUmemAllocationType CUfunc_cache CUlaunchAttributeID CUsharedconfig CUpointer_attribute CUmem_advise
    CUmemPool_attribute CUmemLocation CUlogicalEndpointIpcHandleType CUlimit CUipcMemHandle CUgraphMem_attribute CUfilter_mode
    CUexecAffinityType CUarray_format CUtensorMapIm2ColWideMode CUtensorMapAllocClass CUmulticastGranularity_flags
    CUmem_range_attribute CUmemRangeHandleType CUmemAllocationGranularity_flags CUipcEventHandle
    CUGLDeviceList CUeglFrame CUoutput_mode
    CUflushGPUDirectRDMAWritesTarget CUflushGPUDirectRDMAWritesScope CUdevice_attribute CUdevice_P2PAttribute CUaddress_mode
}

//! Mipmapped arrays.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use curium_driver::sys::{CUDA_ARRAY_MEMORY_REQUIREMENTS, CUmipmappedArray};
use curium_driver::{Device, Driver, Error, Result, Returned, Stream, call};

use super::create::described;
use super::{
    Array, ArrayFlags, ArrayHandle, ArrayMemoryRequirements, ArrayShape, Owner, Texel, Uses,
};
use crate::wait;

/// A mipmapped array: each level has half the extents of the previous one. Texture fetches select a
/// level of detail.
pub struct MipmappedArray<T> {
    handle: Arc<MipmappedHandle>,
    shape: ArrayShape,
    flags: ArrayFlags,
    levels: u32,
    _elements: PhantomData<fn() -> T>,
}

/// A mipmapped array of the driver.
pub(crate) struct MipmappedHandle {
    raw: CUmipmappedArray,
    /// The size of the elements of all levels in bytes, without padding.
    bytes: u64,
    uses: Arc<Uses>,
    owner: MipmappedOwner,
}

/// The owner of a mipmapped array's handle.
enum MipmappedOwner {
    /// The handle.
    Handle,
    /// The handle, destroyed before the owner of the memory that holds the elements.
    Shared { _memory: Box<dyn Any + Send + Sync> },
    /// Other code.
    Foreign,
}

// SAFETY: the handle is opaque to the host, and the driver accepts it on any thread.
unsafe impl Send for MipmappedHandle {}
// SAFETY: the handle is opaque to the host, and the driver accepts it on any thread.
unsafe impl Sync for MipmappedHandle {}

impl<T: Texel> MipmappedArray<T> {
    /// Allocates a mipmapped array with `levels` levels and undefined contents. `shape` is the
    /// shape of level 0.
    ///
    /// CUDA: `cuMipmappedArrayCreate`.
    ///
    /// # Errors
    ///
    /// An argument error for a shape without elements, for 0 levels, or for more levels than the
    /// shape allows; otherwise as for [`Array::new`].
    #[doc(alias = "cuMipmappedArrayCreate")]
    #[doc(alias = "cudaMallocMipmappedArray")]
    pub fn new(stream: &Stream, shape: ArrayShape, levels: u32, flags: ArrayFlags) -> Result<Self> {
        check_levels("MipmappedArray::new", shape, levels)?;
        let uses = Uses::new("MipmappedArray::new", stream)?;
        let descriptor = shape.to_raw::<T>(flags);
        let raw = stream.context().entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` and `descriptor` are valid pointers, and the context is current.
            unsafe { call!(driver, cuMipmappedArrayCreate(&raw mut raw, &raw const descriptor, levels) creates raw) }?;
            Ok(raw)
        });
        let raw = raw
            .map_err(|error| error.about(format!("{levels} levels of {shape} of {}", T::FORMAT)))?;
        let bytes = (0..levels)
            .map(|level| (shape.level(level).len() as u64).saturating_mul(size_of::<T>() as u64));
        let handle = MipmappedHandle {
            raw,
            bytes: bytes.sum(),
            uses,
            owner: MipmappedOwner::Handle,
        };
        Ok(Self::from_handle(handle, shape, levels, flags))
    }

    /// Borrows a mipmapped array of `levels` levels that other code owns, such as a graphics
    /// library.
    ///
    /// CUDA: `cuMipmappedArrayGetLevel`, `cuArray3DGetDescriptor_v2`.
    ///
    /// # Safety
    ///
    /// - `raw` is a mipmapped array of the stream's context with `levels` levels that outlives the
    ///   result and its levels.
    /// - Other accesses to it are ordered with those through the result.
    ///
    /// # Errors
    ///
    /// An argument error if the elements are not of type `T`, for 0 levels, or for more levels than
    /// the shape allows.
    pub unsafe fn borrow_raw(stream: &Stream, raw: CUmipmappedArray, levels: u32) -> Result<Self> {
        let mut whole = std::ptr::null_mut();
        // SAFETY: `whole` is a valid pointer, and the caller guarantees that the array is live.
        unsafe {
            call!(stream.driver(), cuMipmappedArrayGetLevel(&raw mut whole, raw, 0) creates whole)
        }?;
        // SAFETY: the caller guarantees that the array is live, and the level with it.
        let (shape, flags) =
            unsafe { described::<T>("MipmappedArray::borrow_raw", stream, whole) }?;
        check_levels("MipmappedArray::borrow_raw", shape, levels)?;
        let handle = MipmappedHandle {
            raw,
            bytes: 0,
            uses: Uses::borrowed(stream),
            owner: MipmappedOwner::Foreign,
        };
        Ok(Self::from_handle(handle, shape, levels, flags))
    }

    /// Takes ownership of the mipmapped array `raw`, whose elements are in memory of other code,
    /// and keeps `memory`, the owner of that memory, until the array is destroyed.
    ///
    /// # Safety
    ///
    /// - `raw` is a mipmapped array of the stream's context with this shape of level 0, these
    ///   levels and flags, and elements of type `T`. No other code destroys it.
    /// - Its elements are valid for as long as `memory` exists.
    /// - Other accesses to them are ordered with those through the result.
    #[must_use]
    pub unsafe fn from_raw_with_owner(
        stream: &Stream,
        raw: CUmipmappedArray,
        shape: ArrayShape,
        levels: u32,
        flags: ArrayFlags,
        memory: impl Any + Send + Sync,
    ) -> Self {
        let handle = MipmappedHandle {
            raw,
            bytes: 0,
            uses: Uses::borrowed(stream),
            owner: MipmappedOwner::Shared {
                _memory: Box::new(memory),
            },
        };
        Self::from_handle(handle, shape, levels, flags)
    }

    fn from_handle(
        handle: MipmappedHandle,
        shape: ArrayShape,
        levels: u32,
        flags: ArrayFlags,
    ) -> Self {
        Self {
            handle: Arc::new(handle),
            shape,
            flags,
            levels,
            _elements: PhantomData,
        }
    }

    /// Returns a level, which keeps the mipmapped array alive. Level 0 has the whole shape.
    ///
    /// CUDA: `cuMipmappedArrayGetLevel`.
    ///
    /// # Errors
    ///
    /// An argument error if `level` is out of bounds.
    #[doc(alias = "cuMipmappedArrayGetLevel")]
    pub fn level(&self, level: u32) -> Result<Array<T>> {
        if level >= self.levels {
            let reason = format!("level {level} of an array of {} levels", self.levels);
            return Err(Error::argument("MipmappedArray::level", reason));
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a valid pointer, and the array is live.
        unsafe {
            call!(self.driver(), cuMipmappedArrayGetLevel(&raw mut raw, self.handle.raw, level) creates raw)
        }?;
        let handle = ArrayHandle {
            raw,
            bytes: 0,
            owner: Owner::Mipmapped {
                _parent: Arc::clone(&self.handle),
            },
        };
        Ok(Array::from_handle(
            handle,
            self.shape.level(level),
            self.flags,
            Arc::clone(&self.handle.uses),
        ))
    }
}

impl<T> MipmappedArray<T> {
    /// Returns the shape of level 0.
    #[must_use]
    pub fn shape(&self) -> ArrayShape {
        self.shape
    }

    /// Returns the flags of the array.
    #[must_use]
    pub fn flags(&self) -> ArrayFlags {
        self.flags
    }

    /// Returns the number of levels.
    #[must_use]
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Returns the stream of the levels.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        self.handle.uses.stream()
    }

    /// Returns the driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        self.stream().driver()
    }

    /// Returns the raw handle without giving up ownership.
    #[must_use]
    pub fn as_raw(&self) -> CUmipmappedArray {
        self.handle.raw
    }

    /// Returns the size and alignment of the memory to map, if the array was created with
    /// [`ArrayFlags::DEFERRED_MAPPING`].
    ///
    /// CUDA: `cuMipmappedArrayGetMemoryRequirements`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for other arrays.
    #[doc(alias = "cuMipmappedArrayGetMemoryRequirements")]
    pub fn memory_requirements(&self, device: &Device) -> Result<ArrayMemoryRequirements> {
        let mut raw = CUDA_ARRAY_MEMORY_REQUIREMENTS::default();
        let array = self.as_raw();
        // SAFETY: `raw` is a valid pointer, the array is live, and the driver only reads the
        // attributes of the device.
        unsafe {
            call!(
                self.driver(),
                cuMipmappedArrayGetMemoryRequirements(&raw mut raw, array, device.as_raw())
            )
        }?;
        Ok(ArrayMemoryRequirements {
            bytes: raw.size,
            alignment: raw.alignment,
        })
    }

    /// Destroys the array, as [`Drop`] does, and returns any error. Waits on the host until all
    /// accesses have completed.
    ///
    /// CUDA: `cuMipmappedArrayDestroy`.
    ///
    /// # Errors
    ///
    /// Returns the array together with the error if a level or a texture of it still exists, or the
    /// driver call fails.
    #[doc(alias = "cuMipmappedArrayDestroy")]
    #[doc(alias = "cudaFreeMipmappedArray")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        let Some(handle) = Arc::get_mut(&mut self.handle) else {
            return Err(Returned::new(
                self,
                Error::argument("MipmappedArray::close", "the array is still in use"),
            ));
        };
        match handle.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(self, error)),
        }
    }

    pub(crate) fn handle(&self) -> &Arc<MipmappedHandle> {
        &self.handle
    }

    pub(crate) fn uses(&self) -> &Arc<Uses> {
        &self.handle.uses
    }
}

impl MipmappedHandle {
    /// Returns the accesses to the array and its levels.
    pub(crate) fn uses(&self) -> &Arc<Uses> {
        &self.uses
    }

    fn destroy(&mut self) -> Result<()> {
        if !self.raw.is_null() && !matches!(self.owner, MipmappedOwner::Foreign) {
            self.uses.synchronize()?;
            // SAFETY: the array is live and idle, and it is not used after this call.
            unsafe {
                call!(
                    self.uses.stream().driver(),
                    cuMipmappedArrayDestroy(self.raw)
                )
            }
            .map_err(|error| {
                error.about_handle(
                    "mipmapped array",
                    self.raw,
                    self.uses.stream().device().as_raw(),
                )
            })?;
            self.raw = std::ptr::null_mut();
        }
        Ok(())
    }
}

/// Returns an argument error of `operation` unless the shape has elements and at least `levels`
/// levels.
pub(crate) fn check_levels(operation: &'static str, shape: ArrayShape, levels: u32) -> Result<()> {
    shape.check(operation)?;
    if (1..=shape.max_levels()).contains(&levels) {
        return Ok(());
    }
    let reason = format!(
        "invalid number of levels ({levels} for a {shape}, allowed: 1 to {})",
        shape.max_levels()
    );
    Err(Error::argument(operation, reason))
}

impl<T> fmt::Debug for MipmappedArray<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(
            formatter,
            "MipmappedArray({} levels of {} of {name})",
            self.levels, self.shape
        )
    }
}

impl Drop for MipmappedHandle {
    fn drop(&mut self) {
        if !self.raw.is_null() && !matches!(self.owner, MipmappedOwner::Foreign) {
            let driver = self.uses.stream().driver().clone();
            let bytes = self.bytes;
            wait::free_or_leak(&driver, bytes, || self.destroy());
        }
    }
}

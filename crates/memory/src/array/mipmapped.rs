//! An image in falling sizes.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use curium_driver::sys::{CUDA_ARRAY_MEMORY_REQUIREMENTS, CUmipmappedArray};
use curium_driver::{Device, Driver, Error, Result, Returned, Stream, call, release};

use super::{Array, ArrayFlags, ArrayHandle, ArrayMemoryRequirements, ArrayShape, Owner, Texel, Uses, described};

/// An array and smaller versions of it: each level has half the extents of the one before. Textures of it are read at the level that
/// fits.
pub struct MipmappedArray<T> {
    handle: Arc<MipmappedHandle>,
    shape: ArrayShape,
    flags: ArrayFlags,
    levels: u32,
    _elements: PhantomData<fn() -> T>,
}

/// The driver's mipmapped array.
pub(crate) struct MipmappedHandle {
    raw: CUmipmappedArray,
    uses: Arc<Uses>,
    owner: MipmappedOwner,
}

/// What ends a mipmapped array.
enum MipmappedOwner {
    /// Its handle.
    Handle,
    /// Its handle, before the memory that the elements lie in, which is another interface's.
    #[cfg(feature = "interop")]
    External { _memory: crate::external::ExternalMemory },
    /// Somebody else.
    Foreign,
}

// SAFETY: the pointer is a name that only the driver looks behind, from any thread.
unsafe impl Send for MipmappedHandle {}
// SAFETY: as for `Send`.
unsafe impl Sync for MipmappedHandle {}

impl<T: Texel> MipmappedArray<T> {
    /// An array of this shape with `levels` levels, that itself included. What it holds is undefined.
    ///
    /// CUDA: `cuMipmappedArrayCreate`.
    ///
    /// # Errors
    ///
    /// An argument error for a shape without elements, for no level, and for more levels than the shape can have; otherwise as for
    /// [`Array::new`].
    #[doc(alias = "cuMipmappedArrayCreate")]
    #[inline]
    pub fn new(stream: &Stream, shape: ArrayShape, levels: u32, flags: ArrayFlags) -> Result<Self> {
        check_levels("MipmappedArray::new", shape, levels)?;
        let (uses, descriptor) = (Uses::new("MipmappedArray::new", stream)?, shape.to_raw::<T>(flags));
        let raw = stream.context().entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` and `descriptor` are valid places, and the context is current.
            unsafe { call!(driver, cuMipmappedArrayCreate(&raw mut raw, &raw const descriptor, levels)) }?;
            Ok(raw)
        });
        let raw = raw.map_err(|error| error.about(format!("{levels} levels of {shape} of {}", T::FORMAT)))?;
        Ok(Self::of(MipmappedHandle { raw, uses, owner: MipmappedOwner::Handle }, (shape, levels, flags)))
    }

    /// A mipmapped array of `levels` levels that was made elsewhere and stays somebody else's, such as one of a graphics library.
    ///
    /// CUDA: `cuMipmappedArrayGetLevel`, `cuArray3DGetDescriptor_v2`.
    ///
    /// # Safety
    ///
    /// - `raw` is a mipmapped array of the stream's context with as many levels, which lives for as long as the result and its levels.
    /// - Uses of it elsewhere are ordered before or after those by the result.
    ///
    /// # Errors
    ///
    /// An argument error if its elements are not of type `T`, and for no level or more than the array can have.
    #[inline]
    pub unsafe fn from_raw_borrowed(stream: &Stream, raw: CUmipmappedArray, levels: u32) -> Result<Self> {
        let mut whole = std::ptr::null_mut();
        // SAFETY: `whole` is a valid place for the answer, and the caller vouches for the array.
        unsafe { call!(stream.driver(), cuMipmappedArrayGetLevel(&raw mut whole, raw, 0)) }?;
        // SAFETY: the caller vouches for the array, whose level lives as long.
        let (shape, flags) = unsafe { described::<T>("MipmappedArray::from_raw_borrowed", stream, whole) }?;
        check_levels("MipmappedArray::from_raw_borrowed", shape, levels)?;
        let handle = MipmappedHandle { raw, uses: Uses::of_another(stream), owner: MipmappedOwner::Foreign };
        Ok(Self::of(handle, (shape, levels, flags)))
    }

    /// The array of `levels` levels that `raw`, which is given away, is in `memory`.
    #[cfg(feature = "interop")]
    #[inline]
    pub(crate) fn in_external(
        stream: &Stream,
        raw: CUmipmappedArray,
        form: (ArrayShape, u32, ArrayFlags),
        memory: crate::external::ExternalMemory,
    ) -> Self {
        let owner = MipmappedOwner::External { _memory: memory };
        Self::of(MipmappedHandle { raw, uses: Uses::of_another(stream), owner }, form)
    }

    #[inline]
    fn of(handle: MipmappedHandle, (shape, levels, flags): (ArrayShape, u32, ArrayFlags)) -> Self {
        Self { handle: Arc::new(handle), shape, flags, levels, _elements: PhantomData }
    }

    /// One level: level 0 has the whole shape. It keeps the mipmapped array alive.
    ///
    /// CUDA: `cuMipmappedArrayGetLevel`.
    ///
    /// # Errors
    ///
    /// An argument error if there is no such level.
    #[doc(alias = "cuMipmappedArrayGetLevel")]
    #[inline]
    pub fn level(&self, level: u32) -> Result<Array<T>> {
        if level >= self.levels {
            let reason = format!("level {level} of an array of {} levels", self.levels);
            return Err(Error::argument("MipmappedArray::level", reason));
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a valid place for the answer, and the array is live.
        unsafe { call!(self.driver(), cuMipmappedArrayGetLevel(&raw mut raw, self.handle.raw, level)) }?;
        let handle = ArrayHandle { raw, owner: Owner::Mipmapped { _parent: Arc::clone(&self.handle) } };
        Ok(Array::of(handle, self.shape.level(level), self.flags, Arc::clone(&self.handle.uses)))
    }
}

impl<T> MipmappedArray<T> {
    /// The extents of level 0.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> ArrayShape {
        self.shape
    }

    /// The flags that the array was made with.
    #[must_use]
    #[inline]
    pub fn flags(&self) -> ArrayFlags {
        self.flags
    }

    /// The number of levels.
    #[must_use]
    #[inline]
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// The stream that the levels copy on.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.handle.uses.stream()
    }

    /// The driver.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        self.stream().driver()
    }

    /// The driver's handle, which stays this value's.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUmipmappedArray {
        self.handle.raw
    }

    /// The memory that the array wants, if it was made with [`ArrayFlags::DEFERRED_MAPPING`].
    ///
    /// CUDA: `cuMipmappedArrayGetMemoryRequirements`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for other arrays.
    #[doc(alias = "cuMipmappedArrayGetMemoryRequirements")]
    #[inline]
    pub fn memory_requirements(&self, device: &Device) -> Result<ArrayMemoryRequirements> {
        let mut raw = CUDA_ARRAY_MEMORY_REQUIREMENTS::default();
        let array = self.as_raw();
        // SAFETY: `raw` is a valid place, the array is live, and the device is only looked up.
        unsafe { call!(self.driver(), cuMipmappedArrayGetMemoryRequirements(&raw mut raw, array, device.as_raw())) }?;
        Ok(ArrayMemoryRequirements { bytes: raw.size, alignment: raw.alignment })
    }

    /// Ends the array, which [`Drop`] does as well, and says whether it succeeded. Waits on the host for every use.
    ///
    /// CUDA: `cuMipmappedArrayDestroy`.
    ///
    /// # Errors
    ///
    /// Gives the array back if one of its levels or a texture of it is left, or if the driver refuses.
    #[doc(alias = "cuMipmappedArrayDestroy")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        let Some(handle) = Arc::get_mut(&mut self.handle) else {
            return Err(Returned::new(self, Error::argument("MipmappedArray::close", "the array is still in use")));
        };
        match handle.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(self, error)),
        }
    }

    #[inline]
    pub(crate) fn handle(&self) -> &Arc<MipmappedHandle> {
        &self.handle
    }

    #[inline]
    pub(crate) fn uses(&self) -> &Arc<Uses> {
        &self.handle.uses
    }
}

impl MipmappedHandle {
    /// Who uses the array, or any level of it.
    #[inline]
    pub(crate) fn uses(&self) -> &Arc<Uses> {
        &self.uses
    }

    #[inline]
    fn destroy(&mut self) -> Result<()> {
        if !self.raw.is_null() && !matches!(self.owner, MipmappedOwner::Foreign) {
            self.uses.synchronize()?;
            // SAFETY: the array is live and idle, and is forgotten once it is destroyed.
            unsafe { call!(self.uses.stream().driver(), cuMipmappedArrayDestroy(self.raw)) }?;
            self.raw = std::ptr::null_mut();
        }
        Ok(())
    }
}

/// An argument error of `operation` unless the shape has elements and so many levels.
#[inline]
pub(crate) fn check_levels(operation: &'static str, shape: ArrayShape, levels: u32) -> Result<()> {
    shape.check(operation)?;
    if (1..=shape.max_levels()).contains(&levels) {
        return Ok(());
    }
    let reason = format!("{levels} levels of {shape}; there may be 1 to {}", shape.max_levels());
    Err(Error::argument(operation, reason))
}

impl<T> fmt::Debug for MipmappedArray<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(formatter, "MipmappedArray({} levels of {} of {name})", self.levels, self.shape)
    }
}

impl Drop for MipmappedHandle {
    #[inline]
    fn drop(&mut self) {
        release(|| self.destroy());
    }
}

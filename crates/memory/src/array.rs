//! Arrays: device memory whose layout is the device's own, for textures and surfaces.

mod array_copy;
mod batch;
mod copy;
mod mipmapped;
mod region;
mod shape;
mod sparse;
mod texel;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use curium_driver::hazard::{AccessGuard, Accesses};
use curium_driver::sys::{CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY3D_DESCRIPTOR, CUarray};
use curium_driver::{Device, Driver, Error, Result, Returned, Stream, call, release};

pub use self::mipmapped::MipmappedArray;
pub(crate) use self::mipmapped::MipmappedHandle;
#[cfg(feature = "interop")]
pub(crate) use self::mipmapped::check_levels;
pub use self::region::ArrayRegion;
pub use self::shape::{ArrayFlags, ArrayKind, ArrayShape};
pub use self::sparse::{SparseProperties, TileMapping, TileMemory};
pub use self::texel::{ArrayFormat, Texel};

/// Elements in rows and layers whose place in memory only the device knows. Kernels reach them by [textures](crate::Texture) and
/// [surfaces](crate::Surface), and copies by their coordinates.
///
/// Textures and surfaces share the array, so that everything here takes `&self`; what must be waited for on other streams is waited
/// for by streams. If two threads put work on one array at the same time and one of the works writes, it is not determined which is
/// first, nor what is read: any element is a valid value.
pub struct Array<T> {
    handle: Arc<ArrayHandle>,
    shape: ArrayShape,
    flags: ArrayFlags,
    uses: Arc<Uses>,
    _elements: PhantomData<fn() -> T>,
}

/// Who uses an array, or any level of a mipmapped one. Every write counts as one of a part, so that threads which use it at the same time
/// need no lock.
pub(crate) struct Uses {
    stream: Stream,
    accesses: Accesses,
}

/// The driver's array.
pub(crate) struct ArrayHandle {
    raw: CUarray,
    owner: Owner,
}

/// What ends an array.
enum Owner {
    /// Its handle, when every use is done.
    Handle(Arc<Uses>),
    /// The mipmapped array that it is a level of.
    Mipmapped { _parent: Arc<MipmappedHandle> },
    /// Somebody else.
    Foreign,
}

/// The memory that an array wants that gets its memory later.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ArrayMemoryRequirements {
    /// The bytes.
    pub bytes: usize,
    /// What their place in physical memory is a multiple of.
    pub alignment: usize,
}

// SAFETY: the pointer is a name that only the driver looks behind, from any thread.
unsafe impl Send for ArrayHandle {}
// SAFETY: as for `Send`.
unsafe impl Sync for ArrayHandle {}

impl<T: Texel> Array<T> {
    /// An array of this shape. What it holds is undefined. It copies on `stream` and ends when every use of it is done.
    ///
    /// CUDA: `cuArray3DCreate_v2`.
    ///
    /// # Errors
    ///
    /// An argument error for an extent of 0 and for cubes that are none; `CUDA_ERROR_INVALID_VALUE` beyond what the device allows;
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "cuArrayCreate")]
    #[doc(alias = "cuArray3DCreate")]
    #[inline]
    pub fn new(stream: &Stream, shape: ArrayShape, flags: ArrayFlags) -> Result<Self> {
        shape.check("Array::new")?;
        let (uses, descriptor) = (Uses::new("Array::new", stream)?, shape.to_raw::<T>(flags));
        let raw = stream.context().entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` and `descriptor` are valid places, and the context is current.
            unsafe { call!(driver, cuArray3DCreate_v2(&raw mut raw, &raw const descriptor)) }?;
            Ok(raw)
        });
        let raw = raw.map_err(|error| error.about(format!("{shape} of {}", T::FORMAT)))?;
        let handle = ArrayHandle { raw, owner: Owner::Handle(Arc::clone(&uses)) };
        Ok(Self::of(handle, shape, flags, uses))
    }

    /// An array with the elements of `source`, in the order of [`Array::copy_from_slice`]. Waits until the copy is done.
    ///
    /// CUDA: `cuArray3DCreate_v2`, `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`Array::new`] and [`Array::copy_from_slice`].
    #[inline]
    pub fn from_slice(stream: &Stream, shape: ArrayShape, flags: ArrayFlags, source: &[T]) -> Result<Self> {
        let array = Self::new(stream, shape, flags)?;
        array.copy_from_slice(source)?;
        Ok(array)
    }

    /// An array that was made elsewhere and stays somebody else's, such as one of a graphics library.
    ///
    /// CUDA: `cuArray3DGetDescriptor_v2`.
    ///
    /// # Safety
    ///
    /// - `raw` is an array of the stream's context that lives for as long as the result.
    /// - Uses of it elsewhere are ordered before or after those by the result.
    ///
    /// # Errors
    ///
    /// An argument error if its elements are not of type `T`.
    #[inline]
    pub unsafe fn from_raw_borrowed(stream: &Stream, raw: CUarray) -> Result<Self> {
        // SAFETY: the caller vouches for the array.
        let (shape, flags) = unsafe { described::<T>("Array::from_raw_borrowed", stream, raw) }?;
        let handle = ArrayHandle { raw, owner: Owner::Foreign };
        Ok(Self::of(handle, shape, flags, Uses::of_another(stream)))
    }

    #[inline]
    fn of(handle: ArrayHandle, shape: ArrayShape, flags: ArrayFlags, uses: Arc<Uses>) -> Self {
        Self { handle: Arc::new(handle), shape, flags, uses, _elements: PhantomData }
    }
}

impl<T> Array<T> {
    /// The extents.
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

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Whether there is no element, which is never so.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The stream that the array copies on.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.uses.stream
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
    pub fn as_raw(&self) -> CUarray {
        self.handle.raw
    }

    /// The memory that the array wants, if it was made with [`ArrayFlags::DEFERRED_MAPPING`].
    ///
    /// CUDA: `cuArrayGetMemoryRequirements`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for other arrays.
    #[doc(alias = "cuArrayGetMemoryRequirements")]
    #[inline]
    pub fn memory_requirements(&self, device: &Device) -> Result<ArrayMemoryRequirements> {
        let mut raw = CUDA_ARRAY_MEMORY_REQUIREMENTS::default();
        let array = self.as_raw();
        // SAFETY: `raw` is a valid place, the array is live, and the device is only looked up.
        unsafe { call!(self.driver(), cuArrayGetMemoryRequirements(&raw mut raw, array, device.as_raw())) }?;
        Ok(ArrayMemoryRequirements { bytes: raw.size, alignment: raw.alignment })
    }

    /// Ends the array, which [`Drop`] does as well, and says whether it succeeded. Waits on the host for every use.
    ///
    /// CUDA: `cuArrayDestroy`.
    ///
    /// # Errors
    ///
    /// Gives the array back if a graph uses it, or if the driver refuses.
    #[doc(alias = "cuArrayDestroy")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        let Some(handle) = Arc::get_mut(&mut self.handle) else {
            return Err(Returned::new(self, Error::argument("Array::close", "the array is still in use")));
        };
        match handle.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(self, error)),
        }
    }

    /// The driver's array.
    #[inline]
    pub(crate) fn handle(&self) -> &Arc<ArrayHandle> {
        &self.handle
    }

    /// Who uses the array.
    #[inline]
    pub(crate) fn uses(&self) -> &Arc<Uses> {
        &self.uses
    }
}

impl Uses {
    /// The uses of an array that graphs may keep.
    #[inline]
    pub(crate) fn new(operation: &'static str, stream: &Stream) -> Result<Arc<Self>> {
        if stream.is_created_by_capture() {
            let reason = "the stream is one of a capture, whose graph cannot own an array: make it on another";
            return Err(Error::argument(operation, reason));
        }
        Ok(Arc::new(Self { stream: stream.clone(), accesses: Accesses::leasable(stream) }))
    }

    /// The uses of an array that is somebody else's, and that no graph can keep.
    #[inline]
    fn of_another(stream: &Stream) -> Arc<Self> {
        Arc::new(Self { stream: stream.clone(), accesses: Accesses::allocated(stream) })
    }

    #[inline]
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Has `enqueue` put a read on `stream`.
    #[inline]
    pub(crate) fn read(&self, stream: &Stream, enqueue: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut guard = AccessGuard::new(stream)?;
        self.accesses.before_read(&mut guard)?;
        enqueue()?;
        self.accesses.after_read(&mut guard);
        Ok(())
    }

    /// Has `enqueue` put a write on `stream`.
    #[inline]
    pub(crate) fn write(&self, stream: &Stream, enqueue: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut guard = AccessGuard::new(stream)?;
        self.accesses.before_write(&mut guard)?;
        enqueue()?;
        self.accesses.after_partial_write(&mut guard);
        Ok(())
    }

    /// Orders the guard's stream after what a read must wait for.
    #[inline]
    pub(crate) fn before_read(&self, guard: &mut AccessGuard<'_>) -> Result<()> {
        self.accesses.before_read(guard)
    }

    #[inline]
    pub(crate) fn after_read(&self, guard: &mut AccessGuard<'_>) {
        self.accesses.after_read(guard);
    }

    #[inline]
    pub(crate) fn before_write(&self, guard: &mut AccessGuard<'_>) -> Result<()> {
        self.accesses.before_write(guard)
    }

    #[inline]
    pub(crate) fn after_write(&self, guard: &mut AccessGuard<'_>) {
        self.accesses.after_partial_write(guard);
    }

    /// Waits on the host until every use is done.
    #[inline]
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.accesses.synchronize()
    }
}

impl ArrayHandle {
    #[inline]
    fn destroy(&mut self) -> Result<()> {
        if let (Owner::Handle(uses), false) = (&self.owner, self.raw.is_null()) {
            uses.synchronize()?;
            // SAFETY: the array is live and idle, and is forgotten once it is destroyed.
            unsafe { call!(uses.stream.driver(), cuArrayDestroy(self.raw)) }?;
            self.raw = std::ptr::null_mut();
        }
        Ok(())
    }
}

/// What the driver says of an array whose elements are to be of type `T`; an argument error of `operation` if they are not.
///
/// # Safety
///
/// `raw` is an array of the stream's context.
#[inline]
unsafe fn described<T: Texel>(
    operation: &'static str,
    stream: &Stream,
    raw: CUarray,
) -> Result<(ArrayShape, ArrayFlags)> {
    let mut descriptor = CUDA_ARRAY3D_DESCRIPTOR::default();
    // SAFETY: `descriptor` is a valid place, and the caller vouches for the array.
    unsafe { call!(stream.driver(), cuArray3DGetDescriptor_v2(&raw mut descriptor, raw)) }?;
    let (shape, flags, format) = ArrayShape::from_raw(&descriptor);
    if format != T::FORMAT {
        let reason = format!("the array has elements of {format}, and not of {}", T::FORMAT);
        return Err(Error::argument(operation, reason));
    }
    Ok((shape, flags))
}

impl<T> AsRef<Driver> for Array<T> {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl<T> fmt::Debug for Array<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Array({} of {}, {:?})", self.shape, std::any::type_name::<T>(), self.as_raw())
    }
}

impl Drop for ArrayHandle {
    #[inline]
    fn drop(&mut self) {
        release(|| self.destroy());
    }
}

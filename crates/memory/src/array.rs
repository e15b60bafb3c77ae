//! CUDA arrays.

// In a group of its own, so that the page of the type begins with the constructors.
mod create;

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

use curium_driver::hazard::{Accesses, Operation};
use curium_driver::sys::{CUDA_ARRAY_MEMORY_REQUIREMENTS, CUarray};
use curium_driver::{Device, Driver, Error, Result, Returned, Stream, call};

use crate::wait;

pub use self::mipmapped::MipmappedArray;
pub(crate) use self::mipmapped::MipmappedHandle;
pub(crate) use self::mipmapped::check_levels;
pub use self::region::ArrayRegion;
pub use self::shape::{ArrayFlags, ArrayKind, ArrayShape};
pub use self::sparse::{SparseProperties, TileMapping, TileMemory};
pub use self::texel::{ArrayFormat, Texel};

/// A CUDA array: elements in device memory with an opaque layout. Kernels access it through
/// [textures](crate::Texture) and [surfaces](crate::Surface); copies address it by coordinates.
///
/// Textures and surfaces share the array, so all operations take `&self`. Conflicting accesses on
/// different streams are ordered on the device. If two threads enqueue conflicting work
/// concurrently, the order of the two is unspecified. This is sound because every bit pattern is a
/// valid element.
pub struct Array<T> {
    handle: Arc<ArrayHandle>,
    shape: ArrayShape,
    flags: ArrayFlags,
    uses: Arc<Uses>,
    /// The stream of the operations.
    stream: Stream,
    _elements: PhantomData<fn() -> T>,
}

/// The accesses to an array, or to all levels of a mipmapped array. Every write counts as a partial
/// write, so concurrent threads need no lock.
pub(crate) struct Uses {
    stream: Stream,
    accesses: Accesses,
}

/// An array of the driver.
pub(crate) struct ArrayHandle {
    raw: CUarray,
    /// The size of its elements in bytes, without padding.
    bytes: u64,
    owner: Owner,
}

/// The owner of an array's handle.
enum Owner {
    /// The handle, destroyed after the last access.
    Handle(Arc<Uses>),
    /// The mipmapped array of which this is a level.
    Mipmapped { _parent: Arc<MipmappedHandle> },
    /// Other code.
    Foreign,
}

/// The memory requirements of an array with deferred mapping.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ArrayMemoryRequirements {
    /// The size in bytes.
    pub bytes: usize,
    /// The required alignment in bytes.
    pub alignment: usize,
}

// SAFETY: the handle is opaque to the host, and the driver accepts it on any thread.
unsafe impl Send for ArrayHandle {}
// SAFETY: the handle is opaque to the host, and the driver accepts it on any thread.
unsafe impl Sync for ArrayHandle {}

impl<T> Array<T> {
    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> ArrayShape {
        self.shape
    }

    /// Returns the flags of the array.
    #[must_use]
    pub fn flags(&self) -> ArrayFlags {
        self.flags
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Returns `false`: there is at least one element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the stream of the operations on this value: that of [`Array::on`], or else the one
    /// on which the array was created.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns another handle to the same array, whose operations use `stream`. A conflicting
    /// access on another stream is waited for on the device.
    ///
    /// Inside a [capture closure](curium_driver::Graph::capture), `stream` is the capture scope.
    #[must_use]
    pub fn on(&self, stream: &Stream) -> Self {
        Self {
            handle: Arc::clone(&self.handle),
            shape: self.shape,
            flags: self.flags,
            uses: Arc::clone(&self.uses),
            stream: stream.clone(),
            _elements: PhantomData,
        }
    }

    /// Returns the driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        self.uses.stream.driver()
    }

    /// Returns the raw handle without giving up ownership.
    #[must_use]
    pub fn as_raw(&self) -> CUarray {
        self.handle.raw
    }

    /// Returns the size and alignment of the memory to map, if the array was created with
    /// [`ArrayFlags::DEFERRED_MAPPING`].
    ///
    /// CUDA: `cuArrayGetMemoryRequirements`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for other arrays.
    #[doc(alias = "cuArrayGetMemoryRequirements")]
    pub fn memory_requirements(&self, device: &Device) -> Result<ArrayMemoryRequirements> {
        let mut raw = CUDA_ARRAY_MEMORY_REQUIREMENTS::default();
        let array = self.as_raw();
        // SAFETY: `raw` is a valid pointer, the array is live, and the driver only reads the
        // attributes of the device.
        unsafe {
            call!(
                self.driver(),
                cuArrayGetMemoryRequirements(&raw mut raw, array, device.as_raw())
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
    /// CUDA: `cuArrayDestroy`.
    ///
    /// # Errors
    ///
    /// Returns the array together with the error if a graph uses it or the driver fails.
    #[doc(alias = "cuArrayDestroy")]
    #[doc(alias = "cudaFreeArray")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        let Some(handle) = Arc::get_mut(&mut self.handle) else {
            return Err(Returned::new(
                self,
                Error::argument("Array::close", "the array is still in use"),
            ));
        };
        match handle.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(self, error)),
        }
    }

    /// Returns the handle of the array.
    pub(crate) fn handle(&self) -> &Arc<ArrayHandle> {
        &self.handle
    }

    /// Returns the accesses to the array.
    pub(crate) fn uses(&self) -> &Arc<Uses> {
        &self.uses
    }
}

impl Uses {
    /// Creates the accesses of an array that graphs can keep.
    pub(crate) fn new(operation: &'static str, stream: &Stream) -> Result<Arc<Self>> {
        if stream.is_created_by_capture() {
            let reason = "the stream is being captured, and a graph cannot own an array; create it on another stream";
            return Err(Error::argument(operation, reason));
        }
        Ok(Arc::new(Self {
            stream: stream.clone(),
            accesses: Accesses::leasable(stream),
        }))
    }

    /// Creates the accesses of a borrowed array, which graphs cannot keep.
    fn borrowed(stream: &Stream) -> Arc<Self> {
        Arc::new(Self {
            stream: stream.clone(),
            accesses: Accesses::allocated(stream),
        })
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Calls `enqueue` to enqueue a write.
    pub(crate) fn write(
        &self,
        mut operation: Operation<'_>,
        enqueue: impl FnOnce(&Operation<'_>) -> Result<()>,
    ) -> Result<()> {
        self.before_write(&mut operation)?;
        enqueue(&operation)?;
        self.after_write(&mut operation);
        Ok(())
    }

    /// Makes the operation's stream wait for the accesses that a read must wait for.
    pub(crate) fn before_read(&self, operation: &mut Operation<'_>) -> Result<()> {
        self.accesses
            .before_read(operation)
            .map_err(|error| error.during(operation.name()))
    }

    pub(crate) fn after_read(&self, operation: &mut Operation<'_>) {
        self.accesses.after_read(operation);
    }

    pub(crate) fn before_write(&self, operation: &mut Operation<'_>) -> Result<()> {
        self.accesses
            .before_write(operation)
            .map_err(|error| error.during(operation.name()))
    }

    pub(crate) fn after_write(&self, operation: &mut Operation<'_>) {
        self.accesses.after_partial_write(operation);
    }

    /// Waits on the host until every access has completed.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.accesses.synchronize()
    }
}

impl ArrayHandle {
    fn destroy(&mut self) -> Result<()> {
        if let (Owner::Handle(uses), false) = (&self.owner, self.raw.is_null()) {
            uses.synchronize()?;
            // SAFETY: the array is live and idle, and it is not used after this call.
            unsafe { call!(uses.stream.driver(), cuArrayDestroy(self.raw)) }.map_err(|error| {
                error.about_handle("array", self.raw, uses.stream.device().as_raw())
            })?;
            self.raw = std::ptr::null_mut();
        }
        Ok(())
    }
}

impl<T> AsRef<Driver> for Array<T> {
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl<T> fmt::Debug for Array<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Array({} of {}, {:?})",
            self.shape,
            std::any::type_name::<T>(),
            self.as_raw()
        )
    }
}

impl Drop for ArrayHandle {
    fn drop(&mut self) {
        if let (Owner::Handle(uses), false) = (&self.owner, self.raw.is_null()) {
            let driver = uses.stream.driver().clone();
            let bytes = self.bytes;
            wait::free_or_leak(&driver, bytes, || self.destroy());
        }
    }
}

//! The representation of slices: an address, a length, and the origin of the memory.
//!
//! A buffer embeds [`Parts`] with its [`Tracked`] inline. A view embeds [`Parts`] that point to the
//! [`Tracked`] of the buffer that it borrows. A reference to either converts to a reference to
//! [`DeviceSlice`](super::DeviceSlice), which is `Parts` whose origin is a trait object.

use std::marker::PhantomData;
use std::ptr::NonNull;

use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{DevicePointer, Result, Stream};

use super::names::Names;
use crate::tracked::Tracked;

/// Elements in device-accessible memory, and the origin of the memory: [`Tracked`] in a buffer,
/// [`Borrowed`] in a view.
#[repr(C)]
pub(crate) struct Parts<T, K: ?Sized = Tracked> {
    pub(crate) pointer: DevicePointer<T>,
    pub(crate) len: usize,
    _elements: PhantomData<T>,
    pub(crate) origin: K,
}

/// The origin of the memory of a slice.
pub(crate) trait Origin: Send + Sync + Unpin {
    /// Returns the accesses to the memory.
    fn tracked(&self) -> &Tracked;

    /// Returns the accesses, the stream and the names of an operation on the slice.
    fn resolve(&self) -> Resolved<'_>;
}

/// The accesses to the memory of a slice, and the stream and the names of an operation on it.
#[derive(Clone, Copy)]
pub(crate) struct Resolved<'a> {
    pub(crate) tracked: &'a Tracked,
    /// The stream of the operation.
    pub(crate) stream: &'a Stream,
    /// The names of the operations.
    pub(crate) names: &'static Names,
}

/// A kind of buffers, by the name of its operations in errors.
pub(crate) trait Owner: 'static {
    const NAMES: &'static Names;
}

/// The [`Tracked`] of a buffer of the kind `O`.
#[repr(transparent)]
pub(crate) struct Owned<O> {
    tracked: Tracked,
    _owner: PhantomData<fn() -> O>,
}

/// The origin of a view: the [`Tracked`] of the borrowed memory, and the stream of the view's
/// operations.
///
/// Only [`DeviceView`](super::DeviceView) and [`DeviceViewMut`](super::DeviceViewMut) contain it,
/// with the lifetime of the references that it was made from.
#[derive(Clone, Copy)]
pub(crate) struct Borrowed {
    tracked: NonNull<Tracked>,
    stream: NonNull<Stream>,
    names: &'static Names,
}

impl<T, K> Parts<T, K> {
    #[inline]
    pub(crate) const fn new(pointer: DevicePointer<T>, len: usize, origin: K) -> Self {
        Self {
            pointer,
            len,
            _elements: PhantomData,
            origin,
        }
    }

    /// Returns the size of the elements in bytes.
    #[inline]
    pub(crate) const fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T, K: Copy> Clone for Parts<T, K> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, K: Copy> Copy for Parts<T, K> {}

/// The accesses of a kernel that receives the memory of a whole buffer.
impl<T> Parts<T> {
    /// Makes the operation's stream wait for the accesses that conflict with a read, and returns
    /// the address.
    #[inline]
    pub(crate) fn bind_read(&self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
        let address = self.pointer.as_raw();
        self.origin.before_kernel_read(operation, address)?;
        Ok(address)
    }

    /// Makes the operation's stream wait for the accesses that conflict with a write, and returns
    /// the address.
    #[inline]
    pub(crate) fn bind_write(&mut self, operation: &mut Operation<'_>) -> Result<CUdeviceptr> {
        let address = self.pointer.as_raw();
        self.origin.before_kernel_write(operation, address)?;
        Ok(address)
    }

    /// Records an enqueued write of the whole buffer: later accesses need to wait for this one
    /// only.
    #[inline]
    pub(crate) fn after_whole_write(&mut self, operation: &mut Operation<'_>) {
        self.origin.exclusive().after_write(operation);
    }
}

impl<O: Owner> Origin for Owned<O> {
    #[inline]
    fn tracked(&self) -> &Tracked {
        &self.tracked
    }

    #[inline]
    fn resolve(&self) -> Resolved<'_> {
        Resolved {
            tracked: &self.tracked,
            stream: self.tracked.stream(),
            names: O::NAMES,
        }
    }
}

impl Borrowed {
    #[inline]
    pub(crate) fn new(origin: Resolved<'_>) -> Self {
        Self {
            tracked: NonNull::from(origin.tracked),
            stream: NonNull::from(origin.stream),
            names: origin.names,
        }
    }

    /// Returns the references that the origin was made from.
    ///
    /// # Safety
    ///
    /// `'a` is within the lifetime of these references.
    #[inline]
    pub(crate) unsafe fn get<'a>(self) -> Resolved<'a> {
        Resolved {
            // SAFETY: the pointer was a reference, whose lifetime has not ended, as the caller
            // guarantees.
            tracked: unsafe { self.tracked.as_ref() },
            // SAFETY: the pointer was a reference, whose lifetime has not ended, as the caller
            // guarantees.
            stream: unsafe { self.stream.as_ref() },
            names: self.names,
        }
    }
}

impl Origin for Borrowed {
    #[inline]
    fn tracked(&self) -> &Tracked {
        self.resolve().tracked
    }

    #[inline]
    fn resolve(&self) -> Resolved<'_> {
        // SAFETY: a reference to `self` is a reference into a view, which does not outlive the
        // references that it was made from.
        unsafe { self.get() }
    }
}

// SAFETY: the pointers stand for shared references to types that are `Sync`, as the next function
// requires.
unsafe impl Send for Borrowed {}
// SAFETY: the pointers stand for shared references to types that are `Sync`, as the next function
// requires.
unsafe impl Sync for Borrowed {}

const fn expect_sync<T: Sync>() {}
const _: () = expect_sync::<Tracked>();
const _: () = expect_sync::<Stream>();

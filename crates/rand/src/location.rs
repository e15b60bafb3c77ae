//! The location of a generator: a device, on one stream, or the host.

use std::sync::Arc;

use curium_driver::{Argument, Stream};
use curium_memory::{DeviceSlice, LibraryMemory};

use crate::error::{ArgumentError, Result};

/// The location of a [`Generator`](crate::Generator) that runs on a device, on one stream.
#[derive(Debug)]
pub struct Device {
    pub(crate) stream: Stream,
    /// The state of the generator, which the library allocates.
    pub(crate) state: LibraryMemory,
}

/// The location of a [`Generator`](crate::Generator) that runs on the host, on the calling thread.
#[derive(Debug)]
pub struct Host;

/// The location of a generator: [`Device`] or [`Host`]. It cannot be implemented for other types.
pub trait Location: sealed::Location {
    /// The memory that a generator fills at this location: [`DeviceSlice`], to which device buffers
    /// dereference, or a slice of the host.
    type Memory<T>: ?Sized;
}

impl Location for Device {
    type Memory<T> = DeviceSlice<T>;
}

impl Location for Host {
    type Memory<T> = [T];
}

impl Device {
    pub(crate) fn new(stream: &Stream) -> Self {
        Self {
            stream: stream.clone(),
            state: LibraryMemory::opaque(stream),
        }
    }
}

impl sealed::Location for Device {
    fn configure<K: Send + Sync + 'static>(
        &mut self,
        name: &'static str,
        handle: &Arc<K>,
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut operation = self.stream.enqueue_uncaptured(name)?;
        // The library may allocate the state again, and the nodes of a graph contain its address.
        if Arc::strong_count(handle) > 1 {
            let problem = "a graph uses the state of the generator; drop the graph first, or create another generator";
            return Err(ArgumentError::refused(name, problem));
        }
        // SAFETY: `launched` follows the call.
        unsafe { self.state.bind(&mut operation) }?;
        let called = call();
        // A failure may come after some work was enqueued.
        // SAFETY: `bind` succeeded with this operation.
        unsafe { self.state.launched(&mut operation) };
        called
    }

    // As for `Generator::fill`.
    #[inline(always)]
    fn fill<T, K: Send + Sync + 'static>(
        &mut self,
        name: &'static str,
        mut output: &mut DeviceSlice<T>,
        handle: &Arc<K>,
        check: impl FnOnce(usize) -> Result<()>,
        call: impl FnOnce(*mut T, usize) -> Result<()>,
    ) -> Result<()> {
        let len = output.len();
        check(len)?;
        let instead = "move the generator to the capture scope with `set_stream`";
        let mut operation = self.stream.enqueue_or(name, instead)?;
        if len == 0 {
            return Ok(());
        }
        operation.keep(handle);
        // SAFETY: `launched` follows the call.
        unsafe { self.state.bind(&mut operation) }?;
        // SAFETY: `launched` follows the call.
        let address = unsafe { Argument::<&mut [T]>::bind(&mut output, &mut operation) }?;
        let called = call(std::ptr::without_provenance_mut(address as usize), len);
        // A failure may come after some work was enqueued.
        // SAFETY: `bind` succeeded with this operation.
        unsafe { self.state.launched(&mut operation) };
        // SAFETY: `bind` succeeded with this operation.
        unsafe { Argument::<&mut [T]>::launched(&mut output, &mut operation) };
        called
    }
}

impl sealed::Location for Host {
    fn configure<K: Send + Sync + 'static>(
        &mut self,
        _name: &'static str,
        _handle: &Arc<K>,
        call: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        call()
    }

    fn fill<T, K: Send + Sync + 'static>(
        &mut self,
        _name: &'static str,
        output: &mut [T],
        _handle: &Arc<K>,
        check: impl FnOnce(usize) -> Result<()>,
        call: impl FnOnce(*mut T, usize) -> Result<()>,
    ) -> Result<()> {
        check(output.len())?;
        if output.is_empty() {
            return Ok(());
        }
        call(output.as_mut_ptr(), output.len())
    }
}

pub(crate) mod sealed {
    use super::{Arc, Result};

    /// The operations on a generator at a location.
    pub trait Location: Sized {
        /// Calls a function that writes the state of the generator, between the waits for the
        /// accesses to the state and the record of this one. Returns an error in a capture.
        fn configure<K: Send + Sync + 'static>(
            &mut self,
            name: &'static str,
            handle: &Arc<K>,
            call: impl FnOnce() -> Result<()>,
        ) -> Result<()>;

        /// Passes the number of elements to `check`, and the address and this number to `call`,
        /// unless it is 0. The call is made between the waits for the accesses to the memory and to
        /// the state, and the records of these. A graph that captures the call keeps `handle`.
        fn fill<T, K: Send + Sync + 'static>(
            &mut self,
            name: &'static str,
            output: &mut <Self as super::Location>::Memory<T>,
            handle: &Arc<K>,
            check: impl FnOnce(usize) -> Result<()>,
            call: impl FnOnce(*mut T, usize) -> Result<()>,
        ) -> Result<()>
        where
            Self: super::Location;
    }
}

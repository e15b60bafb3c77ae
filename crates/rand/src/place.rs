//! The location of a generator: a device, on one stream, or the host.

use std::sync::Arc;

use curium_driver::hazard::AccessGuard;
use curium_driver::{Argument, Stream};
use curium_memory::AsDeviceSliceMut;

use crate::error::Result;

/// The location of a [`Generator`](crate::Generator) that runs on a device, on one stream.
#[derive(Debug)]
pub struct Device {
    pub(crate) stream: Stream,
}

/// The location of a [`Generator`](crate::Generator) that runs on the host, on the calling thread.
#[derive(Debug)]
pub struct Host;

/// Memory that a generator with the location `P` can fill: device memory, or a slice of the host.
pub trait Output<P>: sealed::Write<P, Self::Element> {
    /// The type of the numbers.
    type Element;
}

impl<M: AsDeviceSliceMut> Output<Device> for M {
    type Element = M::Element;
}

impl<M: AsDeviceSliceMut> sealed::Write<Device, M::Element> for M {
    fn count(&self) -> usize {
        self.as_device_slice().len()
    }

    // As for `Generator::fill`.
    #[inline(always)]
    fn write<K: Send + Sync + 'static>(
        &mut self,
        place: &Device,
        kept: &Arc<K>,
        call: impl FnOnce(*mut M::Element) -> Result<()>,
    ) -> Result<()> {
        let mut guard = AccessGuard::new(&place.stream)?;
        guard.keep(kept);
        let mut slice = self.as_device_slice_mut();
        // SAFETY: `launched` follows the call.
        let address = unsafe { Argument::<&mut [M::Element]>::bind(&mut slice, &mut guard) }?;
        let called = call(std::ptr::without_provenance_mut(address as usize));
        // A failure may come after some work was enqueued.
        // SAFETY: `bind` succeeded with this guard.
        unsafe { Argument::<&mut [M::Element]>::launched(&mut slice, &mut guard) };
        called
    }
}

impl<T> Output<Host> for [T] {
    type Element = T;
}

impl<T> sealed::Write<Host, T> for [T] {
    fn count(&self) -> usize {
        self.len()
    }

    fn write<K: Send + Sync + 'static>(
        &mut self,
        _place: &Host,
        _kept: &Arc<K>,
        call: impl FnOnce(*mut T) -> Result<()>,
    ) -> Result<()> {
        call(self.as_mut_ptr())
    }
}

mod sealed {
    use super::{Arc, Result};

    pub trait Write<P, T> {
        /// Returns the number of elements.
        fn count(&self) -> usize;

        /// Passes the address of the memory to `call`, between the waits for its accesses and the record of this one. A graph that
        /// captures the call keeps `kept`.
        fn write<K: Send + Sync + 'static>(
            &mut self,
            place: &P,
            kept: &Arc<K>,
            call: impl FnOnce(*mut T) -> Result<()>,
        ) -> Result<()>;
    }
}

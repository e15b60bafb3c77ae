//! Arrays of pointers in device memory, which batched operations read.

use std::collections::VecDeque;

use curium_driver::Stream;
use curium_driver::sys::CUdeviceptr;
use curium_memory::copy::{self, Pending};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};

use crate::error::Result;

/// The pinned memory through which arrays of pointers are copied without blocking the host.
#[derive(Debug, Default)]
pub(super) struct PointerStaging {
    /// The copies in the order in which they were enqueued.
    copies: VecDeque<Pending<u64>>,
}

/// The maximum number of copies in progress. If it is reached, the host waits for the oldest copy.
const MAX_COPIES: usize = 8;

/// The minimum capacity of an allocation, in pointers.
const MIN_POINTERS: usize = 64;

impl PointerStaging {
    /// Allocates device memory on `stream` and enqueues a copy of `addresses` to it. Waits only if
    /// many earlier copies have not completed.
    ///
    /// In a capture, the graph owns the device memory and the addresses.
    pub(super) fn upload(
        &mut self,
        stream: &Stream,
        addresses: &[CUdeviceptr],
    ) -> Result<DeviceBuffer<u64>> {
        if stream.is_capture_active() {
            return Ok(DeviceBuffer::from_slice(stream, addresses)?);
        }
        let mut host = self.memory_for(stream, addresses.len())?;
        host[..addresses.len()].copy_from_slice(addresses);
        let mut device = DeviceBuffer::uninit(stream, host.len())?;
        self.copies.push_back(
            copy::upload(stream, host, &mut device).map_err(curium_driver::Error::from)?,
        );
        Ok(device)
    }

    /// Returns pinned memory for at least `len` pointers: that of a copy that has completed, if it
    /// suffices.
    fn memory_for(&mut self, stream: &Stream, len: usize) -> Result<PinnedBuffer<u64>> {
        let is_full = self.copies.len() >= MAX_COPIES;
        if let Some(first) = self.copies.front()
            && (is_full || first.is_finished()?)
            && let Some(first) = self.copies.pop_front()
        {
            let host = first.wait().map_err(curium_driver::Error::from)?;
            if host.len() >= len {
                return Ok(host);
            }
        }
        let len = len.next_power_of_two().max(MIN_POINTERS);
        Ok(PinnedBuffer::zeroed(
            stream.context(),
            len,
            PinnedFlags::empty(),
        )?)
    }
}

impl Drop for PointerStaging {
    fn drop(&mut self) {
        for copy in self.copies.drain(..) {
            // Dropping a copy waits for it.
            if !copy.is_finished().unwrap_or(false) {
                copy.detach();
            }
        }
    }
}

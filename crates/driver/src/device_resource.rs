//! Device resources that green contexts partition: multiprocessors and work queues.

mod multiprocessors;
mod work_queue;

use std::fmt;

use curium_sys::{CUdevResource, CUdevResourceType};

pub use self::multiprocessors::{Multiprocessors, Partition, Partitioning, SplitFlags};
pub use self::work_queue::{WorkQueue, WorkQueueConfig, WorkQueueScope};
use crate::AsRawStream as _;
use crate::call;
use crate::{Context, Device, Result, Stream};

/// The driver's description of a resource: plain data that only the driver interprets.
#[derive(Clone, Copy)]
pub(crate) struct Description(CUdevResource);

// SAFETY: the only pointer in a description is dereferenced by the driver alone, and the functions
// that read descriptions may be called from any thread.
unsafe impl Send for Description {}
// SAFETY: the only pointer in a description is dereferenced by the driver alone, and the functions
// that read descriptions may be called from any thread; a description is never modified through a
// shared reference.
unsafe impl Sync for Description {}

impl Description {
    /// Queries a resource of this type.
    fn query(
        kind: CUdevResourceType,
        query: impl FnOnce(*mut CUdevResource, CUdevResourceType) -> Result<()>,
    ) -> Result<Self> {
        let mut raw = CUdevResource::default();
        query(&raw mut raw, kind)?;
        Ok(Self(raw))
    }

    pub(crate) fn raw(&self) -> CUdevResource {
        self.0
    }

    fn for_device(device: &Device, kind: CUdevResourceType) -> Result<Self> {
        Self::query(kind, |place, kind| {
            // SAFETY: `place` is valid for writes.
            unsafe {
                call!(
                    device.driver(),
                    cuDeviceGetDevResource(device.as_raw(), place, kind)
                )
            }
        })
    }

    fn for_context(context: &Context, kind: CUdevResourceType) -> Result<Self> {
        if let Some(green) = context.green_raw() {
            return Self::query(kind, |place, kind| {
                // SAFETY: `place` is valid for writes, and the context is live.
                unsafe {
                    call!(
                        context.driver(),
                        cuGreenCtxGetDevResource(green, place, kind)
                    )
                }
            });
        }
        Self::query(kind, |place, kind| {
            // SAFETY: `place` is valid for writes, and the context is live.
            unsafe {
                call!(
                    context.driver(),
                    cuCtxGetDevResource(context.as_raw(), place, kind)
                )
            }
        })
    }

    fn for_stream(stream: &Stream, kind: CUdevResourceType) -> Result<Self> {
        Self::query(kind, |place, kind| {
            // SAFETY: `place` is valid for writes, and the stream is live.
            unsafe {
                call!(
                    stream.driver(),
                    cuStreamGetDevResource(stream.as_raw(), place, kind)
                )
            }
        })
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Description(type {})", self.0.type_.0)
    }
}

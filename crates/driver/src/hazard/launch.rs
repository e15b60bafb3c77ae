//! The memory that an executable graph leases, and its launches.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::thread;

use super::lease::{LAUNCH, Lease};
use super::lease_lock::{LaunchRecord, Launches, launch_holding};
use super::sync_point::StreamPoint;
use super::thread_state::{Ordering, check_idle, is_ordering};
use crate::{Result, Stream, emit_event};

/// The leases of an executable graph, without duplicates, and its launches.
pub(crate) struct LaunchLeases {
    /// Sorted by the address of the allocation's lock.
    leases: Box<[Lease]>,
    /// The latest launch is ordered after all earlier ones.
    record: Arc<LaunchRecord<StreamPoint>>,
}

impl LaunchLeases {
    pub(crate) fn new(leases: impl Iterator<Item = Lease>) -> Self {
        let mut leases: Box<[_]> = leases.collect();
        leases.sort_unstable_by_key(Lease::key);
        let record = Arc::new(Launches::recorded(leases.len()));
        Self { leases, record }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Enqueues `launch` on `stream` as an access to all leased memory.
    #[inline]
    pub(crate) fn launch(
        &self,
        stream: &Stream,
        launch: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        check_idle(LAUNCH)?;
        let mut launches = self.record.lock();
        if launches.missing.is_empty()
            && launches
                .latest
                .as_ref()
                .is_some_and(|latest| latest.stream == *stream)
        {
            return enqueue(&mut launches, launch);
        }
        drop(launches);
        self.launch_on_other(stream, launch)
    }

    /// Launches after making the stream wait for other accesses.
    #[cold]
    #[inline(never)]
    fn launch_on_other(&self, stream: &Stream, launch: impl FnOnce() -> Result<()>) -> Result<()> {
        self.follow(stream)?;
        launch_holding(
            &self.record,
            &self.leases,
            |lease, history, others| lease.order_launch(history, others, stream),
            |launches| enqueue(launches, launch),
        )
    }

    /// Makes `stream` wait for the previous launches, so that one point in it covers them all.
    fn follow(&self, stream: &Stream) -> Result<()> {
        let mut launches = self.record.lock();
        let is_ordered = match &launches.latest {
            Some(latest) => latest.wait(stream, None)?,
            None => true,
        };
        if !is_ordered {
            // Both streams are in a capture of other code: only the logs of the allocations can
            // distinguish the launches.
            drop(launches);
            self.release_all();
            launches = self.record.lock();
        }
        launches.latest = Some(StreamPoint::now(stream));
        Ok(())
    }

    /// Drops the leases on a thread that can wait for the locks of this one.
    #[cold]
    fn drop_elsewhere(&mut self) {
        let leases = ManuallyDrop::new(std::mem::take(self));
        let thread = thread::Builder::new().name("curium-leases".to_owned());
        let spawned = thread.spawn(|| drop(ManuallyDrop::into_inner(leases)));
        if let Err(error) = spawned {
            // Memory whose launches cannot be recorded is never freed.
            emit_event!(ERROR, %error, "leaked the memory of a graph that a call observer dropped during another access");
        }
    }

    /// Records the launches in the logs of all allocations.
    fn release_all(&self) {
        for lease in &self.leases {
            lease.leased.lock.release_holder(&self.record);
        }
    }
}

#[inline]
fn enqueue(
    launches: &mut Launches<StreamPoint>,
    launch: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let _ordering = Ordering::begin();
    launch()?;
    if let Some(latest) = &mut launches.latest {
        latest.sync_points = latest.stream.sync_points().count();
    }
    Ok(())
}

impl Default for LaunchLeases {
    fn default() -> Self {
        Self::new(std::iter::empty())
    }
}

impl Drop for LaunchLeases {
    #[inline]
    fn drop(&mut self) {
        if self.is_empty() {
            return;
        }
        if is_ordering() {
            // A call observer drops the executable graph while its thread holds locks that are
            // needed here.
            self.drop_elsewhere();
        } else {
            self.release_all();
        }
    }
}

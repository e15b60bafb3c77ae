//! Streams.

use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::CUstream_st;

use crate::context::Context;
use crate::context::stream_attribute::Attributes;
use crate::context::ticket::Ticket;
use crate::handle::{Id, Kind, Object};

/// A queue of work that runs in order.
pub(crate) struct Stream {
    pub(crate) context: Id<Context>,
    pub(crate) class: Class,
    /// `true` if a caller created it; default streams belong to their context.
    pub(crate) is_created: bool,
    pub(crate) priority: i32,
    pub(crate) number: u64,
    /// The last work in the queue.
    pub(crate) tail: Option<Ticket>,
    pub(crate) attributes: Attributes,
}

/// The synchronization between a stream and the legacy default stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Class {
    /// The legacy default stream of a context.
    Legacy,
    Blocking,
    NonBlocking,
}

impl Object for Stream {
    type Raw = CUstream_st;
    const KIND: Kind = Kind::Stream;
}

pub(crate) const LEAST_PRIORITY: i32 = 0;

pub(crate) const GREATEST_PRIORITY: i32 = -5;

impl Stream {
    /// The range of priorities: the least and the greatest.
    pub(crate) const PRIORITIES: (i32, i32) = (LEAST_PRIORITY, GREATEST_PRIORITY);

    pub(crate) fn new_default(context: Id<Context>, class: Class, number: u64) -> Self {
        Self {
            context,
            class,
            is_created: false,
            priority: LEAST_PRIORITY,
            number,
            tail: None,
            attributes: Attributes::default(),
        }
    }
}

/// Returns a unique number of the calling thread.
pub(crate) fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // The number has no destructor, so it exists as long as the thread.
    NUMBER.with(|number| *number)
}

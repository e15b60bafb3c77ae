//! Streams.

use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::CUstream_st;

use crate::context::Context;
use crate::context::stream_attribute::Attributes;
use crate::context::ticket::Ticket;
use crate::handle::{Id, Kind, Object};

/// A queue of work that runs in order.
pub(crate) struct Stream {
    context: Id<Context>,
    class: Class,
    /// `true` if a caller created it; default streams belong to their context.
    is_created: bool,
    priority: i32,
    number: u64,
    /// The last work in the queue.
    tail: Option<Ticket>,
    attributes: Attributes,
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

    /// Creates a stream for a caller.
    pub(crate) fn new(context: Id<Context>, class: Class, priority: i32, number: u64) -> Self {
        Self {
            context,
            class,
            is_created: true,
            priority,
            number,
            tail: None,
            attributes: Attributes::default(),
        }
    }

    /// Creates a default stream, which belongs to its context.
    pub(crate) fn new_default(context: Id<Context>, class: Class, number: u64) -> Self {
        Self {
            is_created: false,
            ..Self::new(context, class, LEAST_PRIORITY, number)
        }
    }

    pub(crate) fn context(&self) -> Id<Context> {
        self.context
    }

    pub(crate) fn class(&self) -> Class {
        self.class
    }

    /// Returns `true` if a caller created it.
    pub(crate) fn is_created(&self) -> bool {
        self.is_created
    }

    pub(crate) fn priority(&self) -> i32 {
        self.priority
    }

    pub(crate) fn set_priority(&mut self, priority: i32) {
        self.priority = priority;
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the last work in the queue.
    pub(crate) fn tail(&self) -> Option<Ticket> {
        self.tail
    }

    /// Makes an operation the last one.
    pub(crate) fn append(&mut self, ticket: Ticket) {
        self.tail = Some(ticket);
    }

    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub(crate) fn attributes_mut(&mut self) -> &mut Attributes {
        &mut self.attributes
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

//! Interprocess events: their handles, which only other processes may open, and their records.

use std::sync::Arc;

use crate::memory::SharedRecords;
use crate::object::event::INTERPROCESS;

/// The records of an event that are visible to other processes.
pub(crate) struct Shared {
    pub(crate) records: Arc<SharedRecords>,
    /// The number of the last record of this process.
    pub(crate) own_records: u64,
}

/// A record of another process.
#[derive(Clone)]
pub(crate) struct RemoteRecord {
    pub(crate) records: Arc<SharedRecords>,
    number: u64,
}

impl Shared {
    /// Creates the shared part of an event with these flags; `None` without the interprocess flag.
    pub(crate) fn from_flags(flags: u32) -> Option<Self> {
        let records = (flags & INTERPROCESS != 0).then(|| SharedRecords::new().ok())??;
        Some(Self {
            records: Arc::new(records),
            own_records: 0,
        })
    }

    /// Begins a record of this process, which must be completed.
    pub(crate) fn begin(&mut self) -> RemoteRecord {
        self.own_records = self.records.begin();
        RemoteRecord {
            records: Arc::clone(&self.records),
            number: self.own_records,
        }
    }

    /// Returns the last record if it is pending in another process.
    pub(crate) fn pending_remote(&self) -> Option<RemoteRecord> {
        let number = self.records.last();
        let is_pending = number > self.own_records && !self.records.is_done(number);
        is_pending.then(|| RemoteRecord {
            records: Arc::clone(&self.records),
            number,
        })
    }
}

impl RemoteRecord {
    /// Marks the record as completed for other processes.
    pub(crate) fn finish(&self) {
        self.records.finish(self.number);
    }

    pub(crate) fn is_done(&self) -> bool {
        self.records.is_done(self.number)
    }
}

//! The memory that nodes of graphs access.

use crate::object::copy::AccessedRange;
use crate::object::graph::content::Content;
use crate::object::graph::plan::{Plan, Step};

impl Plan {
    pub(crate) fn enabled(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.is_enabled)
    }
}

impl Content {
    /// Returns the addresses that the node certainly accesses. Those of a kernel are unknown.
    pub(crate) fn touched(&self) -> Vec<AccessedRange> {
        match self {
            Self::Copy(copy) => copy.touched(),
            Self::Set(set) => vec![set.touched()],
            Self::Batch(batch) => batch.touched(),
            Self::Library(operation) => operation.touched(),
            _ => Vec::new(),
        }
    }
}

//! The numbers of calls of a driver.

use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::Function;

/// The number of calls of each function.
pub(crate) struct CallCounts {
    /// Boxed, because Miri visits each counter of a borrowed driver.
    functions: Box<[Counts]>,
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    unsupported: AtomicU64,
}

impl CallCounts {
    pub(crate) fn new() -> Self {
        Self {
            functions: Function::all().map(|_| Counts::default()).collect(),
        }
    }

    pub(crate) fn add(&self, function: Function) {
        let counts = &self.functions[function.index()];
        counts.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call of a function that the driver does not implement.
    pub(crate) fn add_unsupported(&self, function: Function) {
        let counts = &self.functions[function.index()];
        counts.unsupported.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of calls of a function.
    pub(crate) fn calls(&self, function: Function) -> u64 {
        self.functions[function.index()]
            .calls
            .load(Ordering::Relaxed)
    }

    /// Returns the functions that were called, each with its number of calls.
    pub(crate) fn called(&self) -> Vec<(Function, u64)> {
        Function::all()
            .map(|function| (function, self.calls(function)))
            .filter(|(_, calls)| *calls > 0)
            .collect()
    }

    /// Returns the functions that were called and are not implemented, each with its number of
    /// calls.
    pub(crate) fn unsupported(&self) -> Vec<(Function, u64)> {
        Function::all()
            .map(|function| (function, &self.functions[function.index()].unsupported))
            .map(|(function, calls)| (function, calls.load(Ordering::Relaxed)))
            .filter(|(_, calls)| *calls > 0)
            .collect()
    }
}

//! What a program has done with the driver.

use std::fmt;

use curium_sys::Function;

use crate::exec::Fault;
use crate::live::LiveHandles;

/// What a program has done with a simulator so far.
///
/// Its text has a line for each function, fault and kind of handle, for people and for `grep`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// The functions that were called, with how often.
    pub calls: Vec<(Function, u64)>,
    /// The functions that were called and are not implemented, with how often.
    pub unsupported: Vec<(Function, u64)>,
    /// What stopped kernels, oldest first.
    pub kernel_faults: Vec<Fault>,
    /// What has been created and not yet destroyed.
    pub live: LiveHandles,
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.calls.iter().map(|(_, calls)| calls).sum();
        writeln!(formatter, "{total} calls of {} functions", self.calls.len())?;
        for (function, calls) in &self.calls {
            writeln!(formatter, "called {function}: {calls}")?;
        }
        for (function, calls) in &self.unsupported {
            writeln!(formatter, "unsupported {function}: {calls}")?;
        }
        for fault in &self.kernel_faults {
            writeln!(formatter, "fault {fault}")?;
        }
        for (kind, count) in self.live.counts().into_iter().filter(|(_, count)| *count > 0) {
            writeln!(formatter, "live {kind}: {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_a_line_for_each_thing_that_happened() {
        let summary = Summary {
            calls: vec![(Function::cuInit, 1), (Function::cuMemAlloc_v2, 3)],
            unsupported: vec![(Function::cuGraphicsUnregisterResource, 2)],
            kernel_faults: Vec::new(),
            live: LiveHandles { streams: 4, ..LiveHandles::default() },
        };
        let text = "4 calls of 2 functions\ncalled cuInit: 1\ncalled cuMemAlloc_v2: 3\n\
                    unsupported cuGraphicsUnregisterResource: 2\nlive streams: 4\n";
        assert_eq!(summary.to_string(), text);
    }
}

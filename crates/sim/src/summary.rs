//! A summary of a program's use of the driver.

use std::fmt;

use curium_ptx::exec::Report;
use curium_sys::{CUresult, Function};

use crate::error_code::error_name;
use crate::live::{LiveHandles, LiveObject};

/// The maximum number of live objects in the text.
const MAX_OBJECTS: usize = 1000;

/// A summary of a program's use of a simulator.
///
/// The text has a line for each function, fault and kind of handle, which is easy to search.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// The called functions, with the number of calls.
    pub calls: Vec<(Function, u64)>,
    /// The called functions that are not implemented, with the number of calls.
    pub unsupported: Vec<(Function, u64)>,
    /// The failed calls by function and code, with their number. `CUDA_ERROR_NOT_READY` and the
    /// like are not failures.
    pub failures: Vec<(Function, CUresult, u64)>,
    /// The reports about kernels, copies and graphs, oldest first.
    pub reports: Vec<Report>,
    /// The number of live objects by kind.
    pub live: LiveHandles,
    /// The live objects, the oldest first.
    pub live_objects: Vec<LiveObject>,
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
        for (function, code, times) in &self.failures {
            writeln!(
                formatter,
                "failed {function} with {}: {times}",
                error_name(*code)
            )?;
        }
        for report in &self.reports {
            writeln!(formatter, "reported {report}")?;
        }
        for (kind, count) in self
            .live
            .counts()
            .into_iter()
            .filter(|(_, count)| *count > 0)
        {
            writeln!(formatter, "live {kind}: {count}")?;
        }
        for object in self.live_objects.iter().take(MAX_OBJECTS) {
            writeln!(formatter, "left {object}")?;
        }
        if self.live_objects.len() > MAX_OBJECTS {
            writeln!(
                formatter,
                "left {} more",
                self.live_objects.len() - MAX_OBJECTS
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;

    #[test]
    fn text_has_a_line_for_each_entry() {
        let origin = Origin {
            function: Some(Function::cuStreamCreate),
            backtrace: None,
            number: 0,
        };
        let summary = Summary {
            calls: vec![(Function::cuInit, 1), (Function::cuMemAlloc_v2, 3)],
            unsupported: vec![(Function::cuGraphicsUnregisterResource, 2)],
            failures: vec![(
                Function::cuMemFree_v2,
                CUresult::CUDA_ERROR_INVALID_VALUE,
                2,
            )],
            reports: Vec::new(),
            live: LiveHandles {
                streams: 4,
                ..LiveHandles::default()
            },
            live_objects: vec![LiveObject::new("stream", 16, &origin); MAX_OBJECTS + 2],
        };
        let text = "4 calls of 2 functions\ncalled cuInit: 1\ncalled cuMemAlloc_v2: 3\n\
                    unsupported cuGraphicsUnregisterResource: 2\nfailed cuMemFree_v2 with CUDA_ERROR_INVALID_VALUE: 2\n\
                    live streams: 4\n";
        let objects = "left stream 0x10, made by cuStreamCreate\n".repeat(MAX_OBJECTS);
        assert_eq!(summary.to_string(), format!("{text}{objects}left 2 more\n"));
    }
}

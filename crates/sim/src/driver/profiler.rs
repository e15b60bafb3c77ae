//! Profiling: there is no profiler, which is how a program mostly runs on hardware too.

use crate::driver::{Driver, Result};

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuProfilerStart(&self) -> Result {
        self.require_current()
    }

    pub(crate) fn cuProfilerStop(&self) -> Result {
        self.require_current()
    }
}

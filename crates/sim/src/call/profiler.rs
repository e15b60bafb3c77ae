//! The profiler, which the simulator does not have. Starting and stopping it succeeds, as on a
//! machine without an attached profiler.

use crate::call::Call;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuProfilerStart(&self) -> Result {
        self.require_current()
    }

    pub(crate) fn cuProfilerStop(&self) -> Result {
        self.require_current()
    }
}

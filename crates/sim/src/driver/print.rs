//! The output of kernels. As in the driver, it is collected when a kernel ends, and written when the host waits or launches again.

use crate::driver::Driver;
use crate::kernel_output::write;

impl Driver {
    /// Adds the text of a kernel that has ended.
    pub(crate) fn append_output(&self, text: &[u8]) {
        self.printed.0.lock().extend_from_slice(text);
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.printed.is_empty()
    }

    /// Writes the text of all kernels that have ended.
    pub(crate) fn flush_output(&self) {
        let text = self.printed.take();
        if !text.is_empty() {
            write(&text);
        }
    }
}

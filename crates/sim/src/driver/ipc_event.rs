//! The prefix of the handles of interprocess events, which only other processes may open.

use crate::driver::Driver;

/// The first bytes of a handle; the process, its driver, the descriptor of the records and the event follow.
pub(crate) const MARK: [u8; 8] = *b"simevent";

impl Driver {
    /// Returns the prefix of the handles of this driver's events.
    pub(crate) fn origin(&self) -> Vec<u8> {
        [
            &MARK[..],
            &std::process::id().to_le_bytes(),
            &self.thread().serial.to_le_bytes(),
        ]
        .concat()
    }
}

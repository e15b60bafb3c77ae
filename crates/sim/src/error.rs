//! The error of creating a simulator.

use std::{fmt, io};

/// An error of creating a simulator.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Too many simulators are live.
    #[error(
        "simulator: no free slot (31 simulators of this thread are live, and none was dropped within 60 seconds)"
    )]
    NoFreeSlot,
    /// The system provided no addresses for device memory.
    #[error("simulator: no address space ({bytes} bytes of device memory)")]
    NoAddressSpace {
        /// The requested size of the address range in bytes.
        bytes: u64,
        /// The error of the system.
        source: io::Error,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")?;
        match std::error::Error::source(self) {
            Some(source) => write!(formatter, "\n  caused by: {source}"),
            None => Ok(()),
        }
    }
}

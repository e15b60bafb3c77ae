//! The identifier with which the ranks create a communicator.

use std::fmt;

use crate::error::{Result, call};
use crate::library::Nccl;
use crate::rendezvous::Exchange;
use crate::sys::ncclUniqueId;

/// The identifier of a communicator, which one rank creates and sends to the others.
///
/// It contains the address at which the ranks connect to that rank.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct UniqueId([u8; Self::LEN]);

impl UniqueId {
    /// The number of bytes.
    pub const LEN: usize = 128;

    /// Creates an identifier. This process must have a rank of the communicator.
    ///
    /// CUDA: `ncclGetUniqueId`.
    ///
    /// # Errors
    ///
    /// An error of NCCL, for example if no network interface can be used.
    #[doc(alias = "ncclGetUniqueId")]
    pub fn new(library: &Nccl) -> Result<Self> {
        let mut id = ncclUniqueId::default();
        // SAFETY: `id` is valid for writes.
        unsafe { call!(library.api(), ncclGetUniqueId(&raw mut id)) }?;
        Ok(Self::from_raw(id))
    }

    /// Creates an identifier on rank 0, and sends it to all ranks of `exchange`.
    ///
    /// # Errors
    ///
    /// An error of NCCL or of the exchange.
    pub fn exchanged(library: &Nccl, exchange: &mut impl Exchange) -> Result<Self> {
        let mut bytes = if exchange.rank() == 0 {
            Self::new(library)?.0
        } else {
            [0; Self::LEN]
        };
        exchange.broadcast(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Converts bytes that another rank sent.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, to send them to other ranks.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    pub(crate) fn from_raw(id: ncclUniqueId) -> Self {
        Self(id.internal.map(|byte| byte.to_ne_bytes()[0]))
    }

    pub(crate) fn to_raw(self) -> ncclUniqueId {
        ncclUniqueId {
            internal: self.0.map(|byte| core::ffi::c_char::from_ne_bytes([byte])),
        }
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("UniqueId(")?;
        self.0[..8]
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
        formatter.write_str("…)")
    }
}

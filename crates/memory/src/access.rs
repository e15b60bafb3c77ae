//! What may be done with memory.

use std::fmt;

use curium_driver::sys::CUmemAccess_flags;

/// What a location may do with memory.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum MemoryAccess {
    /// Nothing: an access is an error.
    #[default]
    None,
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
    /// Rights that this version of the crate does not know.
    Unknown(u32),
}

impl MemoryAccess {
    /// The rights as C describes them.
    #[must_use]
    #[inline]
    pub const fn to_raw(self) -> CUmemAccess_flags {
        match self {
            Self::None => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
            Self::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
            Self::ReadWrite => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            Self::Unknown(bits) => CUmemAccess_flags(bits),
        }
    }

    /// The rights that C describes.
    #[must_use]
    #[inline]
    pub const fn from_raw(raw: CUmemAccess_flags) -> Self {
        match raw {
            CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE => Self::None,
            CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ => Self::Read,
            CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE => Self::ReadWrite,
            CUmemAccess_flags(other) => Self::Unknown(other),
        }
    }
}

impl fmt::Display for MemoryAccess {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("no access"),
            Self::Read => formatter.write_str("read access"),
            Self::ReadWrite => formatter.write_str("read and write access"),
            Self::Unknown(bits) => write!(formatter, "access {bits:#x}"),
        }
    }
}

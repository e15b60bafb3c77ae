//! Memory access rights.

use std::fmt;

use curium_driver::sys::CUmemAccess_flags;

/// The access rights of a location (`CUmemAccess_flags`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum MemoryAccess {
    /// No access.
    #[default]
    None,
    /// Read access.
    Read,
    /// Read and write access.
    ReadWrite,
    /// Rights defined by a newer driver.
    Unknown(u32),
}

impl MemoryAccess {
    /// Returns the raw CUDA value.
    #[must_use]
    pub const fn to_raw(self) -> CUmemAccess_flags {
        match self {
            Self::None => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
            Self::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
            Self::ReadWrite => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            Self::Unknown(bits) => CUmemAccess_flags(bits),
        }
    }

    /// Converts a raw CUDA value.
    #[must_use]
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
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("no access"),
            Self::Read => formatter.write_str("read access"),
            Self::ReadWrite => formatter.write_str("read and write access"),
            Self::Unknown(bits) => write!(formatter, "access {bits:#x}"),
        }
    }
}

//! Inputs of links.

use curium_sys::nvjitlink::nvJitLinkInputType;

/// The kind of an input of a [`Linker`](super::Linker).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LinkInput {
    /// A cubin: machine code for one architecture.
    Cubin,
    /// PTX text, NUL-terminated.
    Ptx,
    /// LTO IR, for link-time optimization.
    LtoIr,
    /// A fatbin.
    FatBinary,
    /// A host object file with embedded device code.
    Object,
    /// A host library with embedded device code.
    Library,
    /// An index file. Requires nvJitLink of CUDA 12.6.
    Index,
    /// An input whose kind the linker detects. Requires nvJitLink of CUDA 12.4.
    Any,
}

impl LinkInput {
    pub(super) const fn as_raw(self) -> nvJitLinkInputType {
        match self {
            Self::Cubin => nvJitLinkInputType::NVJITLINK_INPUT_CUBIN,
            Self::Ptx => nvJitLinkInputType::NVJITLINK_INPUT_PTX,
            Self::LtoIr => nvJitLinkInputType::NVJITLINK_INPUT_LTOIR,
            Self::FatBinary => nvJitLinkInputType::NVJITLINK_INPUT_FATBIN,
            Self::Object => nvJitLinkInputType::NVJITLINK_INPUT_OBJECT,
            Self::Library => nvJitLinkInputType::NVJITLINK_INPUT_LIBRARY,
            Self::Index => nvJitLinkInputType::NVJITLINK_INPUT_INDEX,
            Self::Any => nvJitLinkInputType::NVJITLINK_INPUT_ANY,
        }
    }
}

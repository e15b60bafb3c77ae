//! Inputs of links.

use super::api::nvJitLinkInputType;

/// The kind of an input of a [`Linker`](super::Linker).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LinkInput {
    /// Machine code for one architecture.
    Cubin,
    /// PTX text, which ends in a NUL.
    Ptx,
    /// Intermediate code for link-time optimisation.
    LtoIr,
    /// A fat binary.
    FatBinary,
    /// A host object with code for devices in it.
    Object,
    /// A host library with code for devices in it.
    Library,
    /// An index file. Needs nvJitLink of CUDA 12.6.
    Index,
    /// Whatever the linker finds it to be. Needs nvJitLink of CUDA 12.4.
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

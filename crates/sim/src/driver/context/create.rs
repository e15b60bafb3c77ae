//! The flags of contexts.

/// `CU_CTX_MAP_HOST`, which every context reports except those of `cuCtxCreate`.
pub(crate) const MAP_HOST: u32 = 8;

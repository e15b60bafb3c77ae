//! The operands of instructions that have more than an [`Op`](crate::exec::machine::op::Op) holds.

pub(crate) mod bulk;
pub(crate) mod tensor;
pub(crate) mod tensor_memory;
pub(crate) mod video;
pub(crate) mod warpgroup;

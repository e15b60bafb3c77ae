//! The operands of copies.

pub(crate) mod rows;

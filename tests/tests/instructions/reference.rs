//! Reference results of instructions, computed independently of the simulator.

pub(crate) mod integer;
pub(crate) mod real;
pub(crate) mod wide;

//! What instructions must give, computed without the simulator.

pub(crate) mod integer;
pub(crate) mod real;
pub(crate) mod wide;

//! Values of lanes: rows of 32 lanes, and the arithmetic on their numbers. Nothing here depends on
//! a launch.

pub(crate) mod approximate;
pub(crate) mod convert;
pub(crate) mod exact;
pub(crate) mod float;
pub(crate) mod fused;
pub(crate) mod integer;
pub(crate) mod lane;
pub(crate) mod narrow;
pub(crate) mod narrow_rows;
pub(crate) mod small_float;

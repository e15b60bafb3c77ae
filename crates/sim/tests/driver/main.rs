//! The simulated driver through its functions, object by object.

mod memory;
mod support;

//! The curium program.
fn main() {}

//! Generates and verifies.
fn main() {}

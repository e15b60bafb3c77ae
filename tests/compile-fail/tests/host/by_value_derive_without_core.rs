//! The checks of `derive(ByValue)` do not depend on names that the caller's crate can replace.

#![forbid(unsafe_code)]

extern crate self as core;

use curium::ByValue;

#[macro_export]
macro_rules! assert {
    ($($anything:tt)*) => {};
}

pub mod mem {
    pub const fn size_of<T>() -> usize {
        0
    }
}

#[derive(Clone, Copy, ByValue)]
#[repr(C)]
struct Padded {
    small: u8,
    large: u64,
}

#[derive(Clone, Copy, ByValue)]
#[repr(C)]
struct WithReference {
    value: u64,
    text: &'static [u8; 4],
}

fn main() {}

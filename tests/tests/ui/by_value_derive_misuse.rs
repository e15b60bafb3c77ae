//! A derived struct has the layout of C, no padding, and fields that are values.

use curium::ByValue;

#[derive(Clone, Copy, ByValue)]
struct WithoutLayout {
    value: u32,
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
    text: &'static str,
}

#[derive(Clone, Copy, ByValue)]
#[repr(C)]
struct Generic<T> {
    value: T,
}

#[derive(Clone, Copy, ByValue)]
#[repr(C)]
struct Empty {}

#[derive(Clone, Copy, ByValue)]
#[repr(C)]
enum Choice {
    One,
}

#[derive(ByValue)]
#[repr(C)]
struct NotCopy {
    value: u32,
}

fn main() {}

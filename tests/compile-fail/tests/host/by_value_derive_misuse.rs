//! A struct with `derive(ByValue)` has the C layout, no padding, and only fields that are `ByValue`.

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

mod placeholders {
    //! Types with names that the macro might replace.

    use curium::ByValue;

    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Wrong {
        small: u8,
        large: u64,
        text: &'static str,
        flag: bool,
    }

    #[derive(Clone, Copy, ByValue)]
    #[repr(C)]
    struct __Field0 {
        wrong: Wrong,
    }

    #[derive(Clone, Copy, ByValue)]
    #[repr(C)]
    struct __Field1 {
        large: u64,
        text: &'static str,
        flag: bool,
    }
}

#[derive(Clone, Copy, ByValue)]
#[by_value(path = curium_driver)]
#[repr(C)]
struct Misspelled {
    value: u32,
}

#[derive(Clone, Copy, ByValue)]
#[repr(C)]
union Either {
    float: f32,
    bits: u32,
}

fn main() {}

//! `unsafe` requires at least one `safe fn`.

curium_driver::kernels! {
    struct Kernels unsafe {
        fn add(a: u32, b: u32);
    }
}

fn main() {}

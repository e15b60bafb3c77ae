//! Only `unsafe` declares a kernel safe.

curium_driver::kernels! {
    struct Kernels {
        safe fn add(a: u32, b: u32);
    }
}

fn main() {}

//! Only the keyword `unsafe` declares kernels safe.

curium_driver::kernels! {
    struct Kernels extern {
        safe fn add(a: u32, b: u32);
    }
}

fn main() {}

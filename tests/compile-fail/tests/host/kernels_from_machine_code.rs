//! Machine code is an image created by `unsafe` code, not a file.

curium_driver::kernels! {
    struct Kernels from "../../../crates/driver/tests/images/bump.sm_75.cubin" {
        fn bump(values: &mut [u32]);
    }
}

fn main() {}

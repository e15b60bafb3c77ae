//! Compiles the kernel of the demo.

fn main() {
    curium_kernel_build::Kernels::module("src/demo.rs", "kernels")
        .targets(["sm_75"])
        .prefer_prebuilt(true)
        .compile();
}

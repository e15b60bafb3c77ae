//! Compiles the kernels of the program.

fn main() {
    curium_kernel_build::Kernels::module("src/main.rs", "kernels").compile();
}

fn main() {
    curium_kernel_build::Kernels::module("src/main.rs", "kernels").compile();
}

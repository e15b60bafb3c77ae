//! Compiles the kernels of this package.

fn main() {
    curium_kernel_build::Kernels::package()
        .targets(["sm_90a"])
        .compile();
}

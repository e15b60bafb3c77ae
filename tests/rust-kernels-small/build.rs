//! Compiles the kernel of this package.

fn main() {
    curium_kernel_build::Kernels::package()
        .targets(["sm_80"])
        .compile();
}

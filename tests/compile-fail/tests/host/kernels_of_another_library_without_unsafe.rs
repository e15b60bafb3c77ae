//! A declaration covers the code it names. Another library may have an unsafe kernel of the same name.

use curium_driver::Library;

curium_driver::kernels! {
    struct Kernels from "../../kernels/print.ptx" unsafe {
        // SAFETY: the kernel prints, and accesses no memory of the program.
        safe fn print_threads(seed: u32);
    }
}

fn kernels(library: &Library) -> curium_driver::Result<Kernels> {
    Kernels::from_library(library)
}

fn main() {}

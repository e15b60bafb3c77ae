//! Operands of inline PTX are checked.

use curium_kernel::prelude::*;

pub fn instructions(mut x: u32) {
    // SAFETY: this does not compile.
    unsafe {
        ptx!("mov.u32 {1}, 0;", out(r) x);
        ptx!("mov.u32 {0}, 0;", out(q) x);
        ptx!("add.u32 {0}, {1}, 1;", in(r) x, out(r) x);
        ptx!("{ mov.u32 {0}, 0; }", out(r) x);
        ptx!("nop;", pure);
        ptx!("mov.f32 {0}, 0f00000000;", out(f) x);
    }
}

fn main() {}

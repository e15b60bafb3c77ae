//! Only an operation gives the handle of a stream, so work that forgets the checks does not compile.

use curium_driver::{Result, Stream, call};

fn zero(stream: &Stream, address: u64) -> Result<()> {
    // SAFETY: the program does not compile.
    unsafe {
        call!(
            stream.driver(),
            cuMemsetD8Async(address, 0, 1, stream.as_raw())
        )
    }
}

fn main() {}

//! A scope is bound to one thread.

use curium_driver::{Result, Stream};
use curium_memory::copy;

fn share(stream: &Stream) -> Result<()> {
    copy::copy_scope(stream, |scope| {
        std::thread::scope(|threads| {
            threads.spawn(|| scope.stream());
        });
        Ok(())
    })
}

fn main() {}

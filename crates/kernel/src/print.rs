//! Output of text.

use core::fmt::{self, Write};

use crate::thread::SingleThread;

/// The maximum length of a text in bytes.
const CAPACITY: usize = 255;

/// A text in registers or local memory.
struct Buffer {
    bytes: [u8; CAPACITY + 1],
    len: usize,
}

impl Write for Buffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.len == CAPACITY {
                return Err(fmt::Error);
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
        Ok(())
    }
}

/// Prints a text as a line of the program's standard output, as `printf` of CUDA C++ does. It
/// appears when the host synchronizes.
///
/// ```
/// # use curium_kernel::prelude::*;
/// #[kernel]
/// pub fn show(t: Thread, x: &[u32]) {
///     if let Some(x) = x.get(t.index()) {
///         curium_kernel::print(&t, format_args!("thread {}: {x}", t.index()));
///     }
/// }
/// ```
///
/// Lines end after 255 bytes. Formatting makes a kernel large: use it for debugging.
#[doc(alias = "printf")]
pub fn print(_: &impl SingleThread, text: fmt::Arguments<'_>) {
    let mut buffer = Buffer {
        bytes: [0; CAPACITY + 1],
        len: 0,
    };
    // A longer text is cut off.
    let _ = buffer.write_fmt(text);
    #[cfg(target_arch = "nvptx64")]
    {
        let arguments = [buffer.bytes.as_ptr()];
        // SAFETY: the format has one argument, a text that ends with a NUL.
        unsafe { crate::intrinsics::vprintf(c"%s\n".as_ptr().cast(), arguments.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "nvptx64"))]
    crate::intrinsics::only_on_the_device();
}

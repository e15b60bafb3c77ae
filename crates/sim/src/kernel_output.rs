//! The output of kernels. As in the driver, it is collected when a kernel ends, and written when
//! the host waits or launches again.

use crate::lock::{Mutex, Rank};

/// The text of kernels that have ended, not yet written.
pub(crate) struct KernelOutput(Mutex<Vec<u8>>);

impl Default for KernelOutput {
    fn default() -> Self {
        Self(Mutex::new(Rank::KernelOutput, Vec::new()))
    }
}

impl KernelOutput {
    /// Adds the text of a kernel that has ended.
    pub(crate) fn append(&self, text: &[u8]) {
        self.0.lock().extend_from_slice(text);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Writes the text of all kernels that have ended.
    pub(crate) fn flush(&self) {
        let text = std::mem::take(&mut *self.0.lock());
        if !text.is_empty() {
            write(&text);
        }
    }
}

/// Writes to the C library's `stdout`, after everything that the program has written there.
#[cfg(all(target_os = "linux", not(miri)))]
fn write(text: &[u8]) {
    // SAFETY: the C library defines the variable, and sets it before the program starts.
    unsafe extern "C" {
        static mut stdout: *mut libc::FILE;
    }
    // SAFETY: programs do not replace `stdout` while other threads use it.
    let out = unsafe { stdout };
    // SAFETY: the stream is open for as long as the process runs, and the text has this length. A
    // program that closed the descriptor discards the text.
    unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), out) };
    // SAFETY: the stream is open for as long as the process runs. Programs that do not use the C
    // library's streams would see the text at their end only.
    unsafe { libc::fflush(out) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn write(text: &[u8]) {
    use std::io::Write as _;

    let mut out = std::io::stdout().lock();
    // A program that closed the output discards the text.
    let _ = out.write_all(text).and_then(|()| out.flush());
}

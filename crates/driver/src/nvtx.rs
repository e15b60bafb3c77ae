//! NVTX ranges and marks.
//!
//! A tool that wants them names its library in the environment variable `NVTX_INJECTION64_PATH`. On first use that library is loaded and
//! given a table of slots, one for each function of the protocol, and it fills in those that it wants called. Without a tool the slots
//! stay empty, and a range costs a load and a branch.

mod injection;

use std::ffi::CString;
use std::fmt;
use std::marker::PhantomData;

use self::injection::Slot;

/// A part of the work of one thread, under a name in a profiler's timeline, until the value is dropped. Ranges of a thread nest.
///
/// ```
/// use curium_driver::NvtxRange;
///
/// let range = NvtxRange::new("step");
/// // … work …
/// drop(range);
/// ```
#[must_use = "the range ends when the value is dropped"]
pub struct NvtxRange {
    /// Ranges belong to the thread that began them.
    _thread: PhantomData<*mut ()>,
}

/// Marks this moment in the timeline of a profiler.
#[inline]
pub fn nvtx_mark(name: &str) {
    if let Some(mark) = injection::text_function(Slot::Mark) {
        let name = c_text(name);
        // SAFETY: the tool's function takes text that ends in NUL, for the duration of the call.
        unsafe { mark(name.as_ptr()) };
    }
}

impl NvtxRange {
    /// Begins a range of the calling thread.
    #[inline]
    pub fn new(name: &str) -> Self {
        if let Some(push) = injection::text_function(Slot::RangePush) {
            let name = c_text(name);
            // SAFETY: the tool's function takes text that ends in NUL, for the duration of the call.
            unsafe { push(name.as_ptr()) };
        }
        Self { _thread: PhantomData }
    }
}

impl fmt::Debug for NvtxRange {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NvtxRange")
    }
}

impl Drop for NvtxRange {
    #[inline]
    fn drop(&mut self) {
        if let Some(pop) = injection::plain_function(Slot::RangePop) {
            // SAFETY: the tool's function takes nothing, and this thread has begun the range that it ends.
            unsafe { pop() };
        }
    }
}

/// Returns a name as C reads it, up to its first NUL.
#[inline]
fn c_text(name: &str) -> CString {
    let end = name.find('\0').unwrap_or(name.len());
    CString::new(&name[..end]).unwrap_or_default()
}

//! NVTX ranges and marks.
//!
//! A tool puts the path of its library into the environment variable `NVTX_INJECTION64_PATH`. On
//! first use, that library is loaded and receives a table of slots, one for each NVTX function, and
//! fills in those that it implements. Without a tool the slots stay empty, and a range costs a load
//! and a branch.

mod injection;

use std::ffi::CString;
use std::fmt;
use std::marker::PhantomData;

use self::injection::Slot;

/// A named range of the calling thread in a profiler's timeline, which ends when this value is
/// dropped. Ranges of a thread nest.
///
/// ```
/// use curium_diagnostics::NvtxRange;
///
/// let range = NvtxRange::new("step");
/// // … work …
/// drop(range);
/// ```
#[must_use = "the range ends when the value is dropped"]
pub struct NvtxRange {
    /// A range must end on the thread that started it.
    _thread: PhantomData<*mut ()>,
}

/// Marks the current time in a profiler's timeline.
pub fn nvtx_mark(name: &str) {
    if let Some(mark) = injection::text_function(Slot::Mark) {
        let name = c_text(name);
        // SAFETY: the tool's function accepts NUL-terminated text that is valid for the duration of
        // the call.
        unsafe { mark(name.as_ptr()) };
    }
}

impl NvtxRange {
    /// Starts a range on the calling thread.
    pub fn new(name: &str) -> Self {
        if let Some(push) = injection::text_function(Slot::RangePush) {
            let name = c_text(name);
            // SAFETY: the tool's function accepts NUL-terminated text that is valid for the
            // duration of the call.
            unsafe { push(name.as_ptr()) };
        }
        Self {
            _thread: PhantomData,
        }
    }
}

impl fmt::Debug for NvtxRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NvtxRange")
    }
}

impl Drop for NvtxRange {
    fn drop(&mut self) {
        if let Some(pop) = injection::plain_function(Slot::RangePop) {
            // SAFETY: the tool's function takes no argument, and this thread has started the range
            // that it ends.
            unsafe { pop() };
        }
    }
}

/// Converts a name to a C string, up to its first NUL.
fn c_text(name: &str) -> CString {
    let end = name.find('\0').unwrap_or(name.len());
    CString::new(&name[..end]).unwrap_or_default()
}

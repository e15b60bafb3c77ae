//! The driver's log: a line for each call that failed.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_char, c_void};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use curium_ptx::exec::Report;
use curium_sys::{
    CUlogIterator, CUlogLevel, CUlogsCallback, CUlogsCallbackEntry_st, CUlogsCallbackHandle,
    CUresult,
};

use crate::argument::{ConstPointer, Pointer};
use crate::driver::stream::this_thread;
use crate::driver::{Driver, Result, error, host_function};
use crate::live::LiveObject;
use crate::lock::{Mutex, MutexGuard, Rank};
use crate::origin::Origin;

/// The driver's log and its callbacks.
pub(crate) struct Log {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    lines: VecDeque<String>,
    /// The length of all lines with their ends.
    bytes: usize,
    /// The number of discarded lines: the index of the first that is kept.
    dropped: CUlogIterator,
    listeners: BTreeMap<usize, Listener>,
    last_listener: usize,
    /// The number of times that each call failed in each way.
    failures: BTreeMap<(curium_sys::Function, u32), u64>,
}

/// A callback for log messages.
#[derive(Clone)]
struct Listener {
    callback: unsafe extern "C" fn(*mut c_void, CUlogLevel, *mut c_char, usize),
    data: *mut c_void,
    origin: Origin,
}

// SAFETY: the caller that registers a callback permits the driver to call it with its argument on another thread: that is its contract.
unsafe impl Send for Listener {}

/// The capacity of the log in bytes.
const CAPACITY: usize = 25_600;
const TRUNCATED: &str = "[CUDA] the log was truncated here\n";
/// The alignment of handles, which are multiples of this as real addresses are.
const HANDLE_STEP: usize = 0x10;

impl Default for Log {
    fn default() -> Self {
        Self {
            inner: Mutex::new(Rank::Log, Inner::default()),
        }
    }
}

impl Log {
    /// Returns the number of callbacks.
    pub(crate) fn listeners(&self) -> u64 {
        self.inner().listeners.len() as u64
    }

    /// Returns the failed calls, each with its code and number of failures.
    pub(crate) fn failures(&self) -> Vec<(curium_sys::Function, CUresult, u64)> {
        let inner = self.inner();
        inner
            .failures
            .iter()
            .map(|((function, code), times)| (*function, CUresult(*code), *times))
            .collect()
    }

    /// Returns each callback.
    pub(crate) fn live_listeners(&self) -> Vec<LiveObject> {
        self.inner()
            .listeners
            .iter()
            .map(|(handle, listener)| LiveObject::new("listener", *handle as u64, &listener.origin))
            .collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn end(&self) -> CUlogIterator {
        self.dropped + self.lines.len() as CUlogIterator
    }

    fn add(&mut self, line: String) {
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.bytes > CAPACITY
            && let Some(line) = self.lines.pop_front()
        {
            self.bytes -= line.len();
            self.dropped += 1;
        }
    }

    /// Returns the lines from `start`: as many of the last ones as fit into `room` bytes. Returns `None` if none of them fits.
    fn text(&self, start: Option<CUlogIterator>, room: usize) -> Option<String> {
        let start = start.unwrap_or(self.dropped);
        let skipped = start
            .saturating_sub(self.dropped)
            .min(self.lines.len() as CUlogIterator) as usize;
        let requested: Vec<_> = self.lines.iter().skip(skipped).collect();
        let is_whole =
            start >= self.dropped && requested.iter().map(|line| line.len()).sum::<usize>() <= room;
        if is_whole {
            return Some(requested.into_iter().map(String::as_str).collect());
        }
        let mut remaining = room.checked_sub(TRUNCATED.len())?;
        let mut first = requested.len();
        while first > 0 && requested[first - 1].len() <= remaining {
            first -= 1;
            remaining -= requested[first].len();
        }
        let lines = &requested[first..];
        if lines.is_empty() && !requested.is_empty() {
            return None;
        }
        let lines = lines.iter().map(|line| line.as_str());
        Some(std::iter::once(TRUNCATED).chain(lines).collect())
    }
}

impl Driver {
    /// Logs the report of an error, which the next failing call returns.
    pub(crate) fn log_report(&self, report: &Report) {
        let line = format!("{} {report:#}\n", thread_heading());
        self.log.inner().add(line);
    }

    /// Logs that a call has failed, and calls the callbacks, which cannot call the driver.
    #[cold]
    pub(crate) fn log_failure(&self, function: curium_sys::Function, code: CUresult) {
        let name = function.name();
        let is_answer = code == CUresult::CUDA_ERROR_NOT_READY || name.starts_with("cuGetError");
        if is_answer || name.starts_with("cuLogs") || host_function::is_running_here() {
            return;
        }
        let mut line = format!("{} {}", heading(name), error::description(code));
        let message = line.clone();
        line.push('\n');
        let mut log = self.log.inner();
        *log.failures.entry((function, code.0)).or_default() += 1;
        log.add(line);
        let listeners: Vec<_> = log.listeners.values().cloned().collect();
        drop(log);
        for listener in listeners {
            let mut bytes = message.clone().into_bytes();
            let text = bytes.as_mut_ptr().cast();
            let length = bytes.len();
            host_function::run(|| {
                // SAFETY: the caller that registered the callback guaranteed that it can be called with its argument and a message.
                unsafe {
                    (listener.callback)(
                        listener.data,
                        CUlogLevel::CU_LOG_LEVEL_ERROR,
                        text,
                        length,
                    );
                }
            });
        }
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuLogsRegisterCallback(
        &self,
        callback: CUlogsCallback,
        data: Pointer<c_void>,
        handle: Pointer<CUlogsCallbackHandle>,
    ) -> Result {
        let callback = callback.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let mut log = self.log.inner();
        log.last_listener += HANDLE_STEP;
        let number = log.last_listener;
        log.listeners.insert(
            number,
            Listener {
                callback,
                data: data.as_ptr(),
                origin: Origin::here(),
            },
        );
        handle.write_if_not_null(std::ptr::without_provenance_mut(number));
        Ok(())
    }

    pub(crate) fn cuLogsUnregisterCallback(
        &self,
        handle: Pointer<CUlogsCallbackEntry_st>,
    ) -> Result {
        let removed = self
            .log
            .inner()
            .listeners
            .remove(&(handle.address() as usize));
        removed
            .map(|_| ())
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Ignores the flags, as on hardware.
    pub(crate) fn cuLogsCurrent(&self, iterator: Pointer<CUlogIterator>, _flags: u32) -> Result {
        iterator.write(self.log.inner().end())
    }

    /// Ignores the flags, as on hardware.
    pub(crate) fn cuLogsDumpToMemory(
        &self,
        iterator: Pointer<CUlogIterator>,
        buffer: Pointer<c_char>,
        size: Pointer<usize>,
        _flags: u32,
    ) -> Result {
        let buffer = buffer.required()?;
        // The terminating NUL occupies one byte.
        let room = size
            .read()?
            .checked_sub(1)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let log = self.log.inner();
        let Some(text) = log.text(iterator.read().ok(), room) else {
            size.write(0)?;
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        };
        iterator.write_if_not_null(log.end());
        // SAFETY: the caller passed a buffer of one byte more than `room`, and the text is not longer than that.
        size.write(unsafe { buffer.fill_with(&text, room + 1) })
    }

    pub(crate) fn cuLogsDumpToFile(
        &self,
        iterator: Pointer<CUlogIterator>,
        path: ConstPointer<c_char>,
        flags: u32,
    ) -> Result {
        let path = path
            .text()?
            .to_str()
            .ok()
            .filter(|_| flags == 0)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let log = self.log.inner();
        let text = log
            .text(iterator.read().ok(), usize::MAX)
            .unwrap_or_default();
        std::fs::write(path, text).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
        iterator.write_if_not_null(log.end());
        Ok(())
    }
}

/// Returns the prefix of a message: time, thread, source, severity and function.
fn heading(function: &str) -> String {
    format!("{}[{function}]", thread_heading())
}

/// Returns the prefix of a message about no call: time, thread, source and severity.
fn thread_heading() -> String {
    // Miri simulates time, and has no date.
    let now = if cfg!(miri) {
        UNIX_EPOCH
    } else {
        SystemTime::now()
    };
    let time = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut heading = clock(time);
    // Writing to a string cannot fail.
    write!(heading, "[{}][CUDA][E]", this_thread()).unwrap_or_default();
    heading
}

/// Returns the time of the day, as in `[22:21:32.099]`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs() % 86_400;
    format!(
        "[{:02}:{:02}:{:02}.{:03}]",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        time.subsec_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: usize) -> Inner {
        let mut log = Inner::default();
        (0..lines).for_each(|line| log.add(format!("line {line:05}\n")));
        log
    }

    #[test]
    fn text_begins_at_the_requested_position() {
        let log = log(3);
        assert_eq!(
            log.text(Some(1), 100).as_deref(),
            Some("line 00001\nline 00002\n")
        );
        assert_eq!(log.text(Some(log.end()), 0).as_deref(), Some(""));
    }

    #[test]
    fn truncated_log_ends_with_the_newest_lines() {
        let log = log(10);
        let text = log
            .text(None, TRUNCATED.len() + 2 * 11)
            .expect("two lines fit");
        assert_eq!(text, format!("{TRUNCATED}line 00008\nline 00009\n"));
        assert_eq!(log.text(None, TRUNCATED.len() + 5), None);
    }

    #[test]
    fn oldest_lines_are_dropped_and_missed() {
        let log = log(3000);
        assert!(log.bytes <= CAPACITY && log.dropped > 0);
        let text = log.text(Some(0), usize::MAX).expect("it fits");
        assert!(text.starts_with(TRUNCATED) && text.ends_with("line 02999\n"));
    }

    #[test]
    fn clock_shows_the_time() {
        assert_eq!(
            clock(Duration::from_millis(86_400_000 + 3_723_004)),
            "[01:02:03.004]"
        );
    }
}

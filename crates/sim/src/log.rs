//! The driver's log: a line for each call that failed.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_char, c_void};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use curium_ptx::exec::Report;
use curium_sys::{CUlogIterator, CUlogLevel, CUresult, Function};

use crate::context::stream::this_thread;
use crate::live::LiveObject;
use crate::lock::{Mutex, MutexGuard, Rank};
use crate::origin::Origin;
use crate::{error_code, host_function};

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
    failures: BTreeMap<(Function, u32), u64>,
}

/// The C function of a callback.
pub(crate) type Callback = unsafe extern "C" fn(*mut c_void, CUlogLevel, *mut c_char, usize);

/// A callback for log messages.
#[derive(Clone)]
struct Listener {
    callback: Callback,
    data: *mut c_void,
    origin: Origin,
}

// SAFETY: the caller that registers a callback permits the driver to call it with its argument on
// another thread: that is its contract.
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
    pub(crate) fn failures(&self) -> Vec<(Function, CUresult, u64)> {
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

    /// Registers a callback, and returns its handle.
    pub(crate) fn register(&self, callback: Callback, data: *mut c_void) -> usize {
        let mut inner = self.inner();
        inner.last_listener += HANDLE_STEP;
        let handle = inner.last_listener;
        let listener = Listener {
            callback,
            data,
            origin: Origin::here(),
        };
        inner.listeners.insert(handle, listener);
        handle
    }

    /// Removes a callback. Returns `false` if there is none with this handle.
    pub(crate) fn unregister(&self, handle: usize) -> bool {
        self.inner().listeners.remove(&handle).is_some()
    }

    /// Returns the position after the last line.
    pub(crate) fn end(&self) -> CUlogIterator {
        self.inner().end()
    }

    /// Returns the lines from `start`, as many of the last ones as fit into `room` bytes, and the
    /// position after them. Returns `None` if none of them fits.
    pub(crate) fn text(
        &self,
        start: Option<CUlogIterator>,
        room: usize,
    ) -> Option<(String, CUlogIterator)> {
        let inner = self.inner();
        Some((inner.text(start, room)?, inner.end()))
    }

    /// Logs the report of an error, which the next failing call returns.
    pub(crate) fn add_report(&self, report: &Report) {
        let line = format!("{} {report:#}\n", thread_heading());
        self.inner().add(line);
    }

    /// Logs that a call has failed, and calls the callbacks, which cannot call the driver.
    #[cold]
    pub(crate) fn add_failure(&self, function: Function, code: CUresult) {
        let name = function.name();
        let is_answer = code == CUresult::CUDA_ERROR_NOT_READY || name.starts_with("cuGetError");
        if is_answer || name.starts_with("cuLogs") || host_function::is_running_here() {
            return;
        }
        let message = format!("{} {}", heading(name), error_code::description(code));
        let mut inner = self.inner();
        *inner.failures.entry((function, code.0)).or_default() += 1;
        inner.add(format!("{message}\n"));
        let listeners: Vec<_> = inner.listeners.values().cloned().collect();
        drop(inner);
        for listener in listeners {
            listener.call(&message);
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Listener {
    fn call(&self, message: &str) {
        let mut bytes = message.as_bytes().to_vec();
        host_function::run(|| {
            // SAFETY: the caller that registered the callback guaranteed that it can be called with
            // its argument and a message.
            unsafe {
                (self.callback)(
                    self.data,
                    CUlogLevel::CU_LOG_LEVEL_ERROR,
                    bytes.as_mut_ptr().cast(),
                    bytes.len(),
                );
            }
        });
    }
}

impl Inner {
    pub(crate) fn end(&self) -> CUlogIterator {
        self.dropped + self.lines.len() as CUlogIterator
    }

    pub(crate) fn add(&mut self, line: String) {
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.bytes > CAPACITY
            && let Some(line) = self.lines.pop_front()
        {
            self.bytes -= line.len();
            self.dropped += 1;
        }
    }

    /// Returns the lines from `start`: as many of the last ones as fit into `room` bytes. Returns
    /// `None` if none of them fits.
    pub(crate) fn text(&self, start: Option<CUlogIterator>, room: usize) -> Option<String> {
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

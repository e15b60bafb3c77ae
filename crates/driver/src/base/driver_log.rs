//! The driver's own log: its messages about failed calls.
//!
//! An error carries the log lines about its call that add to its code. Only a failed call reads the
//! log. Reading is not observed, and a failure to read is ignored. Each line is read once. If
//! several threads fail at the same time, a line goes to the error whose function it names. Once a
//! context is lost, the driver may log the same lines for every call; only the first error carries
//! them.

use std::ffi::c_char;

use curium_sys::{Api, CUlogIterator, CUresult, ErrorClass, Function};
use parking_lot::Mutex;

/// The maximum number of bytes that an error carries.
const LIMIT: usize = 4096;

/// The capacity of the driver's log in bytes, including the terminating NUL. With less room, the
/// driver of CUDA 13.0 writes beyond the end of the buffer if the text is longer.
pub(crate) const CAPACITY: usize = 25_601;

/// The size in bytes of a buffer for the log. The driver receives [`CAPACITY`] as the size; the
/// rest is room for its longest line.
pub(crate) const BUFFER: usize = CAPACITY + 4096;

/// The position up to which the driver's log has been read.
pub(crate) struct Mark {
    position: Mutex<Option<CUlogIterator>>,
    /// The messages carried by the last error of a lost context.
    lost: Mutex<Box<str>>,
    /// The process that set the mark. In a forked child, a lock of the driver may be held forever.
    process: u32,
}

impl Mark {
    /// Returns the current end of the log, if the driver has one.
    pub(crate) fn now(api: &Api) -> Self {
        let mut position = 0;
        let set = api.cuLogsCurrent.map(|current| {
            // SAFETY: `position` is valid for writes, and 0 is the only value of the flags.
            unsafe { current(&raw mut position, 0) }
        });
        let position = (set == Some(CUresult::CUDA_SUCCESS)).then_some(position);
        Self {
            position: Mutex::new(position),
            lost: Mutex::new(Box::default()),
            process: std::process::id(),
        }
    }

    /// Returns a position in no log.
    pub(crate) fn nowhere() -> Self {
        Self {
            position: Mutex::new(None),
            lost: Mutex::new(Box::default()),
            process: 0,
        }
    }

    /// Reads the new log lines that add to the `description` of the `code` that `function`
    /// returned.
    #[cold]
    pub(crate) fn read(
        &self,
        api: &Api,
        function: Function,
        code: CUresult,
        description: &str,
    ) -> Option<Box<str>> {
        if is_silent(code) || self.process != std::process::id() {
            return None;
        }
        let text = self.new_text(api)?;
        let mut lines = telling(concerning(&text, function), description);
        keep_last(&mut lines, LIMIT);
        if lines.is_empty() || (ErrorClass::of(code) == ErrorClass::Sticky && !self.is_new(&lines))
        {
            return None;
        }
        Some(lines.join("\n").into())
    }

    /// Returns the text logged since the last read.
    fn new_text(&self, api: &Api) -> Option<String> {
        let dump = api.cuLogsDumpToMemory?;
        let mut buffer = vec![0_u8; BUFFER];
        let mut size = CAPACITY;
        let mut position = self.position.lock();
        let iterator = &raw mut *position.as_mut()?;
        let text = buffer.as_mut_ptr().cast::<c_char>();
        // SAFETY: `text` has room for the number of bytes in `size`, and the iterator belongs to
        // this driver.
        let result = unsafe { dump(iterator, text, &raw mut size, 0) };
        drop(position);
        (result == CUresult::CUDA_SUCCESS)
            .then(|| String::from_utf8_lossy(&buffer[..size.min(BUFFER)]).into_owned())
    }

    /// Returns `true` unless the last error of a lost context carried the same messages. Stores the
    /// messages.
    fn is_new(&self, lines: &[&str]) -> bool {
        let messages: Box<str> = lines
            .iter()
            .map(|line| message(line))
            .collect::<Vec<_>>()
            .join("\n")
            .into();
        let last = std::mem::replace(&mut *self.lost.lock(), messages.clone());
        *last != *messages
    }
}

/// Returns the lines that add to an error with this `description`: without the line that only
/// repeats function and code, and without duplicates.
fn telling<'a>(lines: Vec<&'a str>, description: &str) -> Vec<&'a str> {
    let mut telling: Vec<&str> = Vec::new();
    for line in lines {
        let message = message(line);
        let is_known = message == description
            || telling
                .iter()
                .any(|earlier| self::message(earlier) == message);
        if !is_known && returned(line).is_none() {
            telling.push(line);
        }
    }
    telling
}

/// Removes the first lines until the others, with their ends, have at most `limit` bytes.
fn keep_last(lines: &mut Vec<&str>, limit: usize) {
    let mut bytes = 0;
    let remaining = lines
        .iter()
        .rev()
        .take_while(|line| {
            bytes += line.len() + 1;
            bytes <= limit
        })
        .count();
    lines.drain(..lines.len() - remaining);
}

/// Returns the message of a line, after the fields in brackets.
fn message(line: &str) -> &str {
    let mut message = line.trim();
    while let Some((_, after)) = message
        .strip_prefix('[')
        .and_then(|field| field.split_once(']'))
    {
        message = after.trim_start();
    }
    message
}

/// Returns `true` if `code` means that the driver cannot be called, or is no failure.
fn is_silent(code: CUresult) -> bool {
    [
        CUresult::CUDA_ERROR_DEINITIALIZED,
        CUresult::CUDA_ERROR_NOT_INITIALIZED,
        CUresult::CUDA_ERROR_NOT_PERMITTED,
        CUresult::CUDA_ERROR_NOT_READY,
    ]
    .contains(&code)
}

/// Returns the lines that may concern a call of `function`. For each call, a driver logs lines with
/// the thread in brackets and ends with the result. Messages of another call, whose failure was not
/// reported, are left out.
fn concerning(text: &str, function: Function) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| may_concern(line, function)) {
        match returned(line) {
            Some(other) if base_name(other) != function.base_name() => {
                lines.retain(|earlier| thread(earlier) != thread(line));
            }
            _ => lines.push(line),
        }
    }
    lines
}

/// Returns the thread that a line names in its second pair of brackets.
fn thread(line: &str) -> Option<&str> {
    line.split(['[', ']']).nth(3)
}

/// Returns the function named by a line that reports a returned error.
fn returned(line: &str) -> Option<&str> {
    let (_, message) = line.rsplit_once(']')?;
    let (_, function) = message
        .trim_start()
        .strip_prefix("Returning ")?
        .rsplit_once(" from ")?;
    Some(function.trim())
}

/// Returns `true` unless the line names, in brackets, a function other than `function`.
fn may_concern(line: &str, function: Function) -> bool {
    let named = line.split(['[', ']']).find(|field| {
        field
            .strip_prefix("cu")
            .is_some_and(|name| name.starts_with(char::is_uppercase) && !name.contains(' '))
    });
    named.is_none_or(|named| base_name(named) == function.base_name())
        && !line.trim_matches('\0').trim().is_empty()
}

/// `cuMemAlloc` of `cuMemAlloc_v2_ptds`.
fn base_name(symbol: &str) -> &str {
    let symbol = symbol
        .strip_suffix("_ptsz")
        .or_else(|| symbol.strip_suffix("_ptds"))
        .unwrap_or(symbol);
    match symbol.rsplit_once("_v") {
        Some((base, number)) if number.parse::<u32>().is_ok() => base,
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_with_another_function_is_ignored() {
        let line = "[22:21:32.099][25642][CUDA][E][cuMemAlloc_v2_ptds] There is too little memory";
        assert!(may_concern(line, Function::cuMemAlloc_v2));
        assert!(may_concern(line, Function::cuMemAlloc));
        assert!(!may_concern(line, Function::cuMemAllocAsync));
        assert!(may_concern("Log was truncated", Function::cuMemAllocAsync));
        assert!(!may_concern("", Function::cuMemAllocAsync));
    }

    #[test]
    fn lines_from_an_earlier_call_are_ignored() {
        let text = "\
[11:07:41.060][77][CUDA][E] A pool cannot do that
[11:07:41.060][77][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemPoolSetAccess
[11:07:41.087][78][CUDA][E] There is no context
[11:07:41.087][77][CUDA][E] The pool was not shared
[11:07:41.087][77][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemPoolExportPointer";
        let lines = concerning(text, Function::cuMemPoolExportPointer);
        let text: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines, text);
    }

    #[test]
    fn driver_without_a_log_has_nothing_to_say() {
        let mark = Mark::now(&Api::empty());
        assert_eq!(
            mark.read(
                &Api::empty(),
                Function::cuInit,
                CUresult::CUDA_ERROR_NO_DEVICE,
                ""
            ),
            None
        );
    }

    #[test]
    fn driver_is_given_room_for_its_whole_log() {
        unsafe extern "C" fn dump(
            position: *mut CUlogIterator,
            text: *mut c_char,
            size: *mut usize,
            _flags: u32,
        ) -> CUresult {
            // SAFETY: the wrapper under test passes places that are valid for reads and writes.
            let room = unsafe { &mut *size };
            // As the driver of CUDA 13.0 does not.
            assert!(*room > 25_600, "the buffer has {room} bytes");
            let text: *mut [u8; 18] = text.cast();
            // SAFETY: the wrapper under test passes places that are valid for reads and writes.
            unsafe { *text = *b"[1][77][CUDA][E] a" };
            *room = 18;
            // SAFETY: the wrapper under test passes places that are valid for reads and writes.
            unsafe { *position = 1 };
            CUresult::CUDA_SUCCESS
        }

        let api = Api {
            cuLogsDumpToMemory: Some(dump),
            ..Api::empty()
        };
        let mark = Mark {
            position: Mutex::new(Some(0)),
            lost: Mutex::new(Box::default()),
            process: std::process::id(),
        };
        let text = mark.read(
            &api,
            Function::cuMemAlloc_v2,
            CUresult::CUDA_ERROR_INVALID_VALUE,
            "",
        );
        assert_eq!(text.as_deref(), Some("[1][77][CUDA][E] a"));
    }

    #[test]
    fn last_lines_are_kept() {
        let mut lines = vec!["first", "second", "third"];
        keep_last(&mut lines, 13);
        assert_eq!(lines, ["second", "third"]);
        keep_last(&mut lines, 5);
        assert_eq!(lines, [""; 0]);
    }

    #[test]
    fn lines_that_repeat_the_error_are_left_out() {
        let lines = vec![
            "[11:07:41.060][77][CUDA][E] [pool] cannot do that",
            "[11:07:41.061][77][CUDA][E] [pool] cannot do that",
            "[11:07:41.062][77][CUDA][E][cuMemPoolSetAccess] invalid argument",
            "[11:07:41.063][77][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemPoolSetAccess",
        ];
        assert_eq!(telling(lines.clone(), "invalid argument"), lines[..1]);
        assert_eq!(telling(lines.clone(), "another"), [lines[0], lines[2]]);
    }

    #[test]
    fn lost_context_messages_are_carried_once() {
        let mark = Mark::nowhere();
        assert!(mark.is_new(&["[1][77][CUDA][E] a kernel read address 0"]));
        assert!(!mark.is_new(&["[2][78][CUDA][E] a kernel read address 0"]));
        assert!(mark.is_new(&["[3][77][CUDA][E] a kernel read address 8"]));
    }
}

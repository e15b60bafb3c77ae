//! The driver's own log: what it says about calls that failed.
//!
//! An error takes along what the log says of its call. Only a call that has failed reads the log, and it does so directly: reading is
//! not observed, and a failure to read is no error. What was read once is not read again, so an error does not repeat what an earlier
//! one said; with several threads that fail at once, lines go to the error whose function they name.

mod listener;
mod reader;

use std::ffi::c_char;

use curium_sys::{Api, CUlogIterator, CUresult, Function};

pub use self::listener::{LogLevel, LogListener};
pub use self::reader::LogReader;
use crate::lock::Mutex;

/// The most that an error takes along, in bytes.
const LIMIT: usize = 4096;

/// How far errors have read the log of a driver.
pub(crate) struct Mark {
    position: Mutex<Option<CUlogIterator>>,
    /// The process that set the mark. A lock of the driver may be held for ever in one that was forked from it.
    process: u32,
}

impl Mark {
    /// The end of the log as it is now, if the driver has one.
    #[inline]
    pub(crate) fn now(api: &Api) -> Self {
        let mut position = 0;
        let set = api.cuLogsCurrent.map(|current| {
            // SAFETY: `position` is a valid place for the answer, and 0 is the only value of the flags.
            unsafe { current(&raw mut position, 0) }
        });
        let position = (set == Some(CUresult::CUDA_SUCCESS)).then_some(position);
        Self { position: Mutex::new(position), process: std::process::id() }
    }

    /// No place in any log.
    #[inline]
    pub(crate) const fn nowhere() -> Self {
        Self { position: Mutex::new(None), process: 0 }
    }

    /// What the driver has logged since the last time, as far as it may concern a call of `function` that has returned `code`.
    #[cold]
    #[inline]
    pub(crate) fn read(&self, api: &Api, function: Function, code: CUresult) -> Option<Box<str>> {
        if is_silent(code) || self.process != std::process::id() {
            return None;
        }
        let dump = api.cuLogsDumpToMemory?;
        let mut buffer = vec![0_u8; LIMIT];
        let mut size = buffer.len();
        let mut position = self.position.lock();
        let (place, text, size_place) =
            (&raw mut *position.as_mut()?, buffer.as_mut_ptr().cast::<c_char>(), &raw mut size);
        // SAFETY: `text` has room for as many bytes as `size_place` says, and the iterator is one of this driver.
        let result = unsafe { dump(place, text, size_place, 0) };
        drop(position);
        if result != CUresult::CUDA_SUCCESS {
            return None;
        }
        let text = String::from_utf8_lossy(&buffer[..size.min(LIMIT)]);
        let lines = concerning(&text, function);
        (!lines.is_empty()).then(|| lines.join("\n").into())
    }
}

/// Whether `code` says of the driver that it is not to be asked, or is no failure of anything.
#[inline]
fn is_silent(code: CUresult) -> bool {
    [
        CUresult::CUDA_ERROR_DEINITIALIZED,
        CUresult::CUDA_ERROR_NOT_INITIALIZED,
        CUresult::CUDA_ERROR_NOT_PERMITTED,
        CUresult::CUDA_ERROR_NOT_READY,
    ]
    .contains(&code)
}

/// The lines of a text that may concern a call of `function`: drivers write about a call line by line, each with its thread, and last
/// what it returned. What another call has left there, which failed unseen, is not about this one.
#[inline]
fn concerning(text: &str, function: Function) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| may_concern(line, function)) {
        match returned(line) {
            Some(other) if base_name(other) != function.base_name() => {
                lines.retain(|kept| thread(kept) != thread(line));
            }
            _ => lines.push(line),
        }
    }
    lines
}

/// The thread that a line names in its second pair of brackets.
#[inline]
fn thread(line: &str) -> Option<&str> {
    line.split(['[', ']']).nth(3)
}

/// The function that has returned an error, if that is what a line says.
#[inline]
fn returned(line: &str) -> Option<&str> {
    let (_, message) = line.rsplit_once(']')?;
    let (_, function) = message.trim_start().strip_prefix("Returning ")?.rsplit_once(" from ")?;
    Some(function.trim())
}

/// Whether a line of the log, which says in brackets what function it is about, says none other than `function`.
#[inline]
fn may_concern(line: &str, function: Function) -> bool {
    let named = line.split(['[', ']']).find(|field| {
        field.strip_prefix("cu").is_some_and(|rest| rest.starts_with(char::is_uppercase) && !rest.contains(' '))
    });
    named.is_none_or(|named| base_name(named) == function.base_name()) && !line.trim_matches('\0').trim().is_empty()
}

/// `cuMemAlloc` of `cuMemAlloc_v2_ptds`.
#[inline]
fn base_name(symbol: &str) -> &str {
    let symbol = symbol.strip_suffix("_ptsz").or_else(|| symbol.strip_suffix("_ptds")).unwrap_or(symbol);
    match symbol.rsplit_once("_v") {
        Some((base, number)) if number.parse::<u32>().is_ok() => base,
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_names_another_function_does_not_concern_the_call() {
        let line = "[22:21:32.099][25642][CUDA][E][cuMemAlloc_v2_ptds] There is too little memory";
        assert!(may_concern(line, Function::cuMemAlloc_v2));
        assert!(may_concern(line, Function::cuMemAlloc));
        assert!(!may_concern(line, Function::cuMemAllocAsync));
        assert!(may_concern("Log was truncated", Function::cuMemAllocAsync));
        assert!(!may_concern("", Function::cuMemAllocAsync));
    }

    #[test]
    fn lines_of_an_earlier_call_of_the_thread_do_not_concern_a_later_one() {
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
        assert_eq!(mark.read(&Api::empty(), Function::cuInit, CUresult::CUDA_ERROR_NO_DEVICE), None);
    }
}

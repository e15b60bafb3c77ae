//! The origin of an object: the call that created it, and its stack.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::Function;

/// The call that created an object.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// `None` for objects that a worker created.
    pub(crate) function: Option<Function>,
    /// The stack of the call, if stacks are kept.
    pub(crate) backtrace: Option<Arc<Backtrace>>,
    /// A number that increases with each created object.
    pub(crate) number: u64,
}

/// The call that a thread is executing.
#[derive(Clone, Copy)]
struct Call {
    function: Function,
    keeps_stack: bool,
}

thread_local! {
    static CALL: Cell<Option<Call>> = const { Cell::new(None) };
    /// The stream whose work the thread executes.
    static STREAM: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Runs work of a stream. The caller contains panics.
pub(crate) fn within_stream<T>(stream: u64, work: impl FnOnce() -> T) -> T {
    let outer = STREAM.replace(Some(stream));
    let result = work();
    STREAM.set(outer);
    result
}

/// Returns a description of the call or the work that this thread executes, as in "freed by
/// cuMemFree"; empty if there is none.
pub(crate) fn description() -> String {
    match (STREAM.get(), CALL.get()) {
        (Some(stream), _) => format!("in stream {stream}"),
        (None, Some(call)) => format!("by {}", call.function.base_name()),
        (None, None) => String::new(),
    }
}

/// Runs the body of a call and attributes the objects that it creates to the call.
pub(crate) fn within<T>(function: Function, keeps_stack: bool, body: impl FnOnce() -> T) -> T {
    /// Leaves the call when the body ends, including by a panic.
    struct Guard(Option<Call>);

    impl Drop for Guard {
        fn drop(&mut self) {
            CALL.set(self.0);
        }
    }

    let _guard = Guard(CALL.replace(Some(Call {
        function,
        keeps_stack,
    })));
    body()
}

impl Origin {
    /// Returns the origin of an object that is created now.
    pub(crate) fn here() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let call = CALL.get();
        let keeps_stack = call.is_some_and(|call| call.keeps_stack);
        Self {
            function: call.map(|call| call.function),
            backtrace: keeps_stack.then(|| Arc::new(Backtrace::force_capture())),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// Returns the frames of a stack that belong to the caller: those below the simulator's, up to the
/// start of the thread.
pub(crate) fn caller_frames(backtrace: &str) -> Vec<String> {
    let mut frames: Vec<String> = Vec::new();
    for line in backtrace.lines().map(str::trim) {
        match (line.strip_prefix("at "), frames.last_mut()) {
            (Some(location), Some(frame)) => *frame = format!("{frame} ({location})"),
            _ => frames.push(
                line.split_once(": ")
                    .map_or(line, |(_, name)| name)
                    .to_owned(),
            ),
        }
    }
    let first = frames
        .iter()
        .rposition(|frame| frame.contains("curium_sim::"))
        .map_or(0, |last| last + 1);
    frames
        .into_iter()
        .skip(first)
        .take_while(|frame| !frame.contains("__rust_begin_short_backtrace"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_originate_from_the_innermost_call() {
        assert_eq!(Origin::here().function, None);
        within(Function::cuInit, false, || {
            within(Function::cuStreamCreate, false, || {
                assert_eq!(Origin::here().function, Some(Function::cuStreamCreate));
            });
            assert_eq!(Origin::here().function, Some(Function::cuInit));
            assert!(Origin::here().backtrace.is_none());
        });
        let panicked =
            std::panic::catch_unwind(|| within(Function::cuInit, true, || panic!("on purpose")));
        assert!(panicked.is_err() && Origin::here().function.is_none());
    }

    #[test]
    fn simulator_and_thread_start_are_omitted() {
        let backtrace = "   0: std::backtrace::Backtrace::force_capture
             at /rustc/library/std/src/backtrace.rs:1:2
   1: curium_sim::origin::Origin::here
   2: core::ops::function::FnOnce::call_once
   3: curium_sim::entry::one_slot::cuStreamCreate
   4: program::make_stream
             at ./src/main.rs:12:5
   5: program::main
   6: std::sys::backtrace::__rust_begin_short_backtrace
   7: main";
        let expected = ["program::make_stream (./src/main.rs:12:5)", "program::main"];
        assert_eq!(caller_frames(backtrace), expected);
    }
}

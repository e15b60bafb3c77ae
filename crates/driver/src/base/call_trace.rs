//! Traces of driver calls enabled by an environment variable, without modifying the program.
//!
//! Each call is appended as it ends, with a single write, as an event of the trace event format. A
//! program that dies leaves a complete record, and a program with child processes writes a single
//! file. The list of events is not closed, which the format allows.

use std::cell::Cell;
use std::env;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use curium_sys::has_raised_privileges;

use crate::{Call, CallObserver, emit_event, observe_calls};

const VARIABLE: &str = "CURIUM_TRACE";

/// The file, and the time at which this process started to write to it, on both clocks.
struct FileTrace {
    file: File,
    begin: Instant,
    since_1970: Duration,
}

/// Appends every driver call of this process to the file named by the environment variable, if it
/// is set. The variable is read once, and ignored in a process with elevated privileges.
pub(crate) fn begin_from_environment() {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| {
        let Some(path) =
            env::var_os(VARIABLE).filter(|path| !path.is_empty() && !has_raised_privileges())
        else {
            return;
        };
        match FileTrace::open(Path::new(&path)) {
            // The observer is never removed: the trace ends with the process.
            Ok(trace) => std::mem::forget(observe_calls(trace)),
            Err(error) => {
                emit_event!(
                    ERROR,
                    "{VARIABLE} is {path:?}, which cannot be written: {error}"
                );
            }
        }
    });
}

impl FileTrace {
    fn open(path: &Path) -> io::Result<Self> {
        let file = match OpenOptions::new().append(true).create_new(true).open(path) {
            Ok(mut file) => {
                file.write_all(b"[\n")?;
                file
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().append(true).open(path)?
            }
            Err(error) => return Err(error),
        };
        let since_1970 = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Ok(Self {
            file,
            begin: Instant::now(),
            since_1970,
        })
    }

    fn event(&self, call: &Call<'_>) -> String {
        let start =
            Microseconds(self.since_1970 + call.started.saturating_duration_since(self.begin));
        let function = call.function;
        let code = call.code.0;
        let duration = Microseconds(call.duration);
        let process = process::id();
        let thread = thread_number();
        format!(
            "{{\"name\":\"{function}\",\"cat\":\"call\",\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{start},\
             \"dur\":{duration},\"args\":{{\"code\":{code}}}}},\n"
        )
    }
}

/// A time in microseconds, the unit of the trace event format.
#[derive(Clone, Copy, Debug)]
pub struct Microseconds(pub Duration);

thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

static LAST_THREAD: AtomicU64 = AtomicU64::new(0);

/// Returns a number that identifies the calling thread in traces.
#[must_use]
pub fn thread_number() -> u64 {
    if THREAD.get() == 0 {
        THREAD.set(LAST_THREAD.fetch_add(1, Ordering::Relaxed) + 1);
    }
    THREAD.get()
}

impl fmt::Display for Microseconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        write!(
            formatter,
            "{}.{:03}",
            nanoseconds / 1_000,
            nanoseconds % 1_000
        )
    }
}

impl CallObserver for FileTrace {
    fn after(&self, call: &Call<'_>) {
        // A failure to write a trace must not disturb the program.
        let _ = (&self.file).write_all(self.event(call).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_three_digits_after_the_point() {
        assert_eq!(
            Microseconds(Duration::from_nanos(1_002_003)).to_string(),
            "1002.003"
        );
        assert_eq!(Microseconds(Duration::from_nanos(7)).to_string(), "0.007");
    }
}

//! A trace of the calls that a program makes, for programs that load the simulator as their driver.
//!
//! `CURIUM_SIM_TRACE` names the file. Each call is appended as an event of the trace event format
//! when it ends, by a single write. The file therefore survives a crash of the program, and child
//! processes share one file. The list of events is not closed, which the format allows. A set-uid
//! program ignores the variable.

use std::cell::Cell;
use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use curium_sys::{CUresult, Function, has_raised_privileges};

const VARIABLE: &str = "CURIUM_SIM_TRACE";

/// The file, and the time at which this process opened it, by two clocks.
struct CallTrace {
    file: File,
    begin: Instant,
    since_1970: Duration,
}

thread_local! {
    /// The number of the calling thread; 0 before its first call.
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// Returns the trace of this process, if the environment requests one.
fn trace() -> Option<&'static CallTrace> {
    static TRACE: OnceLock<Option<CallTrace>> = OnceLock::new();
    TRACE.get_or_init(CallTrace::from_environment).as_ref()
}

/// Runs `call`, and records it if the calls of this process are traced.
pub(crate) fn traced(function: Function, call: impl FnOnce() -> CUresult) -> CUresult {
    let Some(trace) = trace() else { return call() };
    let started = Instant::now();
    let code = call();
    trace.add(function, code, started, started.elapsed());
    code
}

impl CallTrace {
    #[expect(
        clippy::print_stderr,
        reason = "a C program has no other channel for the message"
    )]
    fn from_environment() -> Option<Self> {
        let path =
            env::var_os(VARIABLE).filter(|path| !path.is_empty() && !has_raised_privileges())?;
        match Self::open(Path::new(&path)) {
            Ok(trace) => Some(trace),
            Err(error) => {
                eprintln!("curium-sim: {VARIABLE}: cannot write to {path:?}: {error}");
                None
            }
        }
    }

    fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = match options.append(true).create_new(true).open(path) {
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

    fn add(&self, function: Function, code: CUresult, started: Instant, duration: Duration) {
        let event = self.event(function, code, started, duration);
        // A trace that cannot be written must not disturb the program.
        let _ = (&self.file).write_all(event.as_bytes());
    }

    fn event(
        &self,
        function: Function,
        code: CUresult,
        started: Instant,
        duration: Duration,
    ) -> String {
        let start = self.since_1970 + started.saturating_duration_since(self.begin);
        let start = microseconds(start);
        let duration = microseconds(duration);
        let code = code.0;
        let process = process::id();
        let thread = this_thread();
        format!(
            "{{\"name\":\"{function}\",\"cat\":\"call\",\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{start},\
             \"dur\":{duration},\"args\":{{\"code\":{code}}}}},\n"
        )
    }
}

fn this_thread() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    if THREAD.get() == 0 {
        THREAD.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
    }
    THREAD.get()
}

/// Returns a time in microseconds, with nanoseconds after the decimal point.
fn microseconds(time: Duration) -> String {
    format!("{}.{:03}", time.as_nanos() / 1_000, time.as_nanos() % 1_000)
}

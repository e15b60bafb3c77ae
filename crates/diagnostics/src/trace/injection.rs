//! The library of `curium trace`: records the activities of a program that it is loaded into.
//!
//! The driver loads the library that `CUDA_INJECTION64_PATH` names during `cuInit`, and calls
//! `InitializeInjection`. The records of each buffer are appended to the file that
//! `CURIUM_TRACE_ACTIVITIES` names with a single write, as events of the trace event format: child
//! processes share one file, and a program that is killed leaves the buffers that were full.

use std::collections::{HashMap, HashSet};
use std::env;
use std::ffi::{CStr, OsString, c_int};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process;
use std::ptr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use curium_driver::extend::Microseconds;
use curium_driver::sys::cupti::{CUpti_CallbackDomain, Cupti};
use curium_driver::sys::has_raised_privileges;
use parking_lot::Mutex;

use super::TraceActivities;
use super::activity::{Activity, Location, Name};
use super::collector::{HostCalls, Sink, Subscription};
use super::error::{Result, cupti_call};
use super::json::Text;

/// The file to which activities are appended.
const VARIABLE: &str = "CURIUM_TRACE_ACTIVITIES";

/// Leaves out host calls if it is set.
const WITHOUT_CALLS: &str = "CURIUM_TRACE_WITHOUT_CALLS";

/// The first thread number of streams in viewers, which have 32-bit numbers. Those of a device
/// begin with a multiple.
const STREAMS_OF_DEVICE: u64 = 1_000_000;

/// The subscription of this process, which is flushed when the process exits.
static SUBSCRIPTION: OnceLock<Subscription> = OnceLock::new();

/// The file, and the difference of its clock from CUPTI's in nanoseconds.
struct ActivityFile {
    file: File,
    cupti: Cupti,
    offset: OnceLock<i128>,
    state: Mutex<FileState>,
}

#[derive(Default)]
struct FileState {
    /// The rows whose names were written.
    named: HashSet<u64>,
    /// The devices of contexts, which the records of waits lack.
    devices: HashMap<u32, u32>,
}

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

/// Starts to record the activities of this process. The driver calls it during `cuInit`.
///
/// The result is 1: a program runs without its trace if it cannot be recorded.
// SAFETY: the driver looks for this name in injected libraries only.
#[unsafe(no_mangle)]
extern "C" fn InitializeInjection() -> c_int {
    let path = env::var_os(VARIABLE).filter(|path| !path.is_empty() && !has_raised_privileges());
    if let Some(path) = path
        && let Err(error) = start(&path)
    {
        report(&error);
    }
    1
}

#[expect(
    clippy::print_stderr,
    reason = "the traced program has no other channel for the message"
)]
fn report(error: &dyn std::fmt::Display) {
    eprintln!("curium trace: device work is not recorded: {error}");
}

fn start(path: &OsString) -> Result<(), Box<dyn std::error::Error>> {
    if SUBSCRIPTION.get().is_some() {
        return Ok(());
    }
    let cupti = Cupti::load()?;
    let sink = Arc::new(ActivityFile {
        file: open(Path::new(path))?,
        cupti: cupti.clone(),
        offset: OnceLock::new(),
        state: Mutex::default(),
    });
    let calls = match env::var_os(WITHOUT_CALLS) {
        Some(_) => HostCalls::NotRecorded,
        None => HostCalls::Recorded,
    };
    let subscription = Subscription::start(
        "curium trace",
        &cupti,
        Arc::clone(&sink) as Arc<dyn Sink>,
        TraceActivities::all(),
        calls,
    )?;
    let timestamp = subscription.timestamp()?;
    let _ = sink.offset.set(unix_time() - i128::from(timestamp));
    let _ = SUBSCRIPTION.set(subscription);
    // SAFETY: the function takes and returns nothing, does not unwind, and the library stays
    // loaded. If the registration fails, the last buffer is missing.
    unsafe { atexit(flush) };
    Ok(())
}

extern "C" fn flush() {
    if let Some(subscription) = SUBSCRIPTION.get() {
        // The process exits: nobody receives the error.
        let _ = subscription.flush();
    }
}

fn open(path: &Path) -> io::Result<File> {
    match OpenOptions::new().append(true).create_new(true).open(path) {
        Ok(mut file) => {
            file.write_all(b"[\n")?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().append(true).open(path)
        }
        Err(error) => Err(error),
    }
}

/// Returns the nanoseconds since 1970.
fn unix_time() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |time| time.as_nanos() as i128)
}

impl Sink for ActivityFile {
    fn receive(&self, activities: Vec<Activity>, _: u64) {
        let mut state = self.state.lock();
        let mut text = String::new();
        for activity in &activities {
            // Writing to a `String` cannot fail.
            let _ = self.write(&mut text, &mut state, activity);
        }
        // A trace that cannot be written must not disturb the program.
        let _ = (&self.file).write_all(text.as_bytes());
    }
}

impl ActivityFile {
    fn write(
        &self,
        text: &mut String,
        state: &mut FileState,
        activity: &Activity,
    ) -> std::fmt::Result {
        if activity.end == 0 {
            return Ok(());
        }
        let thread = match activity.location {
            Location::Thread(thread) => thread.into(),
            Location::Stream {
                device,
                context,
                stream,
            } => state.stream_row(text, device, context, stream)?,
        };
        let kind = activity.kind;
        let process = process::id();
        let started = Microseconds(self.since_1970(activity.start));
        let duration = Microseconds(Duration::from_nanos(
            activity.end.saturating_sub(activity.start),
        ));
        let name = self.name(&activity.name);
        write!(
            text,
            "{{\"name\":{},\"cat\":\"{kind}\",\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{started},\
             \"dur\":{duration},\"args\":{{",
            Text(&name)
        )?;
        let arguments = [
            ("code", activity.code.map(u64::from)),
            ("bytes", activity.bytes),
            ("graph_node", activity.graph_node),
        ];
        let mut separator = "";
        for (name, value) in arguments {
            if let Some(value) = value {
                write!(text, "{separator}\"{name}\":{value}")?;
                separator = ",";
            }
        }
        text.push_str("}},\n");
        Ok(())
    }

    fn since_1970(&self, cupti: u64) -> Duration {
        let offset = self.offset.get().copied().unwrap_or_default();
        let time = i128::from(cupti).saturating_add(offset);
        Duration::from_nanos(u64::try_from(time).unwrap_or_default())
    }

    fn name<'a>(&self, name: &'a Name) -> std::borrow::Cow<'a, str> {
        match name {
            Name::Text(name) => (&**name).into(),
            Name::Fixed(name) => (*name).into(),
            Name::Callback { is_runtime, id } => {
                let domain = if *is_runtime {
                    CUpti_CallbackDomain::CUPTI_CB_DOMAIN_RUNTIME_API
                } else {
                    CUpti_CallbackDomain::CUPTI_CB_DOMAIN_DRIVER_API
                };
                let mut text = ptr::null();
                // SAFETY: the place is valid for writes.
                let found = unsafe {
                    cupti_call!(
                        self.cupti.api(),
                        cuptiGetCallbackName(domain, *id, &raw mut text)
                    )
                };
                if found.is_err() || text.is_null() {
                    return format!("function {id}").into();
                }
                // SAFETY: the name is a C string of the library, which stays loaded.
                let text = unsafe { CStr::from_ptr(text) };
                text.to_string_lossy()
            }
        }
    }
}

impl FileState {
    /// Returns the thread number of a stream in viewers, whose name is written before its first
    /// event.
    fn stream_row(
        &mut self,
        text: &mut String,
        device: Option<u32>,
        context: u32,
        stream: u32,
    ) -> Result<u64, std::fmt::Error> {
        let device = match device {
            Some(device) => {
                self.devices.insert(context, device);
                device
            }
            None => self.devices.get(&context).copied().unwrap_or_default(),
        };
        let row = (u64::from(device) + 1) * STREAMS_OF_DEVICE + u64::from(stream);
        if self.named.insert(row) {
            let process = process::id();
            let stream = match stream {
                0 => "no stream".to_owned(),
                stream => format!("stream {stream}"),
            };
            writeln!(
                text,
                "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{process},\"tid\":{row},\
                 \"args\":{{\"name\":\"device {device}, {stream}\"}}}},"
            )?;
        }
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_follow_row_names() {
        let mut state = FileState::default();
        let mut text = String::new();
        let rows = [(Some(1), 7), (None, 7), (Some(1), 8)]
            .map(|(device, stream)| state.stream_row(&mut text, device, 3, stream));
        assert_eq!(rows, [Ok(2_000_007), Ok(2_000_007), Ok(2_000_008)]);
        assert_eq!(text.matches("thread_name").count(), 2, "{text}");
        assert!(text.contains("device 1, stream 7"), "{text}");
    }
}

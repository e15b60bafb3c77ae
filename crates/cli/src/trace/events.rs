//! The events of a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use comfy_table::{CellAlignment, Table, presets};
use serde::Deserialize;

use crate::count::counted;

/// The number of functions in the summary, and of device operations.
const SHOWN: usize = 10;

/// The summary of a trace.
#[derive(Debug, Default)]
pub(super) struct Events {
    functions: BTreeMap<String, Function>,
    /// Device operations by kind and name.
    operations: BTreeMap<(String, String), Function>,
    processes: BTreeSet<u64>,
    threads: BTreeSet<(u64, u64)>,
}

/// The calls of one function, or the operations of one name.
#[derive(Debug, Default)]
struct Function {
    calls: u64,
    failures: u64,
    microseconds: f64,
}

#[derive(Deserialize)]
struct Event {
    name: String,
    #[serde(default)]
    cat: String,
    ph: String,
    pid: u64,
    tid: u64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    args: Arguments,
}

#[derive(Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    code: u32,
}

impl Events {
    /// Completes the list in the file, so that it is valid JSON, and summarizes it. Drops an
    /// incomplete last event, which a killed program leaves behind.
    pub(super) fn close(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("{} could not be read", path.display()))?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let closed = format!("{}\n]\n", whole.trim_end_matches(','));
        let events: Vec<Event> = serde_json::from_str(&closed)
            .with_context(|| format!("{} is not a trace", path.display()))?;
        fs::write(path, closed)
            .with_context(|| format!("{} could not be written", path.display()))?;
        Ok(events.into_iter().collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.operations.is_empty()
    }
}

impl FromIterator<Event> for Events {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        let mut sum = Self::default();
        // Other events name the rows.
        for event in events.into_iter().filter(|event| event.ph == "X") {
            let Event {
                name,
                cat,
                pid,
                tid,
                dur,
                args,
                ..
            } = event;
            sum.processes.insert(pid);
            let function = if cat == "call" {
                sum.threads.insert((pid, tid));
                sum.functions.entry(name).or_default()
            } else {
                sum.operations.entry((cat, name)).or_default()
            };
            function.calls += 1;
            function.failures += u64::from(args.code != 0);
            function.microseconds += dur;
        }
        sum
    }
}

impl fmt::Display for Events {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut functions: Vec<_> = self.functions.iter().collect();
        functions.sort_by(|(_, one), (_, other)| other.microseconds.total_cmp(&one.microseconds));
        if !functions.is_empty() {
            let mut table = new_table(["function", "calls", "failed", "µs"], 1);
            for (name, function) in functions.iter().take(SHOWN) {
                table.add_row([
                    (*name).clone(),
                    function.calls.to_string(),
                    function.failures.to_string(),
                    format!("{:.1}", function.microseconds),
                ]);
            }
            writeln!(formatter, "{table}")?;
        }
        let mut operations: Vec<_> = self.operations.iter().collect();
        operations.sort_by(|(_, one), (_, other)| other.microseconds.total_cmp(&one.microseconds));
        if !operations.is_empty() {
            let mut table = new_table(["device work", "name", "count", "µs"], 2);
            for ((kind, name), operation) in operations.iter().take(SHOWN) {
                table.add_row([
                    kind.clone(),
                    name.clone(),
                    operation.calls.to_string(),
                    format!("{:.1}", operation.microseconds),
                ]);
            }
            writeln!(formatter, "{table}")?;
        }
        let calls: u64 = self.functions.values().map(|function| function.calls).sum();
        let functions = functions.len();
        let threads = self.threads.len();
        write!(
            formatter,
            "{} of {} on {} of {}",
            counted(calls, "call", "calls"),
            counted(functions, "function", "functions"),
            counted(threads, "thread", "threads"),
            counted(self.processes.len(), "process", "processes"),
        )?;
        if operations.is_empty() {
            return Ok(());
        }
        let count: u64 = self
            .operations
            .values()
            .map(|operation| operation.calls)
            .sum();
        write!(
            formatter,
            ", {}",
            counted(count, "device operation", "device operations")
        )
    }
}

/// Returns a table whose columns from `numbers` on are aligned to the right.
fn new_table(header: [&str; 4], numbers: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY.with_rounded_corners());
    table.set_header(header);
    for column in numbers..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"name":"cuInit","cat":"call","ph":"X","pid":7,"tid":1,"ts":1.5,"dur":2.25,"args":{"code":0}},"#;

    fn closed(text: &str) -> (Result<Events>, String) {
        let folder = tempfile::tempdir().expect("failed to create a folder");
        let path = folder.path().join("trace.json");
        fs::write(&path, text).expect("the folder is writable");
        let events = Events::close(&path);
        (events, fs::read_to_string(path).expect("the file is there"))
    }

    #[test]
    fn list_is_closed_and_an_event_cut_short_is_left_out() {
        let (events, text) = closed(&format!("[\n{EVENT}\n{EVENT}\n{{\"name\":\"cuLau"));
        let events = events.expect("this is a trace");
        assert_eq!(events.functions["cuInit"].calls, 2);
        assert!((events.functions["cuInit"].microseconds - 4.5).abs() < 1e-9);
        let list: Vec<serde_json::Value> = serde_json::from_str(&text).expect("the list is closed");
        assert_eq!(list.len(), 2);
    }

    /// Text that is no trace is an error.
    #[test]
    fn trace_without_events_is_empty() {
        assert!(closed("[\n").0.expect("this is a trace").is_empty());
        assert!(closed("hello\nworld\n").0.is_err());
    }

    #[test]
    fn device_work_is_counted_apart_from_calls() {
        let row = r#"{"name":"thread_name","ph":"M","pid":7,"tid":1000007,"args":{"name":"device 0, stream 7"}},"#;
        let kernel = r#"{"name":"saxpy","cat":"kernel","ph":"X","pid":7,"tid":1000007,"ts":2,"dur":5,"args":{}},"#;
        let (events, _) = closed(&format!("[\n{EVENT}\n{row}\n{kernel}\n{kernel}\n"));
        let text = events.expect("this is a trace").to_string();
        assert!(
            text.contains("1 call of 1 function on 1 thread of 1 process, 2 device operations"),
            "{text}"
        );
        assert!(text.contains("saxpy") && text.contains("10.0"), "{text}");
    }

    #[test]
    fn summary_begins_with_the_longest_operation() {
        let text = [("cuInit", 1.0), ("cuLaunchKernel", 9.0)]
            .into_iter()
            .map(|(name, dur)| Event {
                name: name.to_owned(),
                cat: "call".to_owned(),
                ph: "X".to_owned(),
                pid: 1,
                tid: 1,
                dur,
                args: Arguments { code: 0 },
            })
            .collect::<Events>()
            .to_string();
        assert!(text.find("cuLaunchKernel") < text.find("cuInit"), "{text}");
        assert!(
            text.contains("2 calls of 2 functions on 1 thread of 1 process"),
            "{text}"
        );
    }
}

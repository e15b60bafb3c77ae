//! The trace event format.

use std::fmt;
use std::io;

use curium_driver::extend::Microseconds;

use super::{CallRecord, Calls, Work, WorkRecord};

/// The process number of the host in viewers; devices follow.
const HOST: i64 = 1;

/// A quoted string.
struct Text<'a>(&'a str);

/// Writes the trace as one object.
pub(super) fn write(writer: &mut impl io::Write, calls: &Calls, work: &Work) -> io::Result<()> {
    write!(writer, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{")?;
    let calls_dropped = calls.dropped;
    let work_dropped = work.dropped;
    let lost = work.lost;
    write!(
        writer,
        "\"calls_dropped\":{calls_dropped},\"work_dropped\":{work_dropped},\"work_lost\":{lost}}},"
    )?;
    write!(writer, "\"traceEvents\":[")?;
    write_names(writer, calls, work)?;
    calls
        .records
        .iter()
        .try_for_each(|call| write_call(writer, call))?;
    work.records
        .iter()
        .try_for_each(|work| write_work(writer, work))?;
    writeln!(writer, "\n]}}")?;
    writer.flush()
}

/// Writes the names of the rows. The host comes first, so that every other event is preceded by a comma.
fn write_names(writer: &mut impl io::Write, calls: &Calls, work: &Work) -> io::Result<()> {
    write!(
        writer,
        "\n{}",
        Name {
            kind: "process_name",
            process: HOST,
            thread: 0,
            name: "host"
        }
    )?;
    for (thread, name) in &calls.threads {
        write!(
            writer,
            ",\n{}",
            Name {
                kind: "thread_name",
                process: HOST,
                thread: *thread,
                name
            }
        )?;
    }
    let mut rows: Vec<(i64, u64)> = work
        .records
        .iter()
        .map(|work| (process(work), work.stream))
        .collect();
    rows.sort_unstable();
    rows.dedup();
    let mut last = HOST;
    for (process, stream) in rows {
        if process != last {
            let name = format!("device {}", process - HOST - 1);
            write!(
                writer,
                ",\n{}",
                Name {
                    kind: "process_name",
                    process,
                    thread: 0,
                    name: &name
                }
            )?;
            last = process;
        }
        let name = format!("stream {stream}");
        write!(
            writer,
            ",\n{}",
            Name {
                kind: "thread_name",
                process,
                thread: stream,
                name: &name
            }
        )?;
    }
    Ok(())
}

fn write_call(writer: &mut impl io::Write, call: &CallRecord) -> io::Result<()> {
    let name = Text(call.function.name());
    let thread = call.thread;
    let code = call.code.0;
    let started = Microseconds(call.started);
    let duration = Microseconds(call.duration);
    write!(
        writer,
        ",\n{{\"name\":{name},\"cat\":\"call\",\"ph\":\"X\",\"pid\":{HOST},\"tid\":{thread},"
    )?;
    write!(
        writer,
        "\"ts\":{started},\"dur\":{duration},\"args\":{{\"code\":{code}}}}}"
    )
}

fn write_work(writer: &mut impl io::Write, work: &WorkRecord) -> io::Result<()> {
    let name = Text(&work.name);
    let process = process(work);
    let stream = work.stream;
    let started = Microseconds(work.started);
    let duration = Microseconds(work.duration);
    write!(
        writer,
        ",\n{{\"name\":{name},\"cat\":\"work\",\"ph\":\"X\",\"pid\":{process},\"tid\":{stream},"
    )?;
    write!(writer, "\"ts\":{started},\"dur\":{duration}}}")
}

/// Returns the process number of a device in viewers.
fn process(work: &WorkRecord) -> i64 {
    HOST + 1 + i64::from(work.device)
}

/// The name of a row.
struct Name<'a> {
    kind: &'static str,
    process: i64,
    thread: u64,
    name: &'a str,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            process,
            thread,
            name,
        } = self;
        let name = Text(name);
        write!(
            formatter,
            "{{\"name\":\"{kind}\",\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},"
        )?;
        write!(formatter, "\"args\":{{\"name\":{name}}}}}")
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        formatter.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(formatter, "\\{character}")?,
                control if u32::from(control) < 0x20 => {
                    write!(formatter, "\\u{:04x}", u32::from(control))?;
                }
                other => formatter.write_char(other)?,
            }
        }
        formatter.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let text = "a \"name\" with \\, a\ttab, a\nline, \u{1} and \u{fc}\u{2028}";
        assert_eq!(
            Text(text).to_string(),
            "\"a \\\"name\\\" with \\\\, a\\u0009tab, a\\u000aline, \\u0001 and \u{fc}\u{2028}\""
        );
    }
}

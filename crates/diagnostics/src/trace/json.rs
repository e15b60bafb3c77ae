//! The trace event format.

use std::fmt;
use std::io;

use curium_driver::extend::Microseconds;

use super::timeline::{Timeline, TraceItem, TraceRow};

/// The process number of the host in viewers; devices follow.
const HOST: i64 = 1;

/// A quoted string.
pub(super) struct Text<'a>(pub(super) &'a str);

/// Writes the timeline as one object.
pub(super) fn write(writer: &mut impl io::Write, timeline: &Timeline) -> io::Result<()> {
    let Timeline {
        calls_dropped,
        work_dropped,
        work_lost,
        ..
    } = timeline;
    write!(writer, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{")?;
    write!(
        writer,
        "\"calls_dropped\":{calls_dropped},\"work_dropped\":{work_dropped},\"work_lost\":{work_lost}}},"
    )?;
    write!(writer, "\"traceEvents\":[")?;
    write_names(writer, timeline)?;
    for item in &timeline.items {
        write_item(writer, item)?;
    }
    writeln!(writer, "\n]}}")?;
    writer.flush()
}

/// Writes the names of the rows. The host comes first, so that every other event is preceded by a
/// comma.
fn write_names(writer: &mut impl io::Write, timeline: &Timeline) -> io::Result<()> {
    write_process(writer, "\n", HOST, "host")?;
    let mut last = HOST;
    for row in timeline.rows() {
        let process = process(row);
        if process != last {
            let device = process - HOST - 1;
            write_process(writer, ",\n", process, &format!("device {device}"))?;
            last = process;
        }
        let name = Name {
            kind: "thread_name",
            process,
            thread: thread(row),
            name: &timeline.row_name(row),
        };
        write!(writer, ",\n{name}")?;
    }
    Ok(())
}

fn write_process(
    writer: &mut impl io::Write,
    separator: &str,
    process: i64,
    name: &str,
) -> io::Result<()> {
    let name = Name {
        kind: "process_name",
        process,
        thread: 0,
        name,
    };
    write!(writer, "{separator}{name}")
}

fn write_item(writer: &mut impl io::Write, item: &TraceItem) -> io::Result<()> {
    let name = Text(&item.name);
    let category = item.kind;
    let process = process(item.row);
    let thread = thread(item.row);
    let started = Microseconds(item.start);
    let duration = Microseconds(item.duration);
    write!(
        writer,
        ",\n{{\"name\":{name},\"cat\":\"{category}\",\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},"
    )?;
    write!(writer, "\"ts\":{started},\"dur\":{duration}")?;
    let arguments = [
        ("code", item.code.map(u64::from)),
        ("bytes", item.bytes),
        ("graph_node", item.graph_node),
    ];
    let mut separator = ",\"args\":{";
    for (name, value) in arguments {
        if let Some(value) = value {
            write!(writer, "{separator}\"{name}\":{value}")?;
            separator = ",";
        }
    }
    let end = if separator == "," { "}}" } else { "}" };
    writer.write_all(end.as_bytes())
}

/// Returns the process number of a row in viewers.
fn process(row: TraceRow) -> i64 {
    match row {
        TraceRow::Thread { .. } => HOST,
        TraceRow::Stream { device, .. } => HOST + 1 + i64::from(device),
    }
}

/// Returns the thread number of a row in viewers.
fn thread(row: TraceRow) -> u64 {
    match row {
        TraceRow::Thread { number } => number,
        TraceRow::Stream { stream, .. } => stream,
    }
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
    use crate::trace::timeline::TraceItemKind;
    use crate::trace::timeline::tests::{STREAM, item};

    #[test]
    fn text_is_escaped() {
        let text = "a \"name\" with \\, a\ttab, a\nline, \u{1} and \u{fc}\u{2028}";
        assert_eq!(
            Text(text).to_string(),
            "\"a \\\"name\\\" with \\\\, a\\u0009tab, a\\u000aline, \\u0001 and \u{fc}\u{2028}\""
        );
    }

    #[test]
    fn arguments_are_written_if_there_are_any() -> io::Result<()> {
        let mut copy = item(TraceItemKind::Copy, "copy", STREAM, 1..3);
        let mut text = Vec::new();
        write_item(&mut text, &copy)?;
        copy.bytes = Some(64);
        copy.graph_node = Some(2);
        write_item(&mut text, &copy)?;
        let event = ",\n{\"name\":\"copy\",\"cat\":\"copy\",\"ph\":\"X\",\"pid\":2,\"tid\":7,\"ts\":1.000,\"dur\":2.000";
        let expected = format!("{event}}}{event},\"args\":{{\"bytes\":64,\"graph_node\":2}}}}");
        assert_eq!(String::from_utf8_lossy(&text), expected);
        Ok(())
    }
}

//! Parsing of the compiler's log.

use super::hint::hint;
use super::{Diagnostic, Severity, SourceLocation};
use crate::Program;

/// The word for each severity. A word precedes those that are suffixes of it.
const SEVERITIES: [(&str, Severity); 6] = [
    ("catastrophic error", Severity::Error),
    ("internal error", Severity::Error),
    ("error", Severity::Error),
    ("warning", Severity::Warning),
    ("remark", Severity::Remark),
    ("note", Severity::Note),
];

/// The number of spaces by which the compiler indents quoted source lines.
const INDENTATION: usize = 2;

/// Parses the diagnostics of a compiler's log, in order, and adds the lines of `program` that they
/// refer to.
pub(crate) fn parse(log: &str, program: &Program) -> Vec<Diagnostic> {
    let mut reader = Reader::default();
    log.lines().for_each(|line| reader.read(line));
    let mut diagnostics = reader.diagnostics;
    for diagnostic in &mut diagnostics {
        with_source(diagnostic, program);
    }
    diagnostics
}

/// Parses a log line by line.
#[derive(Default)]
struct Reader {
    diagnostics: Vec<Diagnostic>,
    /// `true` while lines may belong to the last diagnostic, which ends at an empty line.
    is_open: bool,
}

impl Reader {
    fn read(&mut self, line: &str) {
        if line.trim().is_empty() {
            self.is_open = false;
        } else if let Some(diagnostic) = head(line) {
            self.begin(diagnostic);
        } else if let (true, Some(last)) = (self.is_open, self.diagnostics.last_mut()) {
            detail(last, line);
        }
    }

    /// Adds a diagnostic. A note belongs to the preceding diagnostic.
    fn begin(&mut self, diagnostic: Diagnostic) {
        self.is_open = true;
        match self.diagnostics.last_mut() {
            Some(last) if diagnostic.severity == Severity::Note => last.notes.push(diagnostic),
            _ => self.diagnostics.push(diagnostic),
        }
    }
}

/// Parses a line below the first line of `diagnostic`: the source, a caret below it, or a note.
fn detail(diagnostic: &mut Diagnostic, line: &str) {
    let text = line.trim();
    if text == "^" {
        return caret(diagnostic, line);
    }
    let last = diagnostic
        .notes
        .last_mut()
        .filter(|note| note.location.is_none());
    match last {
        // Older compilers write the location of an instantiation on its own line.
        Some(note) if text.ends_with("here") && text.starts_with('(') => {
            note.message.push(' ');
            note.message.push_str(text);
        }
        _ if line.starts_with(' ') => diagnostic.notes.push(note(line)),
        _ => {}
    }
}

/// Handles a caret. The preceding line is the source of the most recent item with a location.
fn caret(diagnostic: &mut Diagnostic, line: &str) {
    let Some(source) = diagnostic.notes.pop_if(|note| note.location.is_none()) else {
        return;
    };
    let location = match diagnostic
        .notes
        .iter_mut()
        .rev()
        .find_map(|note| note.location.as_mut())
    {
        Some(location) => Some(location),
        None => diagnostic.location.as_mut(),
    };
    if let Some(location) = location {
        location.column = column(line);
        location.source = Some(
            source
                .message
                .get(INDENTATION..)
                .unwrap_or_default()
                .to_owned(),
        );
    }
}

/// Creates a note without a location. It is trimmed later if it does not turn out to be a source
/// line.
fn note(line: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Note,
        number: None,
        message: line.to_owned(),
        location: None,
        notes: Vec::new(),
        hint: None,
    }
}

fn column(caret: &str) -> Option<u32> {
    let position = caret.find('^')?.checked_sub(INDENTATION)?;
    u32::try_from(position + 1).ok()
}

/// Trims notes, adds hints, and takes source lines from the program if possible: only newer
/// versions include them in the log.
fn with_source(diagnostic: &mut Diagnostic, program: &Program) {
    diagnostic.message = diagnostic.message.trim().to_owned();
    diagnostic.hint = hint(&diagnostic.message);
    if let Some(location) = &mut diagnostic.location {
        let line = (location.line as usize).checked_sub(1);
        let source = program
            .file_text(&location.file)
            .zip(line)
            .and_then(|(text, line)| text.lines().nth(line));
        if let Some(source) = source {
            location.source = Some(source.to_owned());
        }
    }
    for note in &mut diagnostic.notes {
        with_source(note, program);
    }
}

/// Parses the first line of a diagnostic, such as `a.cu(3): warning #177-D: variable "x" was
/// declared but never referenced`, `nvrtc: error: unrecognized option`, or
/// `remark: a.cu:1:90: not inlined`.
fn head(line: &str) -> Option<Diagnostic> {
    placed_head(line)
        .or_else(|| optimizer_head(line))
        .or_else(|| {
            let (severity, number, message) = kind(line.strip_prefix("nvrtc: ")?)?;
            Some(diagnostic(severity, number, message, None))
        })
}

fn placed_head(line: &str) -> Option<Diagnostic> {
    // A file name may contain anything: the first match of a location is used.
    line.match_indices("): ").find_map(|(end, separator)| {
        // Only the digits are read backwards, so a long line is read once.
        let before = &line[..end];
        let opening = before.trim_end_matches(|character: char| character.is_ascii_digit());
        let file = opening.strip_suffix('(')?;
        let line_number = before[opening.len()..].parse().ok()?;
        let (severity, number, message) = kind(&line[end + separator.len()..])?;
        let location = SourceLocation {
            file: file.to_owned(),
            line: line_number,
            column: None,
            source: None,
        };
        Some(diagnostic(severity, number, message, Some(location)))
    })
}

fn optimizer_head(line: &str) -> Option<Diagnostic> {
    let (location, message) = line.strip_prefix("remark: ")?.split_once(": ")?;
    let mut parts = location.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    let file = parts.next()?;
    let location = SourceLocation {
        file: file.to_owned(),
        line,
        column: Some(column),
        source: None,
    };
    Some(diagnostic(Severity::Remark, None, message, Some(location)))
}

fn diagnostic(
    severity: Severity,
    number: Option<&str>,
    message: &str,
    location: Option<SourceLocation>,
) -> Diagnostic {
    let number = number.map(str::to_owned);
    let message = message.to_owned();
    Diagnostic {
        severity,
        number,
        message,
        location,
        notes: Vec::new(),
        hint: None,
    }
}

/// Parses severity, number and message of `warning #177-D: variable …`.
fn kind(text: &str) -> Option<(Severity, Option<&str>, &str)> {
    let (word, severity) = SEVERITIES
        .into_iter()
        .find(|(word, _)| text.starts_with(word))?;
    let (number, message) = text[word.len()..].split_once(": ")?;
    match number.strip_prefix(" #") {
        Some(number) => Some((severity, Some(number), message)),
        None => number.is_empty().then_some((severity, None, message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that four times the text takes about four times as long, and not sixteen times. A
    /// busy machine gets several tries.
    fn assert_linear(unit: &str, read: impl Fn(&str)) {
        let text = unit.repeat(65_536 / unit.len());
        let longer = text.repeat(4);
        let is_linear = (0..8).any(|_| {
            let start = std::time::Instant::now();
            read(&text);
            let limit = start.elapsed() * 10 + std::time::Duration::from_millis(20);
            let start = std::time::Instant::now();
            read(&longer);
            start.elapsed() < limit
        });
        assert!(is_linear, "{unit:?}: four times the text takes too long");
    }

    #[test]
    fn lines_are_read_in_linear_time() {
        for unit in [
            "): ",
            "(1): ",
            "a(1): error",
            "1): ",
            "(",
            "error: ",
            "remark: a:",
            ": ",
            "(1): error #",
        ] {
            assert_linear(unit, |line| drop(head(line)));
        }
    }

    fn read(log: &str) -> Vec<Diagnostic> {
        parse(log, &Program::default())
    }

    fn location(diagnostic: &Diagnostic) -> (&str, u32, Option<u32>) {
        let location = diagnostic.location.as_ref().expect("no location");
        (&location.file, location.line, location.column)
    }

    #[test]
    fn caret_gives_the_column_where_tabs_count_as_one() {
        let log = "bad.cu(4): error: identifier \"foo\" is undefined\n  \t  float y = foo(3);\n  \t            ^\n\n\
                   1 error detected in the compilation of \"bad.cu\".\n";
        let [error] = &read(log)[..] else {
            panic!("one error: {:?}", read(log))
        };
        assert_eq!(
            (location(error), error.severity),
            (("bad.cu", 4, Some(14)), Severity::Error)
        );
        assert_eq!(
            error
                .location
                .as_ref()
                .and_then(|location| location.source.as_deref()),
            Some("\t  float y = foo(3);")
        );
        assert_eq!(
            (error.message.as_str(), error.notes.len()),
            ("identifier \"foo\" is undefined", 0)
        );
    }

    #[test]
    fn log_without_carets_takes_the_line_from_the_program() {
        let log = "a.h(2): error: expected an expression\n\nbad.cu(2): warning #1105-D: #warning directive: hm\n\n";
        let program = Program::new("bad.cu", "one\ntwo\n").with_header("a.h", "three\nfour");
        let diagnostics = parse(log, &program);
        let sources: Vec<_> = diagnostics
            .iter()
            .filter_map(|diagnostic| diagnostic.location.as_ref()?.source.as_deref())
            .collect();
        assert_eq!(sources, ["four", "two"]);
        assert_eq!(
            (location(&diagnostics[1]), diagnostics[1].number.as_deref()),
            (("bad.cu", 2, None), Some("1105-D"))
        );
        assert_eq!(diagnostics[1].message, "#warning directive: hm");
    }

    #[test]
    fn neither_file_names_nor_messages_confuse_the_parser() {
        let log =
            "dir (1): x/y.cu(7): error: static assertion failed with \"no: (1): error: really\"\n";
        let [diagnostic] = &read(log)[..] else {
            panic!("one diagnostic: {:?}", read(log))
        };
        assert_eq!(location(diagnostic), ("dir (1): x/y.cu", 7, None));
        assert_eq!(
            diagnostic.message,
            "static assertion failed with \"no: (1): error: really\""
        );
    }

    #[test]
    fn notes_belong_to_the_diagnostic_before_them() {
        let log = "k.cu(7): error: no instance of overloaded function \"g\" matches the argument list\n            \
                   argument types are: (const char [2])\n    g(\"x\");\n    ^\n\
                   k.cu(2): note #3326-D: function \"g(int)\" does not match\n  __device__ void g(int);\n                  ^\n\n\
                   k.cu(4): warning #177-D: variable \"unused\" was declared but never referenced\n";
        let [error, warning] = &read(log)[..] else {
            panic!("an error and a warning: {:?}", read(log))
        };
        assert_eq!(
            (location(error), location(warning)),
            (("k.cu", 7, Some(3)), ("k.cu", 4, None))
        );
        let [types, candidate] = &error.notes[..] else {
            panic!("two notes: {error:?}")
        };
        assert_eq!(
            (types.message.as_str(), types.location.as_ref()),
            ("argument types are: (const char [2])", None)
        );
        assert_eq!(
            (location(candidate), candidate.number.as_deref()),
            (("k.cu", 2, Some(17)), Some("3326-D"))
        );
    }

    #[test]
    fn instantiation_is_joined_to_its_note() {
        let log = "k.cu(1): error: expression must have class type\n          detected during instantiation of \"T f(T) [with \
                   T=int]\" \n(6): here\n\n";
        let [note] = &read(log)[0].notes[..] else {
            panic!("one note: {:?}", read(log))
        };
        assert_eq!(
            note.message,
            "detected during instantiation of \"T f(T) [with T=int]\"  (6): here"
        );
    }

    #[test]
    fn optimizer_remarks_are_parsed() {
        let log = "nvrtc: error: unrecognized option --x found\n\nremark: k.cu:1:78: f not inlined into k because: never\n";
        let [error, remark] = &read(log)[..] else {
            panic!("two: {:?}", read(log))
        };
        assert_eq!(
            (error.severity, error.location.as_ref()),
            (Severity::Error, None)
        );
        assert_eq!(error.message, "unrecognized option --x found");
        assert_eq!(
            (location(remark), remark.severity),
            (("k.cu", 1, Some(78)), Severity::Remark)
        );
        assert_eq!(remark.message, "f not inlined into k because: never");
    }

    #[test]
    fn catastrophic_errors_are_errors() {
        let log = "a.cu(1): catastrophic error: cannot open source file \"b.h\"\n  #include \"b.h\"\n                ^\n\n\
                   1 catastrophic error detected in the compilation of \"a.cu\".\nCompilation terminated.\n";
        let [error] = &read(log)[..] else {
            panic!("one error: {:?}", read(log))
        };
        assert_eq!(
            (error.severity, error.message.as_str()),
            (Severity::Error, "cannot open source file \"b.h\"")
        );
    }
}

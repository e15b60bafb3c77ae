//! Source lines of PTX with the calls of inlined functions.
//!
//! `llc` writes the innermost line of an instruction only. So each location of the optimized IR
//! gets a number in place of its line, and the numbers in the PTX are replaced by the directives of
//! the line and of all calls.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::KERNEL;
use super::location::Locations;
use super::names::readable;

/// The number of the first location. Smaller numbers in the PTX are lines: those of the starts of
/// functions.
const FIRST_NUMBER: usize = 1 << 24;

/// The source lines of a module.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Vec<Line>,
}

/// A line of a source file, in one place of the inlined calls.
#[derive(Debug)]
struct Line {
    path: String,
    line: u32,
    /// The name of the inlined function that contains the line; empty for a function that is not
    /// inlined.
    function: String,
    call: Option<Position>,
}

/// A column of a line.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// The index of the line.
    line: usize,
    column: u32,
}

/// The directives of a PTX text.
struct Directives<'a> {
    lines: &'a [Line],
    text: String,
    /// The numbers of the source files.
    files: HashMap<String, usize>,
    /// The names of inlined functions, in the order of their labels.
    functions: Vec<&'a str>,
    /// The last line that a directive of the current function has for each position: file, line and
    /// column.
    latest: HashMap<(usize, u32, u32), usize>,
}

impl Lines {
    /// Replaces the lines of the locations of LLVM IR by numbers.
    pub(crate) fn number(ir: &str) -> (String, Self) {
        let metadata: Vec<&str> = ir.lines().filter(|line| line.starts_with('!')).collect();
        let locations = Locations::new(&metadata);
        let mut this = Self { lines: Vec::new() };
        let mut indices = HashMap::new();
        let mut text = String::with_capacity(ir.len() + ir.len() / 64);
        for line in ir.lines() {
            let position = if line.starts_with('!') && line.contains("!DILocation(") {
                this.position(line, &locations, &mut indices)
            } else {
                None
            };
            match (position, line.split_once("line: ")) {
                (Some(position), Some((before, after))) => {
                    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
                    let _ = write!(
                        text,
                        "{before}line: {}{after}",
                        FIRST_NUMBER + position.line
                    );
                }
                _ => text.push_str(line),
            }
            text.push('\n');
        }
        (text, this)
    }

    /// Returns the line of the node of a location, or that of the innermost call if the node has
    /// none.
    fn position<'a>(
        &mut self,
        node: &'a str,
        locations: &Locations<'a>,
        indices: &mut HashMap<(&'a str, &'a str, Option<&'a str>), usize>,
    ) -> Option<Position> {
        let location = locations.location(node)?;
        let call = locations.call(node);
        let call_position = call
            .and_then(|call| locations.node(call))
            .filter(|call| !is_entry(call, locations))
            .and_then(|call| self.position(call, locations, indices));
        let Ok(line @ 1..) = location.line().parse() else {
            return call_position;
        };
        let index = *indices
            .entry((location.line(), locations.scope(node)?, call))
            .or_insert_with(|| {
                let function = call_position.and_then(|_| locations.function(node));
                self.lines.push(Line {
                    path: location.path(),
                    line,
                    function: function
                        .map_or_else(String::new, |symbol| without_arguments(&readable(symbol))),
                    call: call_position,
                });
                self.lines.len() - 1
            });
        let column = location.column().parse().unwrap_or(0);
        Some(Position {
            line: index,
            column,
        })
    }

    /// Removes the calls: the lines are the innermost ones.
    pub(crate) fn without_calls(mut self) -> Self {
        for line in &mut self.lines {
            line.call = None;
        }
        self
    }

    /// Replaces the numbers in a PTX text by the lines, with a directive for each call.
    pub(crate) fn restore(&self, ptx: &str) -> String {
        let mut directives = Directives {
            lines: &self.lines,
            text: String::with_capacity(ptx.len() + ptx.len() / 4),
            files: HashMap::new(),
            functions: Vec::new(),
            latest: HashMap::new(),
        };
        for line in ptx.lines() {
            if let Some(file) = line.trim_start().strip_prefix(".file\t") {
                directives.add_file(file);
            }
        }
        let mut next_file = directives.files.values().max().map_or(1, |file| file + 1);
        let mut new_files = Vec::new();
        for line in &self.lines {
            if !directives.files.contains_key(&line.path) {
                directives.files.insert(line.path.clone(), next_file);
                new_files.push((next_file, &line.path));
                next_file += 1;
            }
        }
        for line in ptx.lines() {
            let location = line.trim_start().strip_prefix(".loc\t");
            if let Some(position) = location.and_then(position) {
                directives.append(position);
                continue;
            }
            if line.starts_with('}') {
                directives.latest.clear();
            }
            directives.text.push_str(line);
            directives.text.push('\n');
        }
        let mut text = directives.text;
        for (file, path) in new_files {
            let _ = writeln!(text, "\t.file\t{file} \"{path}\"");
        }
        if !directives.functions.is_empty() {
            text.push_str("\t.section\t.debug_str\n\t{\n");
            for (label, function) in directives.functions.iter().enumerate() {
                let _ = write!(text, "$L__info_string{label}:\n\t.b8 ");
                for byte in function.bytes() {
                    let _ = write!(text, "{byte},");
                }
                text.push_str("0\n");
            }
            text.push_str("\t}\n");
        }
        text
    }
}

/// Returns `true` for a location in the function that `#[kernel]` generates, which calls the
/// function of the source.
fn is_entry<'a>(node: &'a str, locations: &Locations<'a>) -> bool {
    let function = locations.function(node);
    function.is_some_and(|function| function.starts_with(KERNEL))
}

/// Returns the path of a function without its generic arguments, `::<…>`.
fn without_arguments(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, arguments)) = rest.split_once("::<") {
        text.push_str(before);
        let mut depth = 1;
        let mut previous = '<';
        let end = arguments.find(|character| {
            match character {
                '<' => depth += 1,
                // Not the arrow of a result.
                '>' if previous != '-' => depth -= 1,
                _ => {}
            }
            previous = character;
            depth == 0
        });
        rest = end.map_or("", |end| &arguments[end + 1..]);
    }
    text + rest
}

/// Parses the operands of a `.loc` directive, if its line is a number.
fn position(operands: &str) -> Option<Position> {
    let mut operands = operands.split_whitespace().skip(1);
    let number: usize = operands.next()?.parse().ok()?;
    let column = operands.next()?.parse().ok()?;
    let line = number.checked_sub(FIRST_NUMBER)?;
    Some(Position { line, column })
}

impl<'a> Directives<'a> {
    /// Adds the file of a directive of `llc`.
    fn add_file(&mut self, operands: &str) {
        if let Some((number, path)) = operands.split_once(' ')
            && let Ok(number) = number.parse()
        {
            self.files.insert(path.trim_matches('"').to_owned(), number);
        }
    }

    /// Appends the directive of a position, after those of the calls that are not the last ones of
    /// their positions.
    fn append(&mut self, position: Position) {
        let lines: &'a [Line] = self.lines;
        let Some(line) = lines.get(position.line) else {
            return;
        };
        if let Some(call) = line.call
            && self.latest.get(&self.place(call)) != Some(&call.line)
        {
            self.append(call);
        }
        let place = self.place(position);
        self.latest.insert(place, position.line);
        let (file, number, column) = place;
        let _ = write!(self.text, "\t.loc\t{file} {number} {column}");
        if let Some(call) = line.call {
            let label = self.label(&line.function);
            let (file, number, column) = self.place(call);
            let _ = write!(
                self.text,
                ", function_name $L__info_string{label}, inlined_at {file} {number} {column}"
            );
        }
        self.text.push('\n');
    }

    /// Returns the operands of the directive of a position.
    fn place(&self, position: Position) -> (usize, u32, u32) {
        let line = &self.lines[position.line];
        (self.files[&line.path], line.line, position.column)
    }

    /// Returns the number of the label of a function's name.
    fn label(&mut self, function: &'a str) -> usize {
        let label = self.functions.iter().position(|other| *other == function);
        label.unwrap_or_else(|| {
            self.functions.push(function);
            self.functions.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IR: &str = r#"define void @f() !dbg !2 {
  store i32 1, ptr null, !dbg !6
  store i32 2, ptr null, !dbg !8
  ret void, !dbg !9
}
!1 = !DIFile(filename: "src/lib.rs", directory: "")
!2 = distinct !DISubprogram(name: "f", linkageName: "f", scope: null, file: !1, line: 7)
!3 = !DIFile(filename: "src/shared.rs", directory: "curium-kernel-0.1.0")
!4 = distinct !DISubprogram(name: "fill", linkageName: "_ZN6shared4fill17h0123456789abcdefE", scope: !10, file: !3, line: 70)
!5 = distinct !DISubprogram(name: "write", scope: !4, file: !3, line: 90)
!6 = !DILocation(line: 91, column: 3, scope: !5, inlinedAt: !7)
!7 = distinct !DILocation(line: 71, column: 9, scope: !4, inlinedAt: !11)
!8 = !DILocation(line: 0, scope: !5, inlinedAt: !7)
!9 = !DILocation(line: 12, column: 1, scope: !2)
!10 = !DINamespace(name: "shared", scope: null)
!11 = distinct !DILocation(line: 10, column: 5, scope: !2)
"#;

    /// Returns the number of the location of a node.
    fn number_in(ir: &str, node: &str) -> String {
        let line = ir.lines().find(|line| line.starts_with(node));
        let line = line
            .unwrap_or_default()
            .split_once("line: ")
            .unwrap_or_default()
            .1;
        line.split(',').next().unwrap_or_default().to_owned()
    }

    #[test]
    fn lines_have_the_calls_of_inlined_functions() {
        let (ir, lines) = Lines::number(IR);
        let [write, fill, merged, end] =
            ["!6 ", "!7 ", "!8 ", "!9 "].map(|node| number_in(&ir, node));
        // An instruction without a line is at the innermost call that has one.
        assert_eq!(merged, fill);
        assert!(ir.contains("scope: !10, file: !3, line: 70)"), "{ir}");
        let ptx = format!(
            ".visible .entry f()\n{{\n\t.loc\t1 7 0\n\t.loc\t2 {write} 3\n\tst.b32 [0], 1;\n\t.loc\t2 {merged} 0\n\tst.b32 [0], 2;\n\
             \t.loc\t1 {end} 1\n\tret;\n}}\n\t.file\t1 \"src/lib.rs\"\n"
        );
        let expected = "\
.visible .entry f()
{
\t.loc\t1 7 0
\t.loc\t1 10 5
\t.loc\t2 71 9, function_name $L__info_string0, inlined_at 1 10 5
\t.loc\t2 91 3, function_name $L__info_string1, inlined_at 2 71 9
\tst.b32 [0], 1;
\t.loc\t2 71 0, function_name $L__info_string0, inlined_at 1 10 5
\tst.b32 [0], 2;
\t.loc\t1 12 1
\tret;
}
\t.file\t1 \"src/lib.rs\"
\t.file\t2 \"curium-kernel-0.1.0/src/shared.rs\"
\t.section\t.debug_str
\t{
$L__info_string0:
\t.b8 115,104,97,114,101,100,58,58,102,105,108,108,0
$L__info_string1:
\t.b8 119,114,105,116,101,0
\t}
";
        assert_eq!(lines.restore(&ptx), expected);
        let innermost = lines.without_calls().restore(&ptx);
        assert!(
            innermost.contains("\t.loc\t2 91 3\n") && !innermost.contains("inlined_at"),
            "{innermost}"
        );
    }

    /// The function that `#[kernel]` generates is no caller.
    #[test]
    fn entries_are_left_out() {
        let ir = IR.replace("linkageName: \"f\"", "linkageName: \"curium.kernel.f\"");
        let (ir, lines) = Lines::number(&ir);
        let [write, fill] = ["!6 ", "!7 "].map(|node| number_in(&ir, node));
        let ptx = format!("\t.loc\t1 {write} 3\n\t.loc\t1 {fill} 9\n\t.file\t1 \"src/lib.rs\"\n");
        let directives = "\t.loc\t2 71 9\n\t.loc\t2 91 3, function_name $L__info_string0, inlined_at 2 71 9\n\t.loc\t2 71 9\n";
        let restored = lines.restore(&ptx);
        assert!(restored.starts_with(directives), "{restored}");
    }

    #[test]
    fn functions_have_no_generic_arguments() {
        for (path, name) in [
            ("app::run", "app::run"),
            (
                "<app::Block<64>>::each::<&mut [u8], fn(u8) -> u8>::{closure#0}",
                "<app::Block<64>>::each::{closure#0}",
            ),
            ("app::both::<app::A<u8>>::inner::<2>", "app::both::inner"),
        ] {
            assert_eq!(without_arguments(path), name);
        }
    }

    /// A text without locations stays as it is.
    #[test]
    fn ptx_without_lines_is_unchanged() {
        let (ir, lines) = Lines::number("define void @f() {\n  ret void\n}\n");
        assert_eq!(ir, "define void @f() {\n  ret void\n}\n");
        let ptx = ".version 7.8\n.visible .entry f()\n{\n\tret;\n}\n";
        assert_eq!(lines.restore(ptx), ptx);
    }
}

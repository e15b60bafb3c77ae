//! Merges several PTX texts: one header, and no declarations of symbols that another text defines.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::symbols::Symbols;
use curium_ptx::syntax::Linkage;

/// One statement at module level.
struct Statement<'a> {
    text: &'a str,
    /// The name of the declared or defined variable or function.
    name: Option<&'a str>,
    linkage: Linkage,
    is_header: bool,
}

/// The directives that declare variables.
const SPACES: [&str; 7] = [
    ".global",
    ".const",
    ".shared",
    ".tex",
    ".texref",
    ".samplerref",
    ".surfref",
];

/// The directives of functions.
const FUNCTIONS: [&str; 2] = [".entry", ".func"];

/// The directives of a header.
const HEADER: [&str; 3] = [".version", ".target", ".address_size"];

/// Merges texts in their order, for the newest version and the highest target of them. A symbol that one text declares and another defines
/// becomes a forward declaration if it is a function, and the definition itself if it is a variable. A function that is declared with a
/// result and defined without one gets the result. As on hardware, callers then read an uninitialized register.
///
/// Symbols that are local to one text are renamed if the name is used elsewhere. `symbols` are those of the texts.
pub(super) fn merge(texts: &[String], symbols: &Symbols) -> String {
    let texts = rename_local_symbols(texts);
    let modules: Vec<Vec<Statement<'_>>> = texts.iter().map(|text| statements(text)).collect();
    let definitions = definitions(&modules, symbols);
    let statements: Vec<&Statement<'_>> = modules.iter().flatten().collect();
    let results: HashMap<&str, &str> = statements
        .iter()
        .filter(|statement| statement.linkage == Linkage::Extern)
        .filter_map(|statement| Some((statement.name?, result(statement.text)?)))
        .collect();
    let mut written = HashSet::new();
    let mut merged: String = HEADER
        .iter()
        .filter_map(|directive| newest(directive, &statements))
        .collect();
    for statement in statements.iter().filter(|statement| !statement.is_header) {
        let definition = statement
            .name
            .and_then(|name| definitions.get(name))
            .filter(|definition| statement.yields_to(definition));
        let text = match definition {
            Some(_) if is_function(statement.text) => statement.declaration(),
            Some(definition) => (*definition).to_owned(),
            None => match statement.name.and_then(|name| results.get(name)) {
                Some(missing)
                    if is_function(statement.text) && result(statement.text).is_none() =>
                {
                    statement
                        .text
                        .replacen(".func", &format!(".func {missing} "), 1)
                }
                _ => statement.text.to_owned(),
            },
        };
        if written.insert(text.clone()) {
            merged.push_str(&text);
            merged.push('\n');
        }
    }
    merged
}

/// Returns the definition that counts of each shared symbol.
fn definitions<'a>(modules: &[Vec<Statement<'a>>], symbols: &Symbols) -> HashMap<&'a str, &'a str> {
    let mut definitions = HashMap::new();
    for (index, module) in modules.iter().enumerate() {
        definitions.extend(
            module
                .iter()
                .filter(|statement| statement.is_definition())
                .filter_map(|statement| Some((statement.name?, statement.text)))
                .filter(|(name, _)| symbols.is_from(name, index)),
        );
    }
    definitions
}

/// Returns the texts with local symbols renamed where another text uses the name.
fn rename_local_symbols(texts: &[String]) -> Vec<Cow<'_, str>> {
    let modules: Vec<Vec<Statement<'_>>> = texts.iter().map(|text| statements(text)).collect();
    let shared = modules
        .iter()
        .flatten()
        .filter(|statement| statement.linkage != Linkage::Internal);
    let mut used_names: HashSet<String> = shared
        .filter_map(|statement| statement.name.map(str::to_owned))
        .collect();
    let mut renamed = Vec::new();
    for (number, (text, module)) in texts.iter().zip(&modules).enumerate() {
        let local = module
            .iter()
            .filter(|statement| statement.linkage == Linkage::Internal);
        let local_names: HashSet<&str> = local.filter_map(|statement| statement.name).collect();
        let (clashing, unique): (Vec<&str>, Vec<&str>) = local_names
            .into_iter()
            .partition(|name| used_names.contains(*name));
        used_names.extend(unique.into_iter().map(str::to_owned));
        let names: HashMap<&str, String> = clashing
            .into_iter()
            .map(|name| (name, format!("{name}$file{number}")))
            .collect();
        renamed.push(if names.is_empty() {
            Cow::Borrowed(text.as_str())
        } else {
            Cow::Owned(rename(text, &names))
        });
    }
    renamed
}

/// Returns the text with renamed symbols. Inner names that shadow them are renamed too, which has no effect.
fn rename(text: &str, names: &HashMap<&str, String>) -> String {
    let mut renamed = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some(first) = remaining.chars().next() {
        let blanks = remaining.len() - skip_blanks(remaining).len();
        let end = match first {
            _ if blanks > 0 => blanks,
            '"' => remaining[1..]
                .find('"')
                .map_or(remaining.len(), |end| end + 2),
            // A directive, or a component of a vector.
            '.' => {
                1 + remaining[1..]
                    .find(|next| !is_name_character(next))
                    .unwrap_or(remaining.len() - 1)
            }
            _ if is_name_character(first) => remaining
                .find(|next| !is_name_character(next))
                .unwrap_or(remaining.len()),
            _ => first.len_utf8(),
        };
        let (word, after) = remaining.split_at(end);
        renamed.push_str(names.get(word).map_or(word, String::as_str));
        remaining = after;
    }
    renamed
}

fn is_name_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$' | '%')
}

/// Returns the newest of the header directives with this prefix, on a separate line.
fn newest(directive: &str, statements: &[&Statement<'_>]) -> Option<String> {
    let newest = statements
        .iter()
        .filter(|statement| statement.is_header && statement.text.starts_with(directive))
        .map(|statement| statement.text.trim())
        .reduce(|a, b| if age(b) > age(a) { b } else { a })?;
    Some(format!("{newest}\n"))
}

/// Returns the numbers of a version or of a target.
fn age(directive: &str) -> Vec<u32> {
    let numbers = directive.split(|character: char| !character.is_ascii_digit());
    numbers.filter_map(|digits| digits.parse().ok()).collect()
}

/// Returns the text with a limit of registers for each kernel that has none.
pub(super) fn limit_registers(text: &str, most: u32) -> String {
    let mut limited = String::new();
    for Statement { text, .. } in statements(text) {
        let body = text
            .find('{')
            .filter(|_| text.contains(".entry") && !text.contains(".maxnreg"));
        let (head, body) = text.split_at(body.unwrap_or(0));
        limited.push_str(head);
        if !head.is_empty() {
            limited.push_str(&format!(".maxnreg {most}\n"));
        }
        limited.push_str(body);
        limited.push('\n');
    }
    limited
}

fn is_function(statement: &str) -> bool {
    FUNCTIONS
        .iter()
        .any(|directive| statement.contains(directive))
}

/// Returns the result of a device function, with its parentheses.
fn result(statement: &str) -> Option<&str> {
    let (_, remaining) = statement.split_once(".func")?;
    skip_blanks(remaining)
        .split_inclusive(')')
        .next()
        .filter(|result| result.starts_with('('))
}

fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    let mut remaining = skip_blanks(text);
    while !remaining.is_empty() {
        let (statement, after) = remaining.split_at(statement_end(remaining));
        statements.push(Statement::new(statement));
        remaining = skip_blanks(after);
    }
    statements
}

impl<'a> Statement<'a> {
    fn new(text: &'a str) -> Self {
        let linkage = match text.split(|next: char| !is_word(next)).next() {
            Some(".visible") => Linkage::Visible,
            Some(".weak") => Linkage::Weak,
            Some(".common") => Linkage::Common,
            Some(".extern") => Linkage::Extern,
            _ => Linkage::Internal,
        };
        let is_symbol = is_function(text) || SPACES.iter().any(|space| text.contains(space));
        let name = name(text).filter(|_| is_symbol && !text.starts_with(".section"));
        Self {
            text,
            name,
            linkage,
            is_header: is_header(text),
        }
    }

    fn is_definition(&self) -> bool {
        let has_body = !is_function(self.text) || self.text.ends_with('}');
        self.linkage != Linkage::Extern && has_body && self.name.is_some()
    }

    /// Returns `true` if a definition replaces this declaration or definition.
    fn yields_to(&self, definition: &str) -> bool {
        match self.linkage {
            Linkage::Extern => true,
            Linkage::Weak | Linkage::Common => self.is_definition() && self.text != definition,
            Linkage::Internal | Linkage::Visible => false,
        }
    }

    /// Returns the function without its body, for a definition that follows elsewhere.
    fn declaration(&self) -> String {
        if self.linkage == Linkage::Extern {
            return self.text.replacen(".extern", ".visible", 1);
        }
        // A kernel is not called, so its declaration is not needed.
        let head = self
            .text
            .split('{')
            .next()
            .filter(|_| !self.text.contains(".entry"));
        head.map_or_else(String::new, |head| {
            format!("{};", head.trim_end().replacen(".weak", ".visible", 1))
        })
    }
}

fn is_header(statement: &str) -> bool {
    HEADER
        .iter()
        .any(|directive| statement.starts_with(directive))
}

/// Returns the end of the first statement. A directive of the header ends at the end of its line or where the next one begins, a function
/// after its body, and everything else after a semicolon.
fn statement_end(text: &str) -> usize {
    if is_header(text) || text.starts_with(".file") {
        return line_end(text);
    }
    // A section has a body, and a function, whose directive has not been read yet.
    let mut has_body = text.starts_with(".section");
    let mut depth = 0_usize;
    let mut position = 0;
    while let Some(character) = text[position..].chars().next() {
        let skipped = text.len() - position - skip_blanks(&text[position..]).len();
        if skipped > 0 {
            position += skipped;
            continue;
        }
        position += character.len_utf8();
        has_body |= FUNCTIONS
            .iter()
            .any(|directive| text[..position].ends_with(directive));
        match character {
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && has_body {
                    return position;
                }
            }
            ';' if depth == 0 => return position,
            _ => {}
        }
    }
    text.len()
}

/// Returns the end of a one-line directive. The next directive may be on the same line.
fn line_end(text: &str) -> usize {
    // A version number contains a dot, while the dot of a directive precedes a letter. Only this line is read.
    let mut characters = text.char_indices().skip(1).peekable();
    let mut is_quoted = false;
    while let Some((position, character)) = characters.next() {
        if character == '\n' {
            return position;
        }
        is_quoted ^= character == '"';
        if character == '.'
            && !is_quoted
            && characters
                .peek()
                .is_some_and(|(_, next)| next.is_ascii_alphabetic())
        {
            return position;
        }
    }
    text.len()
}

/// Returns the name that a statement declares or defines: the word after the directives, and after the result of a function.
fn name(statement: &str) -> Option<&str> {
    let function = FUNCTIONS
        .iter()
        .find_map(|directive| statement.split_once(directive));
    let mut remaining = skip_blanks(function.map_or(statement, |(_, remaining)| remaining));
    if function.is_some() && remaining.starts_with('(') {
        remaining = skip_blanks(remaining.split_once(')')?.1);
    }
    loop {
        let end = remaining
            .find(|character: char| !is_word(character))
            .unwrap_or(remaining.len());
        let (word, after) = remaining.split_at(end);
        match word.chars().next()? {
            '.' | '0'..='9' => remaining = skip_blanks(after),
            _ => return Some(word),
        }
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '.' | '_' | '$' | '%')
}

/// Returns the text without the blanks and comments that it begins with.
fn skip_blanks(text: &str) -> &str {
    let mut remaining = text.trim_start();
    loop {
        let after = if remaining.starts_with("//") {
            remaining.split_once('\n').map_or("", |(_, after)| after)
        } else if remaining.starts_with("/*") {
            remaining.split_once("*/").map_or("", |(_, after)| after)
        } else {
            return remaining;
        };
        remaining = after.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn merge_all(texts: &[String]) -> String {
        let mut symbols = Symbols::default();
        for (index, text) in texts.iter().enumerate() {
            let module =
                curium_ptx::syntax::parse(text).unwrap_or_else(|error| panic!("{error} in {text}"));
            symbols
                .add(&module, index, "a file")
                .expect("the texts agree");
        }
        merge(texts, &symbols)
    }

    fn duration(operation: impl FnOnce()) -> Duration {
        let start = Instant::now();
        operation();
        start.elapsed()
    }

    /// Asserts that four times the text takes about four times as long, and not sixteen times. A busy machine gets several tries.
    fn assert_linear(unit: &str, read: impl Fn(&str)) {
        let text = unit.repeat(65_536 / unit.len());
        let longer = text.repeat(4);
        let is_linear = (0..8).any(|_| {
            let limit = duration(|| read(&text)) * 10 + Duration::from_millis(20);
            duration(|| read(&longer)) < limit
        });
        assert!(is_linear, "{unit:?}: four times the text takes too long");
    }

    #[test]
    fn text_is_split_in_linear_time() {
        for unit in [
            ".visible /* ",
            ".visible // ",
            ".visible \"",
            "/* .weak .global ",
            "// .common .const\n",
            ".visible .global ",
            ".visible .global 1 ",
            ".entry a(",
            ".entry a(.param .align ",
            ".entry ",
            ".entry a(.param .u32 x[",
            ".entry a(.param .u32 x,",
            "/*/",
            "/**/",
            "\"",
            "\\\"",
            ".pragma \"a\";",
            "a",
            "1 ",
            "\n",
            " ",
            "{",
            "}",
            "} ",
            "(",
            ")",
            ";",
            "\u{e9}",
            ".func (",
            ".version 7.8 ",
            ".version 7.8\n",
            ".file 1 ",
            ".section a { ",
            ".visible .global .u32 a; ",
            ".visible .entry k() { ret; } ",
            "// a\n",
            "/* a */ ",
        ] {
            assert_linear(unit, |text| {
                limit_registers(text, 32);
                rename(text, &HashMap::new());
            });
        }
    }

    const CALLER: &str = ".version 7.8\n.target sm_75\n.address_size 64\n\
        .extern .func (.param .b32 r) twice (.param .b32 x); // elsewhere\n\
        .extern .global .align 4 .u32 offset;\n\
        .visible .entry k(.param .u64 p) { { ret; } }\n";
    const CALLEE: &str = ".version 7.8 .target sm_75 .address_size 64\n\
        .visible .global .align 4 .u32 offset = 7;\n\
        .visible .global .align 4 .u32 table[2] = { 1, 2 };\n\
        .visible .func (.param .b32 r) twice (.param .b32 x)\n{ /* } */ ret; }\n";

    #[test]
    fn declarations_resolve_to_other_texts() {
        let merged = merge_all(&[CALLER.to_owned(), CALLEE.to_owned()]);
        assert!(!merged.contains(".extern"), "{merged}");
        assert!(
            merged.contains(".visible .func (.param .b32 r) twice (.param .b32 x);"),
            "{merged}"
        );
        assert_eq!(merged.matches("offset = 7;").count(), 1, "{merged}");
        assert_eq!(merged.matches(".version").count(), 1, "{merged}");
        assert_eq!(merged.matches(".target").count(), 1, "{merged}");
        for kept in [
            "offset = 7;",
            "table[2] = { 1, 2 };",
            "twice (.param .b32 x)\n{ /* } */ ret; }",
            "{ { ret; } }",
        ] {
            assert!(merged.contains(kept), "{kept} in {merged}");
        }
    }

    #[test]
    fn header_has_newest_version_and_highest_target() {
        let texts = [
            ("8.9", "sm_75"),
            ("8.6", "sm_100a, debug"),
            ("8.10", "sm_90"),
        ];
        let texts = texts.map(|(version, target)| {
            format!(".version {version} .target {target} .address_size 64\n")
        });
        assert_eq!(
            merge_all(&texts),
            ".version 8.10\n.target sm_100a, debug\n.address_size 64\n"
        );
    }

    #[test]
    fn definition_gets_the_declared_result() {
        let callee = CALLEE.replace("(.param .b32 r) ", "");
        let merged = merge_all(&[CALLER.to_owned(), callee.clone()]);
        assert_eq!(
            merged.matches(".visible .func (.param .b32 r)").count(),
            2,
            "{merged}"
        );
        assert_eq!(
            merge_all(&[CALLER.replace("(.param .b32 r) ", ""), callee])
                .matches("(.param .b32 r)")
                .count(),
            0
        );
    }

    #[test]
    fn symbols_local_to_one_text_stay_distinct() {
        let texts = [1, 2].map(|step| {
            format!(
                ".version 7.8\n.target sm_75\n.address_size 64\n.global .u32 count; // count in \"count\"\n\
                 .func helper() {{ .reg .u32 %count; atom.global.add.u32 %count, [count], {step}; ret; }}\n\
                 .visible .entry k{step}() {{ call helper; ret; }}\n"
            )
        });
        let merged = merge_all(&texts);
        for line in [
            ".global .u32 count;",
            ".global .u32 count$file1;",
            "[count], 1;",
            "[count$file1], 2;",
        ] {
            assert_eq!(merged.matches(line).count(), 1, "{line} in {merged}");
        }
        assert_eq!(merged.matches("call helper$file1;").count(), 1, "{merged}");
        assert_eq!(
            merged.matches("%count").count(),
            4,
            "a register has a name of its own: {merged}"
        );
        let other = CALLEE.replace(
            ".visible .global .align 4 .u32 table",
            ".global .align 4 .u32 count",
        );
        let merged = merge_all(&[texts[0].clone(), other.clone().replace("count[", "k1[")]);
        assert!(
            merged.contains("k1$file1[2]") && merged.contains(".entry k1()"),
            "{merged}"
        );
    }

    /// Returns a text that defines a variable and a function with this linkage.
    fn defining(linkage: &str, value: u32) -> String {
        format!(
            ".version 7.8\n.target sm_75\n.address_size 64\n{linkage} .global .u32 limit = {value};\n\
             {linkage} .func f()\n{{ .reg .u32 %r; mov.u32 %r, {value}; ret; }}\n.weak .entry k() {{ trap; ret; }}\n"
        )
    }

    #[test]
    fn weak_definition_yields_to_visible_and_earlier() {
        for (files, kept) in [
            ([defining(".weak", 1), defining(".weak", 2)], 1),
            ([defining(".weak", 1), defining(".visible", 2)], 2),
        ] {
            let merged = merge_all(&files);
            assert_eq!(
                merged.matches(&format!("limit = {kept};")).count(),
                1,
                "{merged}"
            );
            assert_eq!(merged.matches("limit =").count(), 1, "{merged}");
            assert_eq!(merged.matches("mov.u32").count(), 1, "{merged}");
            assert!(merged.contains(&format!("%r, {kept};")), "{merged}");
            assert_eq!(merged.matches(".visible .func f();").count(), 1, "{merged}");
            assert_eq!(merged.matches(".entry").count(), 1, "{merged}");
        }
    }

    #[test]
    fn undefined_symbols_stay_declared_once() {
        let merged = merge_all(&[CALLER.to_owned(), CALLER.replace(" k(", " other(")]);
        assert_eq!(merged.matches(".extern .global").count(), 1, "{merged}");
        assert_eq!(merged.matches(".entry").count(), 2, "{merged}");
    }

    #[test]
    fn statements_have_the_names_that_they_declare() {
        let names: Vec<Option<&str>> = statements(CALLEE)
            .iter()
            .map(|statement| statement.name)
            .collect();
        assert_eq!(names[3..], [Some("offset"), Some("table"), Some("twice")]);
        let headers: Vec<&str> = statements(CALLEE)[..3]
            .iter()
            .map(|statement| statement.text.trim())
            .collect();
        assert_eq!(
            headers,
            [".version 7.8", ".target sm_75", ".address_size 64"]
        );
    }

    #[test]
    fn paths_and_debug_sections_stay_whole() {
        let text = ".version 8.0\n.target sm_75\n.file 1 \"/lib/python3.11/a.py\"\n.entry a() { ret; }\n\
                    .section .debug_str { .b8 1 }\n.entry b() { ret; }\n";
        let texts: Vec<&str> = statements(text)
            .iter()
            .map(|statement| statement.text)
            .collect();
        assert_eq!(
            texts[2..],
            [
                ".file 1 \"/lib/python3.11/a.py\"",
                ".entry a() { ret; }",
                ".section .debug_str { .b8 1 }",
                ".entry b() { ret; }"
            ]
        );
    }

    #[test]
    fn register_limit_applies_to_kernels_without_one() {
        let text = ".version 8.0\n.func f() { ret; }\n.entry a(.param .b32 x)\n{ ret; }\n.entry b() .maxnreg 9 { ret; }\n";
        let limited = limit_registers(text, 40);
        assert!(limited.contains("x)\n.maxnreg 40\n{"), "{limited}");
        assert_eq!(limited.matches(".maxnreg").count(), 2, "{limited}");
    }
}

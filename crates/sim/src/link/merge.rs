//! Merges several PTX texts: one header, and no declarations of symbols that another text defines.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use curium_format::ptx::{Linkage, Scanner, Statement, StatementKind, TokenKind, statements};

use crate::link::symbols::Symbols;

/// The directives of a header.
const HEADER: [&str; 3] = [".version", ".target", ".address_size"];

/// Merges texts in their order, for the newest version and the highest target of them. A symbol
/// that one text declares and another defines becomes a forward declaration if it is a function,
/// and the definition itself if it is a variable. A function that is declared with a result and
/// defined without one gets the result. As on hardware, callers then read an uninitialized
/// register.
///
/// Symbols that are local to one text are renamed if the name is used elsewhere. `symbols` are
/// those of the texts.
pub(crate) fn merge(texts: &[String], symbols: &Symbols) -> String {
    let texts = rename_local_symbols(texts);
    let modules: Vec<Vec<Statement<'_>>> = texts
        .iter()
        .map(|text| statements(text).collect())
        .collect();
    let definitions = definitions(&modules, symbols);
    let statements: Vec<&Statement<'_>> = modules.iter().flatten().collect();
    let results: HashMap<&str, &str> = statements
        .iter()
        .filter(|statement| statement.linkage == Linkage::Extern)
        .filter_map(|statement| Some((name(statement)?, statement.result()?)))
        .collect();
    let mut written = HashSet::new();
    let mut merged: String = HEADER
        .iter()
        .filter_map(|directive| newest(directive, &statements))
        .collect();
    for statement in statements
        .iter()
        .filter(|statement| statement.kind != StatementKind::Header)
    {
        let definition = name(statement)
            .and_then(|name| definitions.get(name))
            .filter(|definition| yields_to(statement, definition));
        let text = match definition {
            Some(_) if statement.is_function() => declaration(statement),
            Some(definition) => (*definition).to_owned(),
            None => match name(statement).and_then(|name| results.get(name)) {
                Some(missing) if statement.is_function() && statement.result().is_none() => {
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

/// Returns the name that a statement declares, the first of several.
fn name<'a>(statement: &Statement<'a>) -> Option<&'a str> {
    statement.names().next()
}

/// Returns the definition that counts of each shared symbol.
fn definitions<'a>(modules: &[Vec<Statement<'a>>], symbols: &Symbols) -> HashMap<&'a str, &'a str> {
    let mut definitions = HashMap::new();
    for (index, module) in modules.iter().enumerate() {
        definitions.extend(
            module
                .iter()
                .filter(|statement| statement.is_definition())
                .filter_map(|statement| Some((name(statement)?, statement.text)))
                .filter(|(name, _)| symbols.is_from(name, index)),
        );
    }
    definitions
}

/// Returns the texts with local symbols renamed where another text uses the name.
fn rename_local_symbols(texts: &[String]) -> Vec<Cow<'_, str>> {
    let mut used_names: HashSet<&str> = texts
        .iter()
        .flat_map(|text| statements(text))
        .filter(|statement| statement.linkage != Linkage::Internal)
        .flat_map(|statement| statement.names())
        .collect();
    let mut renamed = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let local_names: HashSet<&str> = statements(text)
            .filter(|statement| statement.linkage == Linkage::Internal)
            .flat_map(|statement| statement.names())
            .collect();
        let (clashing, unique): (Vec<&str>, Vec<&str>) = local_names
            .into_iter()
            .partition(|name| used_names.contains(name));
        used_names.extend(unique);
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

/// Returns the text with renamed symbols. Inner names that shadow them are renamed too, which has
/// no effect.
fn rename(text: &str, names: &HashMap<&str, String>) -> String {
    let mut renamed = String::with_capacity(text.len());
    let mut copied = 0;
    for token in Scanner::new(text).filter(|token| token.kind == TokenKind::Word) {
        if let Some(name) = names.get(token.text) {
            renamed.push_str(&text[copied..token.start]);
            renamed.push_str(name);
            copied = token.end;
        }
    }
    renamed.push_str(&text[copied..]);
    renamed
}

/// Returns the newest of the header directives with this prefix, on a separate line.
fn newest(directive: &str, statements: &[&Statement<'_>]) -> Option<String> {
    let newest = statements
        .iter()
        .map(|statement| statement.text)
        .filter(|text| text.starts_with(directive))
        .reduce(|a, b| if age(b) > age(a) { b } else { a })?;
    Some(format!("{newest}\n"))
}

/// Returns the numbers of a version or of a target.
fn age(directive: &str) -> Vec<u32> {
    let numbers = directive.split(|character: char| !character.is_ascii_digit());
    numbers.filter_map(|digits| digits.parse().ok()).collect()
}

/// Returns the text with a limit of registers for each kernel that has none.
pub(crate) fn limit_registers(text: &str, most: u32) -> String {
    let mut limited = String::new();
    for statement in statements(text) {
        let (head, body) = statement.split_body();
        limited.push_str(head);
        let has_limit = Scanner::new(head).any(|token| token.is_directive("maxnreg"));
        if statement.kind == StatementKind::Entry && !body.is_empty() && !has_limit {
            limited.push_str(&format!(".maxnreg {most}\n"));
        }
        limited.push_str(body);
        limited.push('\n');
    }
    limited
}

/// Returns `true` if a definition replaces this declaration or definition.
fn yields_to(statement: &Statement<'_>, definition: &str) -> bool {
    match statement.linkage {
        Linkage::Extern => true,
        Linkage::Weak | Linkage::Common => {
            statement.is_definition() && statement.text != definition
        }
        Linkage::Internal | Linkage::Visible => false,
    }
}

/// Returns the function without its body, for a definition that follows elsewhere.
fn declaration(statement: &Statement<'_>) -> String {
    if statement.linkage == Linkage::Extern {
        return statement.text.replacen(".extern", ".visible", 1);
    }
    // A kernel is not called, so its declaration is not needed.
    if statement.kind == StatementKind::Entry {
        return String::new();
    }
    let (head, _) = statement.split_body();
    format!("{};", head.trim_end().replacen(".weak", ".visible", 1))
}

#[cfg(test)]
mod tests {
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
    fn register_limit_applies_to_kernels_without_one() {
        let text = ".version 8.0\n.func f() { ret; }\n.entry a(.param .b32 x)\n{ ret; }\n.entry b() .maxnreg 9 { ret; }\n";
        let limited = limit_registers(text, 40);
        assert!(limited.contains("x)\n.maxnreg 40\n{"), "{limited}");
        assert_eq!(limited.matches(".maxnreg").count(), 2, "{limited}");
    }
    /// One statement may declare several variables, of which each is renamed.
    #[test]
    fn every_variable_of_a_statement_is_renamed() {
        let texts = [1, 2].map(|value| {
            format!(
                ".version 7.8\n.target sm_75\n.address_size 64\n.global .u32 one = {value}, two[2] = {{ 3, 4 }};\n\
                 .visible .entry k{value}() {{ .reg .b64 %r; mov.u64 %r, two; ret; }}\n"
            )
        });
        let merged = merge_all(&texts);
        assert_eq!(merged.matches("one$file1 = 2").count(), 1, "{merged}");
        assert_eq!(merged.matches("two$file1").count(), 2, "{merged}");
    }

    /// Bodies, comments and strings contain words that look like directives.
    #[test]
    fn directives_are_not_searched_in_other_text() {
        let text = ".version 8.0\n.target sm_75\n.address_size 64\n.global .u32 a; // .entry {\n\
                    .visible .entry k() /* { .maxnreg 9 */ { ret; }\n";
        let limited = limit_registers(text, 40);
        assert!(limited.contains("*/ .maxnreg 40\n{ ret; }"), "{limited}");
        assert_eq!(limited.matches(".maxnreg 40").count(), 1, "{limited}");
    }
}

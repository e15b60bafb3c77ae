//! Statements of module scope.

use core::iter::{FusedIterator, Peekable};

use super::scanner::{Scanner, Token, TokenKind};

/// A directive, or the declaration or definition of a function or of variables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Statement<'a> {
    /// The text, from the first token to the last.
    pub text: &'a str,
    /// The kind of the statement.
    pub kind: StatementKind,
    /// The visibility of the declared symbols.
    pub linkage: Linkage,
    /// The offset of the body in the text, if there is one.
    body: Option<usize>,
}

/// The kind of a [`Statement`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StatementKind {
    /// `.version`, `.target` or `.address_size`.
    Header,
    /// A kernel.
    Entry,
    /// A device function.
    Function,
    /// Variables in global or constant memory.
    Variable,
    /// Variables in shared memory.
    Shared,
    /// Another directive.
    Other,
}

/// The visibility of a function or variable outside its module.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Linkage {
    /// Visible in this module only.
    #[default]
    Internal,
    /// Visible in other modules: `.visible`.
    Visible,
    /// Defined in another module: `.extern`.
    Extern,
    /// Visible in other modules, and replaceable by another definition: `.weak`.
    Weak,
    /// Visible in other modules, and merged with other declarations: `.common`.
    Common,
}

impl Linkage {
    /// Returns the linkage of a directive without its dot, such as `visible`.
    #[must_use]
    pub fn from_directive(directive: &str) -> Option<Self> {
        match directive {
            "visible" => Some(Self::Visible),
            "extern" => Some(Self::Extern),
            "weak" => Some(Self::Weak),
            "common" => Some(Self::Common),
            _ => None,
        }
    }
}

/// Returns the statements of a PTX text.
#[must_use]
pub fn statements(text: &str) -> Statements<'_> {
    Statements {
        text,
        tokens: Scanner::new(text).peekable(),
    }
}

/// Returns the global variables of a PTX text that can be looked up.
pub fn variables(text: &str) -> impl Iterator<Item = &str> {
    statements(text)
        .filter(|statement| {
            statement.kind == StatementKind::Variable
                && matches!(
                    statement.linkage,
                    Linkage::Visible | Linkage::Weak | Linkage::Common
                )
        })
        .flat_map(|statement| statement.names())
}

/// An iterator over the statements of a text.
#[derive(Clone, Debug)]
pub struct Statements<'a> {
    text: &'a str,
    tokens: Peekable<Scanner<'a>>,
}

impl<'a> Iterator for Statements<'a> {
    type Item = Statement<'a>;

    fn next(&mut self) -> Option<Statement<'a>> {
        let first = self.tokens.next()?;
        let mut statement = Statement {
            text: "",
            kind: kind(first),
            linkage: linkage(first),
            body: None,
        };
        let end = if is_line(first) {
            self.skip_line(first)
        } else {
            self.skip_statement(first, &mut statement)
        };
        statement.text = &self.text[first.start..end];
        Some(statement)
    }
}

impl FusedIterator for Statements<'_> {}

impl<'a> Statements<'a> {
    /// Returns the end of a directive without a semicolon. It ends before the next directive.
    fn skip_line(&mut self, first: Token<'a>) -> usize {
        let mut end = first.end;
        while let Some(token) = self
            .tokens
            .next_if(|token| token.kind != TokenKind::Directive)
        {
            end = token.end;
        }
        end
    }

    /// Returns the end of a statement: that of the body for functions and sections, and a semicolon
    /// for everything else.
    fn skip_statement(&mut self, first: Token<'a>, statement: &mut Statement<'a>) -> usize {
        let mut has_body = first.is_directive("section");
        let mut depth = 0_usize;
        let mut token = first;
        loop {
            if token.kind == TokenKind::Directive && depth == 0 {
                if statement.kind == StatementKind::Other && !has_body {
                    statement.kind = kind(token);
                }
                has_body |= statement.is_function();
            } else if token.is_symbol("{") {
                if depth == 0 && has_body {
                    statement.body = Some(token.start - first.start);
                }
                depth += 1;
            } else if token.is_symbol("}") {
                depth = depth.saturating_sub(1);
                if depth == 0 && has_body {
                    return token.end;
                }
            } else if token.is_symbol(";") && depth == 0 {
                return token.end;
            }
            match self.tokens.next() {
                Some(next) => token = next,
                None => return token.end,
            }
        }
    }
}

impl<'a> Statement<'a> {
    /// Returns `true` for a kernel or a device function.
    #[must_use]
    pub fn is_function(&self) -> bool {
        matches!(self.kind, StatementKind::Entry | StatementKind::Function)
    }

    /// Returns `true` for a function with a body, and for variables that are not `.extern`.
    #[must_use]
    pub fn is_definition(&self) -> bool {
        match self.kind {
            StatementKind::Entry | StatementKind::Function => self.body.is_some(),
            StatementKind::Variable | StatementKind::Shared => self.linkage != Linkage::Extern,
            _ => false,
        }
    }

    /// Returns the text before the body of a function, and the body.
    #[must_use]
    pub fn split_body(&self) -> (&'a str, &'a str) {
        self.text.split_at(self.body.unwrap_or(self.text.len()))
    }

    /// Returns the result of a device function with its parentheses.
    #[must_use]
    pub fn result(&self) -> Option<&'a str> {
        let mut tokens = Scanner::new(self.split_body().0);
        tokens.find(|token| token.is_directive("func"))?;
        let start = tokens.next().filter(|token| token.is_symbol("("))?.start;
        let end = tokens.find(|token| token.is_symbol(")"))?.end;
        Some(&self.text[start..end])
    }

    /// Returns the names that the statement declares: that of a function, or those of variables.
    #[must_use]
    pub fn names(&self) -> Names<'a> {
        let is_symbol = self.is_function()
            || matches!(self.kind, StatementKind::Variable | StatementKind::Shared);
        Names {
            tokens: Scanner::new(if is_symbol { self.split_body().0 } else { "" }),
            is_function: self.is_function(),
            depth: 0,
            expects_name: true,
        }
    }
}

/// An iterator over the names that a statement declares.
#[derive(Clone, Debug)]
pub struct Names<'a> {
    tokens: Scanner<'a>,
    is_function: bool,
    /// The number of open parentheses, brackets and braces.
    depth: usize,
    /// `true` before the name of a declaration, and `false` between the name and the next
    /// declaration.
    expects_name: bool,
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        for token in &mut self.tokens {
            match (token.kind, token.text) {
                (TokenKind::Symbol, "(" | "[" | "{") => self.depth += 1,
                (TokenKind::Symbol, ")" | "]" | "}") => self.depth = self.depth.saturating_sub(1),
                (TokenKind::Symbol, ",") if self.depth == 0 => {
                    self.expects_name = !self.is_function;
                }
                (TokenKind::Word, name) if self.depth == 0 && self.expects_name => {
                    self.expects_name = false;
                    return Some(name);
                }
                _ => {}
            }
        }
        None
    }
}

impl FusedIterator for Names<'_> {}

/// Returns the kind of a statement with this directive.
fn kind(token: Token<'_>) -> StatementKind {
    if token.kind != TokenKind::Directive {
        return StatementKind::Other;
    }
    match token.text {
        "version" | "target" | "address_size" => StatementKind::Header,
        "entry" => StatementKind::Entry,
        "func" => StatementKind::Function,
        "global" | "const" | "tex" | "texref" | "samplerref" | "surfref" => StatementKind::Variable,
        "shared" => StatementKind::Shared,
        _ => StatementKind::Other,
    }
}

fn linkage(token: Token<'_>) -> Linkage {
    match token.kind {
        TokenKind::Directive => Linkage::from_directive(token.text).unwrap_or_default(),
        _ => Linkage::Internal,
    }
}

/// Returns `true` for a directive without a semicolon.
fn is_line(token: Token<'_>) -> bool {
    kind(token) == StatementKind::Header || token.is_directive("file") || token.is_directive("loc")
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        statements(text).map(|statement| statement.text).collect()
    }

    fn declared(text: &str) -> Vec<&str> {
        variables(text).collect()
    }

    #[test]
    fn statements_have_their_names() {
        let text = ".version 7.8 .target sm_75, debug .address_size 64\n\
            .visible .global .align 4 .u32 offset = 7, next[2] = { offset, 2 };\n\
            .extern .shared .align 16 .b8 memory[];\n\
            .visible .func (.param .b32 r) twice (.param .b32 x)\n{ /* } */ ret; }\n\
            .entry k(.param .u32 a, .param .u32 b) .maxntid 1, 1, 1 { { ret; } }\n\
            .pragma \"name\"; .alias one, two;";
        let names: Vec<Vec<&str>> = statements(text)
            .map(|statement| statement.names().collect())
            .collect();
        let expected: [&[&str]; 9] = [
            &[],
            &[],
            &[],
            &["offset", "next"],
            &["memory"],
            &["twice"],
            &["k"],
            &[],
            &[],
        ];
        assert_eq!(names, expected);
        assert_eq!(
            texts(text)[..3],
            [".version 7.8", ".target sm_75, debug", ".address_size 64"]
        );
    }

    #[test]
    fn functions_have_results_and_bodies() {
        let text = ".func (.param .b32 r) f (.param .b32 x) { ret; }\n.extern .func g();\n.entry k { ret; }";
        let functions: Vec<_> = statements(text).collect();
        assert_eq!(functions[0].result(), Some("(.param .b32 r)"));
        assert_eq!(
            functions[0].split_body(),
            (".func (.param .b32 r) f (.param .b32 x) ", "{ ret; }")
        );
        assert_eq!(functions[1].result(), None);
        assert_eq!(functions[1].split_body(), (".extern .func g();", ""));
        let definitions = functions.iter().map(Statement::is_definition);
        assert!(definitions.eq([true, false, true]));
    }

    #[test]
    fn paths_and_debug_sections_stay_whole() {
        let text = ".version 8.0\n.target sm_75\n.file 1 \"/lib/python3.11/a.py\"\n.entry a() { ret; }\n\
                    .section .debug_str { .b8 1 }\n.entry b() { ret; }\n";
        assert_eq!(
            texts(text)[2..],
            [
                ".file 1 \"/lib/python3.11/a.py\"",
                ".entry a() { ret; }",
                ".section .debug_str { .b8 1 }",
                ".entry b() { ret; }"
            ]
        );
    }

    #[test]
    fn global_and_constant_variables_are_listed_in_order() {
        let text = ".visible .entry k() { ret; } .visible .global .align 4 .u32 step = 3, end; .global .u32 hidden; \
                    .weak .const .align 8 .b8 _Z1t[16]; .visible .global .attribute(.managed, .unified(1, 2)) .align 4 .f32 m; \
                    .visible.global.u32 compact; .common .shared .u32 s; .extern .global .u32 elsewhere; .visible";
        assert_eq!(declared(text), ["step", "end", "_Z1t", "m", "compact"]);
    }

    #[test]
    fn comments_and_broken_declarations_have_no_variables() {
        let text = "// .visible .global .u32 a;\n/* .weak .const .u32 b; */ .visible .global .visible .global .u32 c;";
        assert_eq!(declared(text), ["c"]);
        assert_eq!(
            declared(".visible .func f() { .global .u32 x; } }"),
            [""; 0]
        );
    }
}

//! Kernels and their parameters.

use core::iter::{FusedIterator, Peekable};

use super::scanner::{Scanner, Token, TokenKind, integer};
use crate::Error;

/// A kernel in PTX text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Kernel<'a> {
    /// The name.
    pub name: &'a str,
    /// The parameter list with its parentheses; empty if there is none.
    list: &'a str,
}

/// The layout of a kernel parameter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// The offset from the first parameter, in bytes.
    pub offset: usize,
    /// The size in bytes.
    pub size: usize,
}

/// Returns the kernels of a PTX text in order. Other text has none.
#[must_use]
pub fn kernels(text: &str) -> Kernels<'_> {
    Kernels {
        text,
        tokens: Scanner::new(text).peekable(),
    }
}

/// An iterator over the kernels of a text.
#[derive(Clone, Debug)]
pub struct Kernels<'a> {
    text: &'a str,
    tokens: Peekable<Scanner<'a>>,
}

impl<'a> Kernels<'a> {
    /// Returns the parameter list that starts here. It ends before the next kernel, whatever
    /// precedes that.
    fn list(&mut self) -> &'a str {
        let Some(first) = self.tokens.next_if(|token| token.is_symbol("(")) else {
            return "";
        };
        let mut end = first.end;
        while let Some(token) = self.tokens.next_if(|token| !token.is_directive(ENTRY)) {
            end = token.end;
            if token.is_symbol(")") {
                break;
            }
        }
        &self.text[first.start..end]
    }
}

/// The directive of a kernel.
const ENTRY: &str = "entry";

impl<'a> Iterator for Kernels<'a> {
    type Item = Kernel<'a>;

    fn next(&mut self) -> Option<Kernel<'a>> {
        loop {
            self.tokens.find(|token| token.is_directive(ENTRY))?;
            if let Some(name) = self.tokens.next_if(|token| token.kind == TokenKind::Word) {
                return Some(Kernel {
                    name: name.text,
                    list: self.list(),
                });
            }
        }
    }
}

impl FusedIterator for Kernels<'_> {}

impl<'a> Kernel<'a> {
    /// Returns the parameters in order. The iterator ends after the first error, which means that a
    /// declaration cannot be read.
    #[must_use]
    pub fn parameters(&self) -> Parameters<'a> {
        Parameters {
            tokens: Scanner::new(self.list.strip_prefix('(').unwrap_or_default()),
            end: 0,
            is_finished: self.list.is_empty(),
        }
    }
}

/// An iterator over the parameters of a kernel.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    tokens: Scanner<'a>,
    /// The offset of the end of the previous parameter.
    end: usize,
    is_finished: bool,
}

impl Iterator for Parameters<'_> {
    type Item = Result<Parameter, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_finished {
            match self.read() {
                Some(Some(parameter)) => return Some(Ok(parameter)),
                Some(None) => {}
                None => {
                    self.is_finished = true;
                    return Some(Err(Error::Parameter));
                }
            }
        }
        None
    }
}

impl FusedIterator for Parameters<'_> {}

impl Parameters<'_> {
    /// Reads a declaration: `Some(None)` if it is empty, `None` if it cannot be read.
    fn read(&mut self) -> Option<Option<Parameter>> {
        let mut declaration = Declaration::default();
        loop {
            let token = self.tokens.next()?;
            if token.is_symbol(")") {
                self.is_finished = true;
                break;
            }
            if token.is_symbol(",") {
                break;
            }
            declaration.add(token, &mut self.tokens)?;
        }
        if declaration.is_empty {
            return Some(None);
        }
        let size = declaration.size()?;
        let offset = self.end.checked_next_multiple_of(declaration.align(size))?;
        self.end = offset.checked_add(size)?;
        Some(Some(Parameter { offset, size }))
    }
}

/// The declaration of a parameter, as read so far.
struct Declaration {
    is_empty: bool,
    element: Option<usize>,
    vector: usize,
    count: usize,
    align: Option<usize>,
    /// `true` if the following attributes apply to the memory that the parameter points to.
    is_pointee: bool,
}

impl Default for Declaration {
    fn default() -> Self {
        Self {
            is_empty: true,
            element: None,
            vector: 1,
            count: 1,
            align: None,
            is_pointee: false,
        }
    }
}

impl Declaration {
    /// Adds the next token, and its operand from `tokens`. Returns `None` if it cannot be read.
    fn add(&mut self, token: Token<'_>, tokens: &mut Scanner<'_>) -> Option<()> {
        self.is_empty = false;
        if token.is_symbol("[") {
            self.count = self.count.checked_mul(number(tokens.next()?)?)?;
            return tokens.next()?.is_symbol("]").then_some(());
        }
        if token.kind != TokenKind::Directive {
            return Some(());
        }
        match token.text {
            "align" => {
                let align = number(tokens.next()?)?;
                if !self.is_pointee {
                    self.align = Some(align);
                }
            }
            "ptr" => self.is_pointee = true,
            "v2" => self.vector = 2,
            "v4" => self.vector = 4,
            "texref" | "samplerref" | "surfref" => self.element = Some(8),
            text => self.element = type_size(text).or(self.element),
        }
        Some(())
    }

    /// Returns the size in bytes; `None` if the type is unknown or the size overflows.
    fn size(&self) -> Option<usize> {
        self.element?
            .checked_mul(self.vector)?
            .checked_mul(self.count)
    }

    fn align(&self, size: usize) -> usize {
        self.align.or(self.element).unwrap_or(size).max(1)
    }
}

/// Returns the size in bytes of a fundamental type such as `f32` or `b8`.
fn type_size(directive: &str) -> Option<usize> {
    let bits: usize = directive.strip_prefix(['u', 's', 'b', 'f'])?.parse().ok()?;
    matches!(bits, 8 | 16 | 32 | 64 | 128).then_some(bits / 8)
}

fn number(token: Token<'_>) -> Option<usize> {
    usize::try_from(integer(token.text.trim_end_matches('U'))?).ok()
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Returns offset and size of each parameter of the only kernel; `None` if they cannot be read.
    fn layout(text: &str) -> Option<Vec<(usize, usize)>> {
        let mut kernels = kernels(text);
        let kernel = kernels.next()?;
        assert_eq!(kernels.next(), None, "{text:?} has one kernel");
        kernel
            .parameters()
            .map(|parameter| parameter.ok().map(|layout| (layout.offset, layout.size)))
            .collect()
    }

    fn names(text: &str) -> Vec<&str> {
        kernels(text).map(|kernel| kernel.name).collect()
    }

    #[test]
    fn parameters_have_offsets_and_sizes() {
        let text = ".visible .entry k(.param .u8 a, .param .u16 b, .param .f32 c, .param .u64 d, .param .align 4 .b8 e[12])";
        assert_eq!(
            layout(text),
            Some([(0, 1), (2, 2), (4, 4), (8, 8), (16, 12)].to_vec())
        );
        let compact = ".visible.entry k(.param.u8 a,.param.u16 b)";
        assert_eq!(layout(compact), Some([(0, 1), (2, 2)].to_vec()));
    }

    #[test]
    fn pointer_qualifiers_do_not_apply_to_the_parameter() {
        let text = ".entry k(.param .u32 a, .param .u64 .ptr .global .align 16 p, .param .align 16 .b8 q[0x20]) { ret; }";
        assert_eq!(layout(text), Some([(0, 4), (8, 8), (16, 32)].to_vec()));
    }

    #[test]
    fn kernels_without_parameters_have_none() {
        for text in [
            ".entry k() { ret; }",
            ".entry k { ret; }",
            ".entry k\n(\n)\n.maxntid 1, 1, 1 { ret; }",
        ] {
            assert_eq!(layout(text), Some(Vec::new()), "{text:?}");
        }
    }

    #[test]
    fn comments_and_strings_declare_nothing() {
        let text = "// .entry a()\n/* .entry b() */ .file 1 \".entry c()\"\n.entry d(/* .param .u32 x */ .param .u8 y) { }";
        assert_eq!(layout(text), Some([(0, 1)].to_vec()));
    }

    #[test]
    fn declarations_that_cannot_be_read_are_unknown() {
        for text in [
            ".entry k(.param .b8 a[N])",
            ".entry k(.param .e4m3 a)",
            ".entry k(.param .u32 a",
            ".entry k(.param .b8 a[0xffffffffffffffff][2])",
            ".entry k(.param .b8 a[0xffffffffffffffff], .param .b8 b[0xffffffffffffffff], .param .u8 c)",
        ] {
            assert_eq!(layout(text), None, "{text:?}");
        }
    }

    #[test]
    fn every_kernel_is_listed_in_order() {
        let text = ".version 7.8 .target sm_75 .func f() { ret; } .visible .entry a() { ret; } .weak .entry _Z1bv() { ret; }";
        assert_eq!(names(text), ["a", "_Z1bv"]);
    }

    #[test]
    fn broken_list_hides_no_later_kernel() {
        let text = ".entry a(.param .entry b(.param .align .entry .entry c()";
        assert_eq!(names(text), ["a", "b", "c"]);
    }
}

//! Items of module scope.

use std::ops::Range;

use curium_format::ptx::Linkage;

use super::Parser;
use crate::syntax::ast::{
    Alias, DebugLabel, FunctionId, FunctionKind, Location, SourceFile, SourcePosition,
};
use crate::syntax::error::Error;
use crate::syntax::lexer::TokenKind;
use crate::syntax::modifier::Space;
use crate::syntax::operand::{GlobalId, Symbol};
use crate::syntax::scalar::ScalarClass;
use crate::syntax::scope::Binding;
use crate::syntax::variable::Variable;

impl Parser<'_> {
    /// Parses all items up to the end of the text.
    pub(super) fn module_items(&mut self) -> Result<(), Error> {
        while self.peek().kind != TokenKind::End {
            self.module_item()?;
        }
        Ok(())
    }

    fn module_item(&mut self) -> Result<(), Error> {
        const EXPECTED: &str =
            "a directive of module scope, such as '.entry', '.func' or '.global'";
        let token = self.peek();
        if token.is(";") {
            self.advance();
            return Ok(());
        }
        if token.kind != TokenKind::Dot {
            return Err(self.unexpected(EXPECTED));
        }
        match token.text {
            "file" => self.file(),
            "section" => self.section(),
            "alias" => self.alias(),
            "loc" => self.location().map(drop),
            "pragma" => {
                let strings = self.pragma()?;
                self.module.pragmas.extend(strings);
                Ok(())
            }
            "extern" | "visible" | "weak" | "common" | "entry" | "func" | "global" | "const"
            | "shared" | "texref" | "samplerref" | "surfref" | "tex" => self.linked_item(),
            _ => Err(self.unexpected(EXPECTED)),
        }
    }

    fn linked_item(&mut self) -> Result<(), Error> {
        let linkage = self.linkage();
        let token = self.peek();
        if self.accept_dot("entry") {
            return self.function(FunctionKind::Entry, linkage);
        }
        if self.accept_dot("func") {
            return self.function(FunctionKind::Device, linkage);
        }
        let space = match token.text {
            "global" => Space::Global,
            "const" => Space::Const,
            "shared" => Space::Shared,
            // The obsolete `.tex` space and references without a space are in the global space.
            "tex" | "texref" | "samplerref" | "surfref" => Space::Global,
            _ => return Err(self.unexpected("'.entry', '.func', '.global', '.const' or '.shared'")),
        };
        if linkage == Linkage::Common && space != Space::Global {
            return Err(self.unexpected("'.global' after '.common'"));
        }
        if !token.text.ends_with("ref") {
            self.advance();
        }
        self.variables(space, linkage, Self::add_global)
    }

    fn linkage(&mut self) -> Linkage {
        let token = self.peek();
        let linkage = Linkage::from_directive(token.text);
        let Some(linkage) = linkage.filter(|_| token.kind == TokenKind::Dot) else {
            return Linkage::Internal;
        };
        self.advance();
        linkage
    }

    /// Adds a variable, or completes one that was declared `.extern`.
    fn add_global(&mut self, variable: Variable) -> Result<(), Error> {
        match self.symbols.get(&variable.name) {
            None => {
                let index = u32::try_from(self.module.variables.len())
                    .expect("fewer variables than bytes of source");
                self.symbols
                    .insert(variable.name, Symbol::Global(GlobalId(index)));
                self.module.variables.push(variable);
                Ok(())
            }
            Some(&Symbol::Global(id)) if self.may_redeclare(id, &variable) => {
                let previous = &mut self.module.variables[id.0 as usize];
                if previous.linkage == Linkage::Extern {
                    *previous = variable;
                }
                Ok(())
            }
            Some(_) => Err(self.duplicate_variable(&variable)),
        }
    }

    /// Parses `.global` and `.const` in a body: module variables with the scope of the body.
    pub(super) fn hidden_globals(&mut self, space: Space) -> Result<(), Error> {
        self.advance();
        self.variables(space, Linkage::Internal, |parser, variable| {
            let index = u32::try_from(parser.module.variables.len())
                .expect("fewer variables than bytes of source");
            let symbol = Symbol::Global(GlobalId(index));
            if variable.scalar.class() == ScalarClass::Opaque {
                let problem = format!(
                    "'{}' must be declared in module scope, like all textures and surfaces",
                    parser.module.text(variable.name)
                );
                return Err(Error::syntax(variable.span, problem));
            }
            if !parser.scopes.bind(variable.name, Binding::Symbol(symbol)) {
                return Err(parser.duplicate_variable(&variable));
            }
            parser.module.variables.push(variable);
            Ok(())
        })
    }

    fn may_redeclare(&self, id: GlobalId, variable: &Variable) -> bool {
        let previous = self.module.variable(id);
        let has_same_type = previous.space == variable.space && previous.scalar == variable.scalar;
        has_same_type
            && (previous.linkage == Linkage::Extern || variable.linkage == Linkage::Extern)
    }

    /// Parses `.file 1 "path", timestamp, size`, which has no semicolon.
    fn file(&mut self) -> Result<(), Error> {
        self.advance();
        let index = self.u32("the index of a file")?;
        let path = self.string()?.to_owned();
        while self.accept(",") {
            self.u32("a timestamp or size")?;
        }
        self.module.files.push(SourceFile { index, path });
        Ok(())
    }

    /// Parses `.section .debug_str { … }`, and skips other debug information.
    fn section(&mut self) -> Result<(), Error> {
        self.advance();
        let name = match self.peek().kind {
            TokenKind::Dot | TokenKind::Word => self.advance(),
            _ => return Err(self.unexpected("the name of a section")),
        };
        self.expect("{")?;
        let first = self.position;
        self.skip_braces()?;
        if name.is_dot("debug_str") {
            self.debug_strings(first..self.position - 1);
        }
        Ok(())
    }

    /// Adds the labels and bytes among the tokens of `.section .debug_str`.
    fn debug_strings(&mut self, tokens: Range<usize>) {
        for index in tokens {
            let token = self.tokens[index];
            match token.kind {
                TokenKind::Word if self.tokens[index + 1].is(":") => {
                    let name = self.intern(token.text);
                    let strings = &mut self.module.debug_strings;
                    strings.labels.insert(name, strings.bytes.len());
                }
                // The strings are bytes: `.b8 109, 97, 105, 110, 0`.
                TokenKind::Integer(value, _) => self.module.debug_strings.bytes.push(value as u8),
                _ => {}
            }
        }
    }

    /// Parses `.alias name, aliasee;`.
    fn alias(&mut self) -> Result<(), Error> {
        self.advance();
        let alias = self.declared_function()?;
        self.expect(",")?;
        let aliasee = self.declared_function()?;
        self.expect(";")?;
        self.module.aliases.push(Alias { alias, aliasee });
        Ok(())
    }

    /// Parses the name of a declared function.
    pub(super) fn declared_function(&mut self) -> Result<FunctionId, Error> {
        let token = self.word("the name of a function")?;
        let name = self.intern(token.text);
        self.function_named(name)
            .ok_or_else(|| Self::unknown_function(&token))
    }

    /// Parses `.pragma "a", "b";`.
    pub(super) fn pragma(&mut self) -> Result<Vec<String>, Error> {
        self.advance();
        let mut strings = vec![self.string()?.to_owned()];
        while self.accept(",") {
            strings.push(self.string()?.to_owned());
        }
        self.expect(";")?;
        Ok(strings)
    }

    /// Parses `.loc file line column`, with its optional parts and without a semicolon.
    pub(super) fn location(&mut self) -> Result<Location, Error> {
        let directive = self.advance();
        let mut location = Location {
            ptx_line: directive.span.line,
            position: self.source_position()?,
            function: None,
            inlined_at: None,
        };
        while self.accept(",") {
            let token = self.word("'function_name' or 'inlined_at'")?;
            match token.text {
                "inlined_at" => location.inlined_at = Some(self.source_position()?),
                "function_name" => {
                    let label = self.word("the label of a function's name")?;
                    let offset = if self.accept("+") {
                        self.u32("an offset")?
                    } else {
                        0
                    };
                    location.function = Some(DebugLabel {
                        name: self.intern(label.text),
                        offset,
                    });
                }
                _ => {
                    return Err(Self::unexpected_at(
                        &token,
                        "'function_name' or 'inlined_at'",
                    ));
                }
            }
        }
        Ok(location)
    }

    fn source_position(&mut self) -> Result<SourcePosition, Error> {
        Ok(SourcePosition {
            file: self.u32("the index of a file")?,
            line: self.u32("a line")?,
            column: self.u32("a column")?,
        })
    }
}

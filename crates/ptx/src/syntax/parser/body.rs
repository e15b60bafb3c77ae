//! Function bodies: scopes, declarations and labels.

use super::{MAX_DEPTH, Parser};
use crate::syntax::ast::{
    BranchTargets, BranchTargetsId, CallTargets, CallTargetsId, Label, LabelId, Prototype,
    PrototypeId,
};
use crate::syntax::error::Error;
use crate::syntax::lexer::{Token, TokenKind};
use crate::syntax::modifier::Space;
use crate::syntax::scope::Binding;

impl<'a> Parser<'a> {
    /// Parses the body of a function, with its braces. Scopes are counted, not recursive.
    pub(super) fn body(&mut self) -> Result<(), Error> {
        let mut instructions = Vec::new();
        let outside = self.scopes.depth();
        self.open_scope()?;
        while self.scopes.depth() > outside {
            let token = self.peek();
            match token.kind {
                TokenKind::Symbol if token.text == "{" => self.open_scope()?,
                TokenKind::Symbol if token.text == "}" => {
                    self.advance();
                    self.scopes.close();
                }
                TokenKind::Symbol if token.text == ";" => drop(self.advance()),
                TokenKind::Word if self.peek_at(1).is(":") => self.label(instructions.len())?,
                TokenKind::Word => self.instruction(&mut instructions)?,
                TokenKind::Symbol if token.text == "@" => self.instruction(&mut instructions)?,
                TokenKind::Dot => self.body_directive()?,
                _ => return Err(self.unexpected("an instruction, a label, a directive or '}'")),
            }
        }
        self.function.body = Some(instructions);
        Ok(())
    }

    /// Parses `{`, and declares the labels of the scope, which may be used before their positions.
    fn open_scope(&mut self) -> Result<(), Error> {
        let brace = self.expect("{")?;
        if self.scopes.depth() >= MAX_DEPTH {
            return Err(Self::limit_at(
                &brace,
                format!("more than {MAX_DEPTH} nested scopes"),
            ));
        }
        self.scopes.open();
        let mut open = 0usize;
        let mut is_choice = false;
        for index in self.position..self.tokens.len() {
            let token = self.tokens[index];
            if token.kind == TokenKind::Symbol {
                match token.text {
                    "{" => open += 1,
                    "}" if open == 0 => break,
                    "}" => open -= 1,
                    // In `a ? b : c`, the word before the colon is no label.
                    "?" => is_choice = true,
                    ";" => is_choice = false,
                    ":" if open == 0 && !is_choice => self.declare_label(index)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Declares the label before the colon at `colon`. Its position is set when the parser reaches
    /// it.
    fn declare_label(&mut self, colon: usize) -> Result<(), Error> {
        let token = self.tokens[colon - 1];
        if token.kind != TokenKind::Word {
            return Ok(());
        }
        let name = self.intern(token.text);
        let list = self.tokens[(colon + 1).min(self.tokens.len() - 1)];
        let function = &mut self.function;
        let binding = if list.is_dot("branchtargets") {
            function.branch_targets.push(BranchTargets {
                name,
                labels: Vec::new(),
            });
            Binding::BranchTargets(BranchTargetsId(last_index(&function.branch_targets)))
        } else if list.is_dot("calltargets") {
            function.call_targets.push(CallTargets {
                name,
                functions: Vec::new(),
            });
            Binding::CallTargets(CallTargetsId(last_index(&function.call_targets)))
        } else if list.is_dot("callprototype") {
            function.prototypes.push(Prototype {
                name,
                returns: Vec::new(),
                parameters: Vec::new(),
                no_return: false,
            });
            Binding::Prototype(PrototypeId(last_index(&function.prototypes)))
        } else {
            function.labels.push(Label {
                name,
                instruction: u32::MAX,
                span: token.span,
            });
            Binding::Label(LabelId(last_index(&function.labels)))
        };
        if self.scopes.bind(name, binding) {
            return Ok(());
        }
        Err(Self::duplicate_at(&token))
    }

    /// Parses a label, or a list or prototype with its name.
    fn label(&mut self, instruction: usize) -> Result<(), Error> {
        let token = self.advance();
        self.advance();
        let name = self.intern(token.text);
        match self
            .scopes
            .resolve(name, &self.module.names, &mut self.function.registers)
        {
            Some(Binding::Label(id)) => {
                self.function.labels[id.0 as usize].instruction = checked_index(instruction);
                Ok(())
            }
            Some(Binding::BranchTargets(id)) => {
                self.advance();
                let labels = self.list(Self::branch_target)?;
                self.function.branch_targets[id.0 as usize].labels = labels;
                Ok(())
            }
            Some(Binding::CallTargets(id)) => {
                self.advance();
                let functions = self.list(Self::declared_function)?;
                self.function.call_targets[id.0 as usize].functions = functions;
                Ok(())
            }
            Some(Binding::Prototype(id)) => {
                self.function.prototypes[id.0 as usize] = self.call_prototype(name)?;
                Ok(())
            }
            _ => Err(Self::unexpected_at(&token, "a label")),
        }
    }

    /// Parses items separated by commas, up to the semicolon.
    fn list<T>(&mut self, item: fn(&mut Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let mut items = vec![item(self)?];
        while self.accept(",") {
            items.push(item(self)?);
        }
        self.expect(";")?;
        Ok(items)
    }

    fn branch_target(&mut self) -> Result<LabelId, Error> {
        let token = self.word("a label")?;
        match self.resolve(&token) {
            Some(Binding::Label(id)) => Ok(id),
            _ => Err(Self::unexpected_at(&token, "a label of this function")),
        }
    }

    /// Resolves a name in the innermost scope of the function.
    pub(super) fn resolve(&mut self, token: &Token<'a>) -> Option<Binding> {
        let name = self.intern(token.text);
        self.scopes
            .resolve(name, &self.module.names, &mut self.function.registers)
    }

    fn body_directive(&mut self) -> Result<(), Error> {
        match self.peek().text {
            "reg" => self.registers(),
            "global" => self.hidden_globals(Space::Global),
            "const" => self.hidden_globals(Space::Const),
            "local" => self.local_variables(Space::Local),
            "shared" => self.local_variables(Space::Shared),
            "param" => self.local_variables(Space::Param),
            "pragma" => {
                let strings = self.pragma()?;
                if let Some(mask) = strings.iter().find_map(|text| used_bytes(text)) {
                    self.used_bytes = Some(mask);
                }
                self.function.performance.pragmas.extend(strings);
                Ok(())
            }
            "loc" => {
                let location = self.location()?;
                self.function.locations.push(location);
                Ok(())
            }
            _ => Err(self.unexpected(
                "a directive of a function body, such as '.reg', '.local', '.shared' or '.param'",
            )),
        }
    }
}

/// Returns the mask of `used_bytes_mask N`.
fn used_bytes(pragma: &str) -> Option<u32> {
    let mask = pragma.strip_prefix("used_bytes_mask")?.trim();
    match mask.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => mask.parse().ok(),
    }
}

fn last_index<T>(items: &[T]) -> u32 {
    checked_index(items.len() - 1)
}

fn checked_index(length: usize) -> u32 {
    u32::try_from(length).expect("fewer items than bytes of source, which are below 2^32")
}

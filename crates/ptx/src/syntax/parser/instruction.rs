//! Instructions.

use super::Parser;
use crate::syntax::ast::{Instruction, Predicate};
use crate::syntax::error::{Error, Span};
use crate::syntax::lexer::TokenKind;
use crate::syntax::modifier::Modifier;
use crate::syntax::opcode::Opcode;
use crate::syntax::operand::{Address, Base, Operand, RegisterId};
use crate::syntax::scalar::ScalarType;
use crate::syntax::scope::Binding;
use crate::syntax::validate;

impl Parser<'_> {
    /// Parses and validates an instruction with its guard and its semicolon, and appends it after
    /// the instructions that compute its operands.
    pub(super) fn instruction(&mut self, instructions: &mut Vec<Instruction>) -> Result<(), Error> {
        let predicate = if self.accept("@") {
            Some(self.guard()?)
        } else {
            None
        };
        let token = self.word("an instruction")?;
        let opcode = Opcode::from_name(token.text)
            .ok_or_else(|| Self::unexpected_at(&token, "an instruction"))?;
        let modifiers = self.modifiers(opcode)?;
        let mut spans = Vec::new();
        let operands = self.operands(opcode, &mut spans)?;
        let end = self.expect(";")?;
        let used_bytes = self.used_bytes.take();
        let instruction = Instruction {
            predicate,
            opcode,
            modifiers,
            operands,
            used_bytes,
            form: None,
            span: token.span,
        }
        .with_form();
        validate::Context {
            module: &self.module,
            function: &self.function,
            signatures: &self.signatures,
            instruction: &instruction,
            unmet: &self.unmet,
            spans: &spans,
            end: end.span,
        }
        .check()?;
        instructions.append(&mut self.computations);
        instructions.push(instruction);
        Ok(())
    }

    /// Parses the rest of `@p` or `@!p`.
    fn guard(&mut self) -> Result<Predicate, Error> {
        let negated = self.accept("!");
        let register = self.predicate_register()?;
        Ok(Predicate { register, negated })
    }

    /// Parses a register of type `.pred`.
    pub(super) fn predicate_register(&mut self) -> Result<RegisterId, Error> {
        let token = self.word("a predicate register")?;
        match self.resolve(&token) {
            Some(Binding::Register(id))
                if self.function.registers[id.0 as usize].scalar == ScalarType::Pred =>
            {
                Ok(id)
            }
            _ => Err(Self::unexpected_at(&token, "a predicate register")),
        }
    }

    fn modifiers(&mut self, opcode: Opcode) -> Result<Vec<Modifier>, Error> {
        let mut modifiers = Vec::with_capacity(4);
        while self.peek().kind == TokenKind::Dot {
            let token = self.peek();
            match Modifier::parse(token.text, opcode) {
                Some(modifier) => modifiers.push(modifier),
                None => {
                    return Err(Error::instruction(
                        token.span,
                        opcode,
                        &format!("unknown suffix {}", token.quote()),
                    ));
                }
            }
            self.advance();
        }
        Ok(modifiers)
    }

    /// Parses the operands up to the semicolon, and records their positions.
    fn operands(&mut self, opcode: Opcode, spans: &mut Vec<Span>) -> Result<Vec<Operand>, Error> {
        if self.peek().is(";") {
            return Ok(Vec::new());
        }
        if opcode == Opcode::Call {
            spans.push(self.peek().span);
            return Ok(vec![self.call()?]);
        }
        let mut operands = Vec::with_capacity(4);
        loop {
            spans.push(self.peek().span);
            let is_indexed = self.peek_at(1).is("[");
            let is_first = operands.is_empty();
            let has_register_index = is_indexed && self.is_register_at(2);
            operands.push(match opcode {
                Opcode::Cvta | Opcode::Mov if has_register_index => {
                    Operand::Register(self.element_address()?)
                }
                Opcode::Ld | Opcode::Ldu | Opcode::St if has_register_index => {
                    Operand::Address(Address {
                        base: Base::Register(self.element_address()?),
                        offset: 0,
                    })
                }
                _ => self.operand_for(opcode, is_indexed, is_first)?,
            });
            // The hint about the address affects no result.
            let is_load = matches!(opcode, Opcode::Ld | Opcode::Ldu);
            if is_load
                && matches!(operands.last(), Some(Operand::Address(_)))
                && self.peek().is_dot("unified")
            {
                self.advance();
            }
            if !self.accept(",") {
                return Ok(operands);
            }
        }
    }

    /// Parses an operand other than an element of an array whose index is in a register.
    fn operand_for(
        &mut self,
        opcode: Opcode,
        is_indexed: bool,
        is_first: bool,
    ) -> Result<Operand, Error> {
        Ok(match (self.operand()?, opcode) {
            // An element of an array may be written without brackets.
            (Operand::Symbol(symbol, offset), Opcode::Ld | Opcode::Ldu | Opcode::St)
                if is_indexed =>
            {
                Operand::Address(Address {
                    base: Base::Symbol(symbol),
                    offset,
                })
            }
            // A vector of one element is the element.
            (Operand::Vector(elements), Opcode::Ld | Opcode::Ldu | Opcode::Mov | Opcode::St)
                if elements.len() == 1 =>
            {
                elements[0].clone()
            }
            (Operand::Register(register), _) if !is_first && self.peek().is("+") => {
                Operand::Register(self.sum(register)?)
            }
            (operand, _) => operand,
        })
    }
}

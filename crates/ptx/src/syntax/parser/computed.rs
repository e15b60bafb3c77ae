//! Operands that instructions compute: `%r1 + 4` and `a[%r1]`.

use super::Parser;
use crate::syntax::ast::{Instruction, Register};
use crate::syntax::error::{Error, Span};
use crate::syntax::lexer::TokenKind;
use crate::syntax::modifier::Modifier;
use crate::syntax::opcode::Opcode;
use crate::syntax::operand::{Integer, Operand, RegisterId};
use crate::syntax::scalar::ScalarType;
use crate::syntax::scope::Binding;

impl Parser<'_> {
    /// Parses the rest of an operand such as `%r1 + 4`, and returns the register of the sum.
    pub(super) fn sum(&mut self, register: RegisterId) -> Result<RegisterId, Error> {
        let span = self.expect("+")?.span;
        let ty = match self.unsigned_type(register) {
            Some(ty) if ty != ScalarType::U8 => ty,
            _ => return Err(Error::unexpected(span, "','", "'+'")),
        };
        let addend = Operand::Integer(self.constant_integer("an integer")?);
        let scalar = self.function.registers[register.0 as usize].scalar;
        let operands = [Operand::Register(register), addend];
        Ok(self.compute("add", &[Modifier::Type(ty)], scalar, &operands, span))
    }

    /// Returns `true` if the token after `ahead` others names a register.
    pub(super) fn is_register_at(&mut self, ahead: usize) -> bool {
        let token = self.peek_at(ahead);
        token.kind == TokenKind::Word && matches!(self.resolve(&token), Some(Binding::Register(_)))
    }

    /// Parses an operand such as `a[%r1]` or `a[%r1 + 4]`, and returns the register of the
    /// element's address.
    ///
    /// As in NVIDIA's assembler, the index is the low half of the register, without sign, and the
    /// sum wraps around at 32 bits.
    pub(super) fn element_address(&mut self) -> Result<RegisterId, Error> {
        let array = self.word("an array")?;
        let symbol = self.variable_or_function(&array)?;
        let size = self.element_size(symbol, &array)?;
        self.expect("[")?;
        let mut index = self.index()?;
        if self.peek().is("+") {
            index = self.sum(index)?;
        }
        self.expect("]")?;
        let start = self.compute(
            "mov",
            &[Modifier::Type(ScalarType::U64)],
            ScalarType::U64,
            &[Operand::Symbol(symbol, 0)],
            array.span,
        );
        let size = Operand::Integer(Integer {
            bits: size.cast_unsigned(),
            negative: false,
        });
        Ok(self.compute(
            "mad",
            &[Modifier::Wide, Modifier::Type(ScalarType::U32)],
            ScalarType::U64,
            &[Operand::Register(index), size, Operand::Register(start)],
            array.span,
        ))
    }

    /// Parses an index, and returns a register with its low 32 bits.
    fn index(&mut self) -> Result<RegisterId, Error> {
        let token = self.word("a register")?;
        let Some(Binding::Register(register)) = self.resolve(&token) else {
            return Err(Self::unexpected_at(&token, "a register"));
        };
        let ty = self
            .unsigned_type(register)
            .ok_or_else(|| Self::unexpected_at(&token, "an integer register"))?;
        if ty == ScalarType::U32 {
            return Ok(register);
        }
        Ok(self.compute(
            "cvt",
            &[Modifier::Type(ScalarType::U32), Modifier::Type(ty)],
            ScalarType::U32,
            &[Operand::Register(register)],
            token.span,
        ))
    }

    /// Returns the unsigned type of a register's size, if the register contains an integer.
    fn unsigned_type(&self, register: RegisterId) -> Option<ScalarType> {
        let register = self.function.registers[register.0 as usize];
        if !register.scalar.is_integer_like() || register.vector > 1 {
            return None;
        }
        match register.scalar.bits() {
            8 => Some(ScalarType::U8),
            16 => Some(ScalarType::U16),
            32 => Some(ScalarType::U32),
            64 => Some(ScalarType::U64),
            _ => None,
        }
    }

    /// Adds an instruction before the current one, and returns the register of its result.
    fn compute(
        &mut self,
        opcode: &str,
        modifiers: &[Modifier],
        scalar: ScalarType,
        sources: &[Operand],
        span: Span,
    ) -> RegisterId {
        let index = u32::try_from(self.function.registers.len())
            .expect("fewer registers than bytes of source");
        let result = RegisterId(index);
        let name = self.intern("%computed");
        self.function.registers.push(Register {
            name,
            scalar,
            vector: 1,
        });
        let mut operands = vec![Operand::Register(result)];
        operands.extend_from_slice(sources);
        let instruction = Instruction {
            predicate: None,
            opcode: Opcode::from_name(opcode).expect("the instruction exists"),
            modifiers: modifiers.to_vec(),
            operands,
            used_bytes: None,
            form: None,
            span,
        };
        self.computations.push(instruction.with_form());
        result
    }
}

//! Calls.

use super::Parser;
use crate::syntax::error::Error;
use crate::syntax::lexer::TokenKind;
use crate::syntax::operand::{Call, CallSignature, Callee, Operand};
use crate::syntax::scope::Binding;

impl Parser<'_> {
    /// Parses `(returns), callee, (arguments), signature`. All but the callee are optional.
    pub(super) fn call(&mut self) -> Result<Operand, Error> {
        let returns = self.call_returns()?;
        let callee = self.word("the name of a function or a register")?;
        let target = self.resolve(&callee);
        let mut arguments = Box::default();
        if self.accept(",") {
            if self.peek().is("(") {
                arguments = self.call_list()?;
            } else {
                // A signature follows, so there are no arguments.
                self.position -= 1;
            }
        }
        let callee = match target {
            Some(Binding::Register(id)) => Callee::Indirect(id, self.call_signature()?),
            Some(_) => {
                return Err(Self::unexpected_at(
                    &callee,
                    "the name of a function or a register",
                ));
            }
            None => {
                let name = self.intern(callee.text);
                let id = self.function_named(name);
                Callee::Direct(id.ok_or_else(|| Self::unknown_function(&callee))?)
            }
        };
        Ok(Operand::Call(Box::new(Call {
            returns,
            callee,
            arguments,
        })))
    }

    /// Parses `(a, b, …),` before the callee. Without a parenthesis, the list is empty.
    fn call_returns(&mut self) -> Result<Box<[Operand]>, Error> {
        let token = self.peek();
        if !token.is("(") {
            return Ok(Box::default());
        }
        let returns = self.call_list()?;
        if returns.iter().any(is_immediate) {
            return Err(Self::problem_at(
                &token,
                "the results of a call cannot be immediates",
            ));
        }
        self.expect(",")?;
        Ok(returns)
    }

    /// Parses `(a, b, …)`.
    fn call_list(&mut self) -> Result<Box<[Operand]>, Error> {
        let mut operands = Vec::new();
        self.expect("(")?;
        while !self.peek().is(")") {
            let token = self.peek();
            let operand = self.argument()?;
            let is_passed = matches!(
                operand,
                Operand::Register(_) | Operand::Symbol(_, 0) | Operand::Sink
            );
            if !is_passed && !is_immediate(&operand) {
                return Err(Self::unexpected_at(
                    &token,
                    "a '.param' variable or a register",
                ));
            }
            operands.push(operand);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(operands.into())
    }

    /// Parses an operand. A vector register is one operand.
    fn argument(&mut self) -> Result<Operand, Error> {
        let token = self.peek();
        match self.resolve(&token) {
            Some(Binding::Register(id)) if self.peek_at(1).kind != TokenKind::Dot => {
                self.advance();
                Ok(Operand::Register(id))
            }
            _ => self.operand(),
        }
    }

    fn call_signature(&mut self) -> Result<CallSignature, Error> {
        const EXPECTED: &str = "the label of a '.callprototype' or '.calltargets'";
        self.expect(",")?;
        let token = self.word(EXPECTED)?;
        match self.resolve(&token) {
            Some(Binding::Prototype(id)) => Ok(CallSignature::Prototype(id)),
            Some(Binding::CallTargets(id)) => Ok(CallSignature::Targets(id)),
            _ => Err(Self::unexpected_at(&token, EXPECTED)),
        }
    }
}

const fn is_immediate(operand: &Operand) -> bool {
    matches!(
        operand,
        Operand::Integer(_) | Operand::Single(_) | Operand::Double(_)
    )
}

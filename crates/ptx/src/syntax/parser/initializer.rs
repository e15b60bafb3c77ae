//! Initial values of variables.

use super::Parser;
use super::declaration::{Dimensions, Prefix};
use super::expression::{Value, integer};
use crate::syntax::error::Error;
use crate::syntax::lexer::TokenKind;
use crate::syntax::modifier::Space;
use crate::syntax::operand::Symbol;
use crate::syntax::scalar::ScalarClass;
use crate::syntax::scope::Binding;
use crate::syntax::variable::{Constant, InitialValue, Variable};

const TOO_MANY_VALUES: &str = "too many initial values";

/// The state of nested braces, counted in scalars.
struct Fill<'v> {
    /// The number of scalars of each level of braces, outermost first.
    levels: &'v [u64],
    /// The size of a scalar in bytes.
    scalar: u64,
    class: ScalarClass,
    is_vector: bool,
    values: &'v mut Vec<InitialValue>,
}

impl Parser<'_> {
    /// Parses the value after `=`. The number of values determines the extent of an unsized array.
    pub(super) fn initializer(
        &mut self,
        variable: &mut Variable,
        prefix: &Prefix,
        dimensions: &mut Dimensions,
    ) -> Result<(), Error> {
        if prefix.scalar.class() == ScalarClass::Opaque {
            return self.settings(variable);
        }
        let levels = levels(prefix, dimensions);
        let token = self.peek();
        if matches!(variable.space, Space::Shared | Space::Local)
            || prefix.scalar.class() == ScalarClass::Float && prefix.scalar.bits() < 32
        {
            return Err(Self::problem_at(
                &token,
                "variables of this type or in this space cannot be initialized",
            ));
        }
        let mut fill = Fill {
            levels: &levels,
            scalar: prefix.scalar.bytes(),
            class: prefix.scalar.class(),
            is_vector: prefix.vector > 1,
            values: &mut variable.initial,
        };
        let end = if levels.is_empty() {
            self.scalar_value(&mut fill, 0, 1)?
        } else {
            self.braces(&mut fill, 0, 0)?
        };
        if dimensions.is_unsized {
            let row = levels.get(1).copied().unwrap_or(1);
            dimensions.extents[0] = if row == 0 { 0 } else { end.div_ceil(row) };
            dimensions.is_unsized = false;
        }
        Ok(())
    }

    /// Parses `{ a, b, … }` at a nesting level, from a scalar on. Returns the scalar after the last
    /// value.
    fn braces(&mut self, fill: &mut Fill<'_>, level: usize, start: u64) -> Result<u64, Error> {
        self.expect("{")?;
        let end = start.saturating_add(fill.levels[level]);
        let mut next = start;
        while !self.peek().is("}") {
            let token = self.peek();
            if token.is("{") {
                let Some(&inner) = fill.levels.get(level + 1).filter(|inner| **inner > 0) else {
                    return Err(self.unexpected("a value"));
                };
                next = start + (next - start).div_ceil(inner) * inner;
                if next >= end {
                    return Err(self.problem(TOO_MANY_VALUES));
                }
                self.braces(fill, level + 1, next)?;
                next += inner;
            } else if level + 1 < fill.levels.len() {
                return Err(self.unexpected("'{'"));
            } else {
                next = self.scalar_value(fill, next, end)?;
            }
            if !self.accept(",") {
                break;
            }
            if self.peek().is("}") {
                return Err(self.unexpected("a value"));
            }
        }
        if fill.is_vector && level + 1 == fill.levels.len() && next != end {
            return Err(self.problem("too few values for the vector"));
        }
        self.expect("}")?;
        Ok(next)
    }

    /// Parses a value for the scalar `index`, which must be below `end`.
    fn scalar_value(&mut self, fill: &mut Fill<'_>, index: u64, end: u64) -> Result<u64, Error> {
        if index >= end {
            return Err(self.problem(TOO_MANY_VALUES));
        }
        let token = self.peek();
        let value = self.constant_or_address()?;
        let has_variable_type = match value {
            Constant::Integer(_) | Constant::Address { .. } => fill.class != ScalarClass::Float,
            Constant::Single(_) | Constant::Double(_) => {
                matches!(fill.class, ScalarClass::Float | ScalarClass::Bits)
            }
        };
        if !has_variable_type {
            return Err(Self::problem_at(
                &token,
                "the value does not have the variable's type",
            ));
        }
        let offset = index
            .checked_mul(fill.scalar)
            .ok_or_else(|| Self::limit_at(&token, "the offset exceeds 2^64 bytes"))?;
        fill.values.push(InitialValue { offset, value });
        Ok(index + 1)
    }

    /// Parses a number, `name+4`, `generic(name)+4`, or `0xFF00(name)`.
    fn constant_or_address(&mut self) -> Result<Constant, Error> {
        if self.peek().kind == TokenKind::Word && !self.at_constant() {
            return self.address_constant(None);
        }
        if let (TokenKind::Integer(mask, _), true) = (self.peek().kind, self.peek_at(1).is("(")) {
            self.advance();
            self.advance();
            let address = self.address_constant(Some(mask))?;
            self.expect(")")?;
            return Ok(address);
        }
        Ok(match self.constant()? {
            Value::Integer(bits, unsigned) => Constant::Integer(integer(bits, unsigned)),
            Value::Single(bits) => Constant::Single(bits),
            Value::Double(bits) => Constant::Double(bits),
        })
    }

    fn address_constant(&mut self, mask: Option<u64>) -> Result<Constant, Error> {
        let generic = self.peek().text == "generic" && self.peek_at(1).is("(");
        if generic {
            self.advance();
            self.advance();
        }
        let symbol = self.module_symbol()?;
        if generic {
            self.expect(")")?;
        }
        let offset = self.offset()?;
        Ok(Constant::Address {
            symbol,
            offset,
            generic,
            mask,
        })
    }

    /// Parses `+4`, `+-4`, or nothing.
    pub(super) fn offset(&mut self) -> Result<i64, Error> {
        if self.accept("+") {
            self.constant_offset()
        } else {
            Ok(0)
        }
    }

    fn module_symbol(&mut self) -> Result<Symbol, Error> {
        const EXPECTED: &str = "a number or the name of a declared variable or function";
        let token = self.word(EXPECTED)?;
        if let Some(Binding::Symbol(symbol)) = self.resolve(&token) {
            return Ok(symbol);
        }
        let name = self.intern(token.text);
        self.symbols
            .get(&name)
            .copied()
            .ok_or_else(|| Self::unknown_name(&token))
    }

    /// Parses `{ filter_mode = nearest, … }`.
    fn settings(&mut self, variable: &mut Variable) -> Result<(), Error> {
        self.expect("{")?;
        while !self.peek().is("}") {
            let key = self.word("the name of a setting")?;
            self.expect("=")?;
            let value = self.peek();
            if !matches!(value.kind, TokenKind::Word | TokenKind::Integer(..)) {
                return Err(self.unexpected("the value of a setting"));
            }
            self.advance();
            let setting = (self.intern(key.text), self.intern(value.text));
            variable.settings.push(setting);
            if !self.accept(",") {
                break;
            }
        }
        self.expect("}").map(drop)
    }
}

/// Returns the number of scalars per level of braces. A vector is the innermost level.
fn levels(prefix: &Prefix, dimensions: &Dimensions) -> Vec<u64> {
    let vector = (prefix.vector > 1).then_some(u64::from(prefix.vector));
    let extents: Vec<u64> = dimensions.extents.iter().copied().chain(vector).collect();
    let mut levels: Vec<u64> = (0..extents.len())
        .map(|level| {
            extents[level..]
                .iter()
                .fold(1u64, |product, extent| product.saturating_mul(*extent))
        })
        .collect();
    if dimensions.is_unsized {
        levels[0] = u64::MAX;
    }
    levels
}

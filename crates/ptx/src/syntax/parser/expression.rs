//! Constant expressions.

use super::Parser;
use crate::syntax::error::Error;
use crate::syntax::lexer::{Token, TokenKind};
use crate::syntax::operand::{Integer, Operand};

/// The value of a constant expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Value {
    /// An integer of 64 bits, and `true` if it is unsigned.
    Integer(u64, bool),
    /// The bits of an f32.
    Single(u32),
    /// The bits of an f64.
    Double(u64),
}

impl Value {
    pub(super) fn operand(self) -> Operand {
        match self {
            Self::Integer(bits, unsigned) => Operand::Integer(integer(bits, unsigned)),
            Self::Single(bits) => Operand::Single(bits),
            Self::Double(bits) => Operand::Double(bits),
        }
    }

    const fn flag(value: bool) -> Self {
        Self::Integer(value as u64, false)
    }
}

/// Returns an integer of an expression as an AST node.
pub(super) const fn integer(bits: u64, unsigned: bool) -> Integer {
    Integer {
        bits,
        negative: !unsigned && bits.cast_signed() < 0,
    }
}

impl<'a> Parser<'a> {
    /// Parses a constant expression.
    pub(super) fn constant(&mut self) -> Result<Value, Error> {
        self.nested(Self::ternary)
    }

    /// Parses a constant expression whose value is an integer; `what` names it in an error.
    pub(super) fn constant_integer(&mut self, what: &str) -> Result<Integer, Error> {
        let token = self.peek();
        match self.constant()? {
            Value::Integer(bits, unsigned) => Ok(integer(bits, unsigned)),
            _ => Err(Self::unexpected_at(&token, what)),
        }
    }

    /// Parses a constant expression whose value is an offset in bytes.
    pub(super) fn constant_offset(&mut self) -> Result<i64, Error> {
        Ok(self
            .constant_integer("an offset in bytes")?
            .bits
            .cast_signed())
    }

    /// Returns `true` if the next token can begin a constant expression.
    pub(super) fn at_constant(&self) -> bool {
        let token = self.peek();
        match token.kind {
            TokenKind::Integer(..) | TokenKind::Single(_) | TokenKind::Double(_) => true,
            TokenKind::Symbol => matches!(token.text, "-" | "+" | "~" | "!" | "("),
            TokenKind::Word => token.text == "WARP_SZ",
            _ => false,
        }
    }

    fn ternary(&mut self) -> Result<Value, Error> {
        let token = self.peek();
        let condition = self.binary(0)?;
        if !self.accept("?") {
            return Ok(condition);
        }
        let chosen = self.constant()?;
        self.expect(":")?;
        let other = self.constant()?;
        match condition {
            Value::Integer(bits, _) => Ok(if bits == 0 { other } else { chosen }),
            _ => Err(Self::unexpected_at(&token, "an integer condition")),
        }
    }

    /// Parses operators with at least the precedence `min`. Operators of equal precedence are a
    /// loop. Only higher precedences recurse, and there are ten of them.
    fn binary(&mut self, min: u8) -> Result<Value, Error> {
        let mut value = self.unary()?;
        loop {
            let operator = self.peek();
            let Some(level) = precedence(&operator).filter(|level| *level >= min) else {
                return Ok(value);
            };
            self.advance();
            let right = self.binary(level + 1)?;
            value = apply(operator.text, value, right).ok_or_else(|| {
                Self::problem_at(&operator, "unsupported operands for the operator")
            })?;
        }
    }

    fn unary(&mut self) -> Result<Value, Error> {
        // A sequence of signs is parsed recursively, so it counts as nesting.
        let token = self.peek();
        match token.text {
            "-" | "+" | "~" | "!" if token.kind == TokenKind::Symbol => {
                self.advance();
                let value = self.nested(Self::unary)?;
                negate(token.text, value)
                    .ok_or_else(|| Self::problem_at(&token, "unsupported operand for the operator"))
            }
            "(" if token.kind == TokenKind::Symbol => {
                self.advance();
                self.parenthesized()
            }
            _ => self.literal(),
        }
    }

    /// Parses the rest of `(expression)`, or of the casts `(.s64)` and `(.u64)`.
    fn parenthesized(&mut self) -> Result<Value, Error> {
        let unsigned = self.peek().is_dot("u64");
        if !unsigned && !self.peek().is_dot("s64") {
            let value = self.constant()?;
            self.expect(")")?;
            return Ok(value);
        }
        self.advance();
        self.expect(")")?;
        let token = self.peek();
        match self.nested(Self::unary)? {
            Value::Integer(bits, _) => Ok(Value::Integer(bits, unsigned)),
            _ => Err(Self::unexpected_at(&token, "an integer")),
        }
    }

    fn literal(&mut self) -> Result<Value, Error> {
        let token: Token<'a> = self.peek();
        let value = match token.kind {
            TokenKind::Integer(bits, unsigned) => Value::Integer(bits, unsigned),
            TokenKind::Single(bits) => Value::Single(bits),
            TokenKind::Double(bits) => Value::Double(bits),
            TokenKind::Word if token.text == "WARP_SZ" => Value::Integer(32, false),
            _ => return Err(self.unexpected("a number")),
        };
        self.advance();
        Ok(value)
    }
}

fn precedence(token: &Token<'_>) -> Option<u8> {
    if token.kind != TokenKind::Symbol {
        return None;
    }
    Some(match token.text {
        "||" => 0,
        "&&" => 1,
        "|" => 2,
        "^" => 3,
        "&" => 4,
        "==" | "!=" => 5,
        "<" | "<=" | ">" | ">=" => 6,
        "<<" | ">>" => 7,
        "+" | "-" => 8,
        "*" | "/" | "%" => 9,
        _ => return None,
    })
}

fn negate(operator: &str, value: Value) -> Option<Value> {
    Some(match (operator, value) {
        ("+", value) => value,
        ("-", Value::Integer(bits, unsigned)) => {
            Value::Integer(bits.wrapping_neg(), unsigned && bits != 1 << 63)
        }
        ("-", Value::Single(bits)) => Value::Single(bits ^ (1 << 31)),
        ("-", Value::Double(bits)) => Value::Double(bits ^ (1 << 63)),
        ("~", Value::Integer(bits, unsigned)) => Value::Integer(!bits, unsigned),
        ("!", Value::Integer(bits, _)) => Value::flag(bits == 0),
        _ => return None,
    })
}

fn apply(operator: &str, left: Value, right: Value) -> Option<Value> {
    if let (Value::Integer(a, a_unsigned), Value::Integer(b, b_unsigned)) = (left, right) {
        return if matches!(operator, "<<" | ">>") {
            shift_integer(operator, a, a_unsigned, b)
        } else {
            apply_integers(operator, a, b, a_unsigned || b_unsigned)
        };
    }
    let a = float(left)?;
    let b = float(right)?;
    let result = match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        _ => return None,
    };
    Some(Value::Double(result.to_bits()))
}

fn float(value: Value) -> Option<f64> {
    match value {
        Value::Integer(..) => None,
        Value::Single(bits) => Some(f64::from(f32::from_bits(bits))),
        Value::Double(bits) => Some(f64::from_bits(bits)),
    }
}

/// Computes a shift of an integer. The right operand may have any type.
fn shift_integer(operator: &str, value: u64, unsigned: bool, amount: u64) -> Option<Value> {
    let amount = u32::try_from(amount).unwrap_or(u32::MAX);
    let bits = match operator {
        "<<" => value.checked_shl(amount).unwrap_or(0),
        ">>" if unsigned => value.checked_shr(amount).unwrap_or(0),
        ">>" => (value.cast_signed() >> amount.min(63)).cast_unsigned(),
        _ => return None,
    };
    Some(Value::Integer(bits, unsigned))
}

/// Computes integer arithmetic, which wraps at 64 bits. The result is unsigned if an operand is.
fn apply_integers(operator: &str, a: u64, b: u64, unsigned: bool) -> Option<Value> {
    let signed_a = a.cast_signed();
    let signed_b = b.cast_signed();
    let less = if unsigned { a < b } else { signed_a < signed_b };
    let bits = match operator {
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" if unsigned => a.checked_div(b)?,
        "/" if b == 0 => return None,
        "/" => signed_a.wrapping_div(signed_b).cast_unsigned(),
        "%" if unsigned => a.checked_rem(b)?,
        "%" if b == 0 => return None,
        "%" => signed_a.wrapping_rem(signed_b).cast_unsigned(),
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        "==" => return Some(Value::flag(a == b)),
        "!=" => return Some(Value::flag(a != b)),
        "<" => return Some(Value::flag(less)),
        "<=" => return Some(Value::flag(less || a == b)),
        ">" => return Some(Value::flag(!less && a != b)),
        ">=" => return Some(Value::flag(!less)),
        "&&" => return Some(Value::flag(a != 0 && b != 0)),
        "||" => return Some(Value::flag(a != 0 || b != 0)),
        _ => return None,
    };
    Some(Value::Integer(bits, unsigned))
}

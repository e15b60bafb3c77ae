//! Operands.

use super::Parser;
use crate::syntax::error::Error;
use crate::syntax::lexer::{Token, TokenKind};
use crate::syntax::operand::{
    Address, Base, Integer, Operand, RegisterId, Selector, Symbol, Tensor,
};
use crate::syntax::scope::Binding;
use crate::syntax::special::SpecialRegister;

const BASE: &str = "a register, a declared variable or a number";
const OPERAND: &str = "a register, an immediate, an address or a declared name";

impl<'a> Parser<'a> {
    /// Parses an operand.
    pub(super) fn operand(&mut self) -> Result<Operand, Error> {
        let token = self.peek();
        match token.text {
            "[" if token.kind == TokenKind::Symbol => self.memory(),
            "{" if token.kind == TokenKind::Symbol => {
                let elements = self.vector()?;
                if !self.accept("|") {
                    return Ok(Operand::Vector(elements));
                }
                Ok(Operand::VectorPair(elements, self.predicate_register()?))
            }
            // Before anything but a name, `!` is the operator of constant expressions.
            "!" if token.kind == TokenKind::Symbol && self.peek_at(1).kind == TokenKind::Word => {
                self.advance();
                Ok(Operand::Not(self.predicate_register()?))
            }
            _ => self.plain_operand(),
        }
    }

    /// Parses an operand without brackets, which may be an element of a vector.
    fn plain_operand(&mut self) -> Result<Operand, Error> {
        if self.at_constant() {
            return Ok(self.constant()?.operand());
        }
        let token = self.word(OPERAND)?;
        if token.text == "_" {
            return self.pair(None, Operand::Sink);
        }
        match self.resolve(&token) {
            Some(Binding::Register(id)) => self.register_operand(id),
            Some(Binding::Variable(id)) => self.symbol(Symbol::Local(id)),
            Some(Binding::Symbol(symbol)) => self.symbol(symbol),
            Some(Binding::Label(id)) => Ok(Operand::Label(id)),
            Some(Binding::BranchTargets(id)) => Ok(Operand::BranchTargets(id)),
            Some(Binding::CallTargets(_) | Binding::Prototype(_)) => {
                Err(Self::unexpected_at(&token, OPERAND))
            }
            None => self.outer_name(&token),
        }
    }

    /// Resolves a special register or a name of module scope.
    fn outer_name(&mut self, token: &Token<'a>) -> Result<Operand, Error> {
        if token.text.starts_with('%') {
            return self.special(token);
        }
        let name = self.intern(token.text);
        match self.symbols.get(&name) {
            Some(&symbol) => self.symbol(symbol),
            None => Err(Self::unknown_name(token)),
        }
    }

    fn special(&mut self, token: &Token<'a>) -> Result<Operand, Error> {
        let next = self.peek();
        if let Some(elements) = special_vector(token.text) {
            if next.kind != TokenKind::Dot {
                return Ok(Operand::Vector(elements.into()));
            }
            let element = component(next.text).and_then(|index| elements.get(usize::from(index)));
            let element = element
                .ok_or_else(|| self.unexpected("an element of the register, such as '.x'"))?;
            self.advance();
            return Ok(element.clone());
        }
        let register = if next.kind == TokenKind::Dot {
            let register = SpecialRegister::from_name(&format!("{}.{}", token.text, next.text));
            self.position += usize::from(register.is_some());
            register
        } else {
            SpecialRegister::from_name(token.text)
        };
        register
            .map(Operand::Special)
            .ok_or_else(|| Self::unknown_name(token))
    }

    /// Parses the element, selector or second destination after a register.
    fn register_operand(&mut self, id: RegisterId) -> Result<Operand, Error> {
        let token = self.peek();
        let vector = self.function.registers[id.0 as usize].vector;
        if token.kind != TokenKind::Dot {
            return if vector > 1 {
                Ok(Operand::Vector(self.components(id)))
            } else {
                self.pair(Some(id), Operand::Register(id))
            };
        }
        let operand = match component(token.text) {
            Some(element) if element < vector && vector > 1 => Operand::Element(id, element),
            _ => match Selector::parse(token.text) {
                Some(selector) if vector == 1 => Operand::Select(id, selector),
                _ => return Err(self.unexpected("an element of the register, such as '.x'")),
            },
        };
        self.advance();
        Ok(operand)
    }

    /// Returns all elements of a vector register, or the register itself.
    pub(super) fn components(&self, id: RegisterId) -> Box<[Operand]> {
        match self.function.registers[id.0 as usize].vector {
            ..=1 => [Operand::Register(id)].into(),
            vector => (0..vector)
                .map(|index| Operand::Element(id, index))
                .collect(),
        }
    }

    /// Parses the rest of `a|b` if there is one; returns `alone` otherwise.
    fn pair(&mut self, first: Option<RegisterId>, alone: Operand) -> Result<Operand, Error> {
        if !self.accept("|") {
            return Ok(alone);
        }
        if self.peek().text == "_" {
            self.advance();
            return Ok(Operand::Pair(first, None));
        }
        Ok(Operand::Pair(first, Some(self.predicate_register()?)))
    }

    /// Parses the `+offset` or `[index]` after a variable or function.
    fn symbol(&mut self, symbol: Symbol) -> Result<Operand, Error> {
        let token = self.peek();
        if !self.accept("[") {
            let offset = self.offset()?;
            if offset != 0 && matches!(symbol, Symbol::Function(_)) {
                return Err(Self::problem_at(
                    &token,
                    "an offset from a function is not supported",
                ));
            }
            return Ok(Operand::Symbol(symbol, offset));
        }
        let size = self.element_size(symbol, &token)?;
        let index = self.constant_offset()?;
        self.expect("]")?;
        Ok(Operand::Symbol(symbol, index.wrapping_mul(size)))
    }

    /// Returns the bytes between elements of an array, which are scalars or vectors, also if the
    /// array has several dimensions.
    pub(super) fn element_size(&self, symbol: Symbol, token: &Token<'a>) -> Result<i64, Error> {
        let variable = match symbol {
            Symbol::Global(id) => Some(self.module.variable(id)),
            Symbol::Local(id) => Some(&self.function.variables[id.0 as usize]),
            Symbol::Function(_) => None,
        };
        let array = variable
            .filter(|variable| !variable.dimensions.is_empty())
            .ok_or_else(|| Self::problem_at(token, "only arrays can be indexed"))?;
        let size = array.scalar.bytes() * u64::from(array.vector);
        Ok(size.cast_signed())
    }

    /// Parses `{a, b, …}`.
    fn vector(&mut self) -> Result<Box<[Operand]>, Error> {
        self.expect("{")?;
        let mut elements = Vec::with_capacity(4);
        loop {
            elements.push(self.vector_element()?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect("}")?;
        Ok(elements.into())
    }

    fn vector_element(&mut self) -> Result<Operand, Error> {
        let token = self.peek();
        match self.plain_operand()? {
            element @ (Operand::Register(_)
            | Operand::Element(..)
            | Operand::Integer(_)
            | Operand::Single(_)
            | Operand::Double(_)
            | Operand::Special(_)
            | Operand::Sink) => Ok(element),
            _ => Err(Self::unexpected_at(
                &token,
                "a register, an immediate or '_'",
            )),
        }
    }

    /// Parses `[base+offset]`, or `[handle, sampler, {x, y}]`.
    fn memory(&mut self) -> Result<Operand, Error> {
        self.expect("[")?;
        let address = self.address()?;
        let mut sampler = None;
        let mut coordinates = None;
        while self.accept(",") {
            let token = self.peek();
            if coordinates.is_some() {
                return Err(self.unexpected("']'"));
            }
            if token.is("{") {
                coordinates = Some(self.vector()?);
            } else if let (Some(_), Some(Binding::Register(id))) = (sampler, self.resolve(&token)) {
                self.advance();
                coordinates = Some(self.components(id));
            } else if sampler.is_none() {
                sampler = Some(self.address()?);
            } else {
                return Err(self.unexpected("coordinates in '{' and '}'"));
            }
        }
        if sampler.is_some() && coordinates.is_none() && !self.peek().is("]") {
            return Err(self.unexpected("',' or ']'"));
        }
        self.expect("]")?;
        Ok(match (sampler, coordinates) {
            (None, None) => Operand::Address(address),
            // Coordinates in a single register may have no braces, so the parsed sampler is that
            // register.
            (
                Some(Address {
                    base: Base::Register(id),
                    offset: 0,
                }),
                None,
            ) => Operand::Tensor(Box::new(Tensor {
                handle: address,
                sampler: None,
                coordinates: self.components(id),
            })),
            (sampler, coordinates) => Operand::Tensor(Box::new(Tensor {
                handle: address,
                sampler,
                coordinates: coordinates.unwrap_or_default(),
            })),
        })
    }

    fn address(&mut self) -> Result<Address, Error> {
        if self.at_constant() {
            return Ok(Address {
                base: Base::Absolute,
                offset: self.constant_offset()?,
            });
        }
        let token = self.word(BASE)?;
        let base = match self.resolve(&token) {
            Some(Binding::Register(id)) => Base::Register(id),
            _ => Base::Symbol(self.variable_or_function(&token)?),
        };
        Ok(Address {
            base,
            offset: self.offset()?,
        })
    }

    /// Returns the variable or function that a token names.
    pub(super) fn variable_or_function(&mut self, token: &Token<'a>) -> Result<Symbol, Error> {
        match self.resolve(token) {
            Some(Binding::Variable(id)) => Ok(Symbol::Local(id)),
            Some(Binding::Symbol(symbol)) => Ok(symbol),
            Some(_) => Err(Self::unexpected_at(token, BASE)),
            None => {
                let name = self.intern(token.text);
                self.symbols
                    .get(&name)
                    .copied()
                    .ok_or_else(|| Self::unknown_name(token))
            }
        }
    }
}

/// Returns the elements of a special register that is a vector. The last one is zero.
fn special_vector(name: &str) -> Option<Vec<Operand>> {
    // All of them end in `id`, and few other names do.
    if !name.ends_with("id") {
        return None;
    }
    let mut elements = Vec::with_capacity(4);
    for element in ['x', 'y', 'z'] {
        let register = SpecialRegister::from_name(&format!("{name}.{element}"))?;
        elements.push(Operand::Special(register));
    }
    elements.push(Operand::Integer(Integer {
        bits: 0,
        negative: false,
    }));
    Some(elements)
}

/// Returns the element that `.x`, `.y`, `.z`, `.w` or `.r`, `.g`, `.b`, `.a` names.
fn component(text: &str) -> Option<u8> {
    match text {
        "x" | "r" => Some(0),
        "y" | "g" => Some(1),
        "z" | "b" => Some(2),
        "w" | "a" => Some(3),
        _ => None,
    }
}

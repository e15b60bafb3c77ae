//! Declarations of variables, parameters and registers.

use curium_format::ptx::Linkage;

use super::Parser;
use crate::syntax::ast::Register;
use crate::syntax::error::{Error, ErrorKind};
use crate::syntax::lexer::{Token, TokenKind};
use crate::syntax::modifier::Space;
use crate::syntax::operand::{LocalId, RegisterId};
use crate::syntax::scalar::{ScalarClass, ScalarType};
use crate::syntax::scope::Binding;
use crate::syntax::variable::{PointerAttribute, Variable};

/// The maximum number of dimensions of an array.
const MAX_DIMENSIONS: usize = 16;

/// The maximum number of bytes of a vector.
const MAX_VECTOR: u64 = 16;

/// The part of a declaration before the names.
#[derive(Clone, Copy)]
pub(super) struct Prefix {
    pub(super) scalar: ScalarType,
    pub(super) vector: u8,
    pub(super) align: Option<u64>,
    is_managed: bool,
    pub(super) pointer: Option<PointerAttribute>,
}

impl Prefix {
    /// Returns the size of an element in bytes.
    pub(super) const fn element(&self) -> u64 {
        self.scalar.bytes() * self.vector as u64
    }

    /// Returns the explicit alignment, or otherwise the natural one.
    pub(super) const fn alignment(&self) -> u64 {
        match self.align {
            Some(align) => align,
            None => self.element().next_power_of_two(),
        }
    }
}

/// The extents of an array.
pub(super) struct Dimensions {
    pub(super) extents: Vec<u64>,
    /// `true` if the first extent was left out.
    pub(super) is_unsized: bool,
}

impl<'a> Parser<'a> {
    /// Parses the names of variables after their space, up to the semicolon, and calls `add` for
    /// each.
    pub(super) fn variables(
        &mut self,
        space: Space,
        linkage: Linkage,
        add: fn(&mut Self, Variable) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let prefix = self.prefix(space)?;
        loop {
            let variable = self.variable(space, linkage, &prefix)?;
            let is_opaque = prefix.scalar.class() == ScalarClass::Opaque;
            if variable.size == 0 && linkage != Linkage::Extern && !is_opaque {
                let problem = format!(
                    "array '{}' without an extent must be '.extern'",
                    self.module.text(variable.name)
                );
                return Err(Error::syntax(variable.span, problem));
            }
            add(self, variable)?;
            if !self.accept(",") {
                break;
            }
        }
        self.expect(";").map(drop)
    }

    /// Parses alignment, attributes, vector and type, in any order.
    pub(super) fn prefix(&mut self, space: Space) -> Result<Prefix, Error> {
        self.bank(space)?;
        let mut prefix = Prefix {
            scalar: ScalarType::B8,
            vector: 1,
            align: None,
            is_managed: false,
            pointer: None,
        };
        let mut scalar = None;
        while self.peek().kind == TokenKind::Dot {
            let token = self.peek();
            match token.text {
                "align" => prefix.align = Some(self.alignment()?),
                "attribute" => prefix.is_managed |= self.attributes()?,
                "ptr" => prefix.pointer = Some(self.pointer()?),
                "v2" | "v4" => {
                    prefix.vector = token.text.as_bytes()[1] - b'0';
                    self.advance();
                }
                _ => {
                    scalar = Some(self.scalar(space)?);
                }
            }
        }
        prefix.scalar = scalar.ok_or_else(|| self.unexpected("a type such as '.u32'"))?;
        if prefix.element() > MAX_VECTOR {
            return Err(self.problem("the vector type exceeds 128 bits"));
        }
        Ok(prefix)
    }

    /// Parses the obsolete `[bank]` of constant memory.
    fn bank(&mut self, space: Space) -> Result<(), Error> {
        if space == Space::Const && self.accept("[") {
            self.u32("the number of a constant bank")?;
            self.expect("]")?;
        }
        Ok(())
    }

    fn scalar(&mut self, space: Space) -> Result<ScalarType, Error> {
        let token = self.peek();
        let scalar = ScalarType::from_name(token.text).filter(|scalar| match scalar.class() {
            ScalarClass::Opaque => matches!(space, Space::Global | Space::Param),
            ScalarClass::Predicate => false,
            _ => scalar.bits() >= 8,
        });
        let scalar =
            scalar.ok_or_else(|| self.unexpected("a type of variables, such as '.u32'"))?;
        self.advance();
        Ok(scalar)
    }

    /// Parses `.align N`.
    fn alignment(&mut self) -> Result<u64, Error> {
        self.advance();
        let token = self.peek();
        match token.kind {
            TokenKind::Integer(value, _) if value.is_power_of_two() && value <= 1 << 30 => {
                self.advance();
                Ok(value)
            }
            _ => Err(self.problem("the alignment must be a power of two")),
        }
    }

    /// Parses `.attribute(.managed, .unified(a, b))`. Returns `true` for `.managed`.
    fn attributes(&mut self) -> Result<bool, Error> {
        self.advance();
        self.expect("(")?;
        let mut is_managed = false;
        loop {
            if self.accept_dot("managed") {
                is_managed = true;
            } else if self.accept_dot("unified") {
                self.expect("(")?;
                self.constant_integer("an identifier")?;
                self.expect(",")?;
                self.constant_integer("an identifier")?;
                self.expect(")")?;
            } else {
                return Err(self.unexpected("'.managed' or '.unified'"));
            }
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(is_managed)
    }

    /// Parses `.ptr .space .align N`, of which both parts are optional.
    fn pointer(&mut self) -> Result<PointerAttribute, Error> {
        self.advance();
        let spaces = [Space::Const, Space::Global, Space::Local, Space::Shared];
        let space = spaces
            .into_iter()
            .find(|space| self.peek().is_dot(space.name()));
        self.position += usize::from(space.is_some());
        let align = if self.peek().is_dot("align") {
            self.alignment()?
        } else {
            4
        };
        Ok(PointerAttribute { space, align })
    }

    /// Parses a name with its extents and initial values.
    pub(super) fn variable(
        &mut self,
        space: Space,
        linkage: Linkage,
        prefix: &Prefix,
    ) -> Result<Variable, Error> {
        let token = self.word("the name of a variable")?;
        let mut dimensions = self.dimensions()?;
        let is_packed = prefix.vector > 1 || prefix.scalar == ScalarType::F16x2;
        if space == Space::Param && is_packed && dimensions.extents.is_empty() {
            return Err(self.problem("a parameter of a vector type must be an array"));
        }
        let name = self.intern(token.text);
        let mut variable = Variable {
            name,
            space,
            scalar: prefix.scalar,
            vector: prefix.vector,
            align: prefix.alignment(),
            dimensions: Vec::new(),
            size: 0,
            is_unsized: false,
            initial: Vec::new(),
            settings: Vec::new(),
            linkage,
            is_managed: prefix.is_managed,
            pointer: prefix.pointer,
            span: token.span,
        };
        if self.accept("=") {
            self.initializer(&mut variable, prefix, &mut dimensions)?;
        }
        variable.size = byte_size(&token, prefix, &dimensions.extents)?;
        variable.is_unsized = dimensions.is_unsized;
        variable.dimensions = dimensions.extents;
        Ok(variable)
    }

    /// Parses `[4][2]`, `[]`, or nothing.
    pub(super) fn dimensions(&mut self) -> Result<Dimensions, Error> {
        let mut dimensions = Dimensions {
            extents: Vec::new(),
            is_unsized: false,
        };
        while self.peek().is("[") {
            if dimensions.extents.len() == MAX_DIMENSIONS {
                return Err(Self::limit_at(
                    &self.peek(),
                    format!("more than {MAX_DIMENSIONS} dimensions"),
                ));
            }
            self.advance();
            if dimensions.extents.is_empty() && self.peek().is("]") {
                dimensions.is_unsized = true;
                dimensions.extents.push(0);
            } else {
                let token = self.peek();
                let extent = match token.kind {
                    TokenKind::Integer(bits, _) => bits,
                    TokenKind::Word if token.text == "WARP_SZ" => 32,
                    _ => return Err(self.unexpected("the extent of an array")),
                };
                self.advance();
                dimensions.extents.push(extent);
            }
            self.expect("]")?;
        }
        Ok(dimensions)
    }

    /// Parses `.local`, `.shared` and `.param` in a body.
    pub(super) fn local_variables(&mut self, space: Space) -> Result<(), Error> {
        self.advance();
        self.variables(space, Linkage::Internal, |parser, variable| {
            parser.add_local(variable).map(drop)
        })
    }

    /// Adds a variable or parameter to the function and its innermost scope.
    pub(super) fn add_local(&mut self, variable: Variable) -> Result<LocalId, Error> {
        let index = u32::try_from(self.function.variables.len())
            .expect("fewer variables than bytes of source");
        let id = LocalId(index);
        if !self.scopes.bind(variable.name, Binding::Variable(id)) {
            return Err(self.duplicate_variable(&variable));
        }
        self.function.variables.push(variable);
        Ok(id)
    }

    /// Parses `.reg .type names;`.
    pub(super) fn registers(&mut self) -> Result<(), Error> {
        self.advance();
        let (scalar, vector) = self.register_type()?;
        loop {
            self.register(scalar, vector)?;
            if !self.accept(",") {
                break;
            }
        }
        self.expect(";").map(drop)
    }

    /// Parses the vector and scalar type of registers, in either order.
    pub(super) fn register_type(&mut self) -> Result<(ScalarType, u8), Error> {
        let mut vector = 1;
        let mut scalar = None;
        while self.peek().kind == TokenKind::Dot {
            let token = self.peek();
            match token.text {
                "v2" => vector = 2,
                "v4" => vector = 4,
                // Some compilers write an alignment, which has no effect on a register.
                "align" => {
                    self.alignment()?;
                    continue;
                }
                text => {
                    scalar =
                        Some(register_scalar(text).ok_or_else(|| self.unexpected(REGISTER_TYPE))?);
                }
            }
            self.advance();
        }
        let scalar = scalar.ok_or_else(|| self.unexpected(REGISTER_TYPE))?;
        if vector > 1 && (scalar == ScalarType::Pred || scalar.bits() * u32::from(vector) > 128) {
            return Err(self.problem("the vector type exceeds 128 bits"));
        }
        Ok((scalar, vector))
    }

    /// Parses a register, or a range `prefix<count>`.
    fn register(&mut self, scalar: ScalarType, vector: u8) -> Result<(), Error> {
        let token = self.word("the name of a register")?;
        if !self.accept("<") {
            return self.add_register(&token, scalar, vector).map(drop);
        }
        let name = self.intern(token.text);
        let count = self.u32("the number of registers")?;
        self.expect(">")?;
        if self.scopes.declare_range(name, count, scalar, vector) {
            return Ok(());
        }
        Err(Self::duplicate_at(&token))
    }

    /// Adds a register to the function and its innermost scope.
    pub(super) fn add_register(
        &mut self,
        token: &Token<'a>,
        scalar: ScalarType,
        vector: u8,
    ) -> Result<RegisterId, Error> {
        let name = self.intern(token.text);
        let index = u32::try_from(self.function.registers.len())
            .expect("fewer registers than bytes of source");
        let id = RegisterId(index);
        if self.scopes.is_in_range(name, &self.module.names)
            || !self.scopes.bind(name, Binding::Register(id))
        {
            return Err(Self::duplicate_at(token));
        }
        self.function.registers.push(Register {
            name,
            scalar,
            vector,
        });
        Ok(id)
    }
}

const REGISTER_TYPE: &str = "a type of registers, such as '.b32'";

fn register_scalar(text: &str) -> Option<ScalarType> {
    ScalarType::from_name(text).filter(|scalar| match scalar.class() {
        ScalarClass::Predicate => true,
        ScalarClass::Opaque => false,
        // Numbers of other formats are held in untyped registers.
        ScalarClass::Float => {
            matches!(
                scalar,
                ScalarType::F16 | ScalarType::F16x2 | ScalarType::F32 | ScalarType::F64
            )
        }
        _ => matches!(scalar.bits(), 8 | 16 | 32 | 64 | 128),
    })
}

/// Returns the size in bytes of a variable or parameter.
pub(super) fn byte_size(token: &Token<'_>, prefix: &Prefix, extents: &[u64]) -> Result<u64, Error> {
    let size = extents
        .iter()
        .try_fold(prefix.element(), |size, extent| size.checked_mul(*extent));
    size.filter(|size| i64::try_from(*size).is_ok())
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Limit,
                token.span,
                format!("{} is larger than 2^63 bytes", token.quote()),
            )
        })
}

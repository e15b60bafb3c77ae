//! The headers of kernels and device functions.

use curium_format::ptx::Linkage;

use super::Parser;
use super::declaration::byte_size;
use crate::syntax::ast::{
    Function, FunctionId, FunctionKind, Parameter, Performance, Prototype, PrototypeParameter,
};
use crate::syntax::error::{Error, Span};
use crate::syntax::modifier::Space;
use crate::syntax::name::Name;
use crate::syntax::operand::Symbol;
use crate::syntax::validate::Signature;

/// Creates an empty function.
pub(super) fn empty_function() -> Function {
    Function {
        name: Name(0),
        kind: FunctionKind::Device,
        linkage: Linkage::Internal,
        returns: Vec::new(),
        parameters: Vec::new(),
        performance: Performance::default(),
        registers: Vec::new(),
        variables: Vec::new(),
        labels: Vec::new(),
        branch_targets: Vec::new(),
        call_targets: Vec::new(),
        prototypes: Vec::new(),
        locations: Vec::new(),
        body: None,
        span: Span::default(),
    }
}

impl Parser<'_> {
    /// Parses a declaration or definition after `.entry` or `.func`.
    pub(super) fn function(&mut self, kind: FunctionKind, linkage: Linkage) -> Result<(), Error> {
        self.function = empty_function();
        self.function.kind = kind;
        self.function.linkage = linkage;
        self.scopes.open();
        let (id, previous) = self.head()?;
        self.performance()?;
        let definition = previous.filter(|function| function.body.is_some());
        if self.peek().is("{") {
            if definition.is_some() {
                return Err(Error::syntax(
                    self.function.span,
                    format!(
                        "duplicate definition of function '{}'",
                        self.module.text(self.function.name)
                    ),
                ));
            }
            self.body()?;
        } else if !self.accept(";") {
            return Err(self.unexpected("'{', ';' or a directive such as '.maxntid'"));
        } else if let Some(definition) = definition {
            // A declaration after the definition adds nothing.
            self.function = definition;
        }
        self.scopes.close();
        self.module.functions[id.0 as usize] =
            std::mem::replace(&mut self.function, empty_function());
        Ok(())
    }

    /// Parses return values, name and parameters, and declares the function. Returns the earlier
    /// declaration of the name, if there is one.
    fn head(&mut self) -> Result<(FunctionId, Option<Function>), Error> {
        let mut signature = Signature::default();
        if self.function.kind == FunctionKind::Device && self.peek().is("(") {
            let token = self.peek();
            self.function.returns = self.parameters(&mut signature.returns)?;
            if signature.returns.len() > 1
                && signature.returns.iter().any(|result| !result.is_register)
            {
                return Err(Self::problem_at(
                    &token,
                    "several results must all be registers",
                ));
            }
        }
        let token = self.word("the name of a function")?;
        self.function.name = self.intern(token.text);
        self.function.span = token.span;
        if self.peek().is("(") {
            self.function.parameters = self.parameters(&mut signature.parameters)?;
        }
        let name = self.function.name;
        match self.symbols.get(&name).copied() {
            None => Ok((self.add_function(signature), None)),
            Some(Symbol::Function(id)) if self.signatures[id.0 as usize].accepts(&signature) => {
                let previous =
                    std::mem::replace(&mut self.module.functions[id.0 as usize], empty_function());
                if previous.kind != self.function.kind {
                    return Err(Self::problem_at(
                        &token,
                        "declared both as '.entry' and as '.func'",
                    ));
                }
                Ok((id, Some(previous)))
            }
            Some(Symbol::Function(_)) => Err(Self::problem_at(
                &token,
                "parameters differ from the declaration",
            )),
            Some(_) => Err(Self::duplicate_at(&token)),
        }
    }

    fn add_function(&mut self, signature: Signature) -> FunctionId {
        let index = u32::try_from(self.module.functions.len())
            .expect("fewer functions than bytes of source");
        let id = FunctionId(index);
        self.symbols
            .insert(self.function.name, Symbol::Function(id));
        self.signatures.push(signature);
        self.module.functions.push(empty_function());
        id
    }

    /// Parses `(.param .u32 a, .reg .b32 b, …)`.
    fn parameters(&mut self, types: &mut Vec<PrototypeParameter>) -> Result<Vec<Parameter>, Error> {
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.peek().is(")") {
            parameters.push(self.parameter(types)?);
            if !self.accept(",") {
                break;
            }
            if self.peek().is(")") {
                return Err(self.unexpected("a parameter"));
            }
        }
        self.expect(")")?;
        Ok(parameters)
    }

    fn parameter(&mut self, types: &mut Vec<PrototypeParameter>) -> Result<Parameter, Error> {
        if self.function.kind == FunctionKind::Device && self.accept_dot("reg") {
            let (scalar, vector) = self.register_type()?;
            let token = self.word("the name of a register")?;
            let size = scalar.bytes() * u64::from(vector);
            types.push(PrototypeParameter {
                is_register: true,
                scalar,
                align: size.next_power_of_two(),
                size,
            });
            return Ok(Parameter::Register(
                self.add_register(&token, scalar, vector)?,
            ));
        }
        if !self.accept_dot("param") {
            let device = self.function.kind == FunctionKind::Device;
            return Err(self.unexpected(if device {
                "'.param' or '.reg'"
            } else {
                "'.param'"
            }));
        }
        let token = self.peek();
        let prefix = self.prefix(Space::Param)?;
        if self.function.kind == FunctionKind::Device && prefix.pointer.is_some() {
            return Err(Self::problem_at(
                &token,
                "'.ptr' is supported only for parameters of kernels",
            ));
        }
        let variable = self.variable(Space::Param, Linkage::Internal, &prefix)?;
        types.push(PrototypeParameter {
            is_register: false,
            scalar: variable.scalar,
            align: variable.align,
            size: variable.size,
        });
        Ok(Parameter::Variable(self.add_local(variable)?))
    }

    /// Parses the parameters of a `.callprototype`, whose names are ignored.
    fn prototype_parameters(&mut self) -> Result<Vec<PrototypeParameter>, Error> {
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.peek().is(")") {
            parameters.push(self.prototype_parameter()?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(parameters)
    }

    fn prototype_parameter(&mut self) -> Result<PrototypeParameter, Error> {
        if self.accept_dot("reg") {
            let (scalar, vector) = self.register_type()?;
            self.word("'_' or the name of a register")?;
            let size = scalar.bytes() * u64::from(vector);
            return Ok(PrototypeParameter {
                is_register: true,
                scalar,
                align: size.next_power_of_two(),
                size,
            });
        }
        if !self.accept_dot("param") {
            return Err(self.unexpected("'.param' or '.reg'"));
        }
        let prefix = self.prefix(Space::Param)?;
        let token = self.word("'_' or the name of a parameter")?;
        let dimensions = self.dimensions()?;
        let size = byte_size(&token, &prefix, &dimensions.extents)?;
        Ok(PrototypeParameter {
            is_register: false,
            scalar: prefix.scalar,
            align: prefix.alignment(),
            size,
        })
    }

    /// Parses `.callprototype (returns) _ (parameters) .noreturn;`.
    pub(super) fn call_prototype(&mut self, name: Name) -> Result<Prototype, Error> {
        self.advance();
        let returns = if self.peek().is("(") {
            self.prototype_parameters()?
        } else {
            Vec::new()
        };
        self.word("'_'")?;
        let parameters = if self.peek().is("(") {
            self.prototype_parameters()?
        } else {
            Vec::new()
        };
        let mut no_return = false;
        loop {
            if self.accept_dot("noreturn") {
                no_return = true;
            } else if self.accept_dot("abi_preserve") || self.accept_dot("abi_preserve_control") {
                self.u32("a number of registers")?;
            } else {
                break;
            }
        }
        self.expect(";")?;
        Ok(Prototype {
            name,
            returns,
            parameters,
            no_return,
        })
    }

    /// Parses the directives between the parameters and the body.
    fn performance(&mut self) -> Result<(), Error> {
        loop {
            let token = self.peek();
            if token.is_dot("pragma") {
                let strings = self.pragma()?;
                self.function.performance.pragmas.extend(strings);
                continue;
            }
            if !self.performance_flag() && !self.performance_number()? {
                return Ok(());
            }
        }
    }

    fn performance_flag(&mut self) -> bool {
        let token = self.peek();
        let performance = &mut self.function.performance;
        let flag = match token.text {
            "noreturn" => &mut performance.no_return,
            "explicitcluster" => &mut performance.explicit_cluster,
            "blocksareclusters" => &mut performance.blocks_are_clusters,
            _ => return false,
        };
        let is_directive = token.is_dot(token.text);
        *flag |= is_directive;
        self.position += usize::from(is_directive);
        is_directive
    }

    fn performance_number(&mut self) -> Result<bool, Error> {
        let token = self.peek();
        if !token.is_dot(token.text) {
            return Ok(false);
        }
        match token.text {
            "maxntid" => self.function.performance.max_threads = Some(self.extent()?),
            "reqntid" => self.function.performance.required_threads = Some(self.extent()?),
            "reqnctapercluster" => {
                self.function.performance.required_cluster = Some(self.extent()?);
            }
            "minnctapersm" => {
                self.function.performance.min_blocks_per_multiprocessor = Some(self.number()?);
            }
            "maxnctapersm" => {
                self.function.performance.max_blocks_per_multiprocessor = Some(self.number()?);
            }
            "maxnreg" => self.function.performance.max_registers = Some(self.number()?),
            "maxclusterrank" => self.function.performance.max_cluster_rank = Some(self.number()?),
            // The number of preserved registers has no effect here.
            "abi_preserve" | "abi_preserve_control" => drop(self.number()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn number(&mut self) -> Result<u32, Error> {
        self.advance();
        self.u32("a number")
    }

    /// Parses one to three numbers.
    fn extent(&mut self) -> Result<[u32; 3], Error> {
        let mut extent = [self.number()?, 1, 1];
        for dimension in &mut extent[1..] {
            if !self.accept(",") {
                break;
            }
            *dimension = self.u32("a number")?;
        }
        Ok(extent)
    }
}

//! Branches, barriers and calls.

use super::{Context, Signature, Width, fits};
use crate::syntax::ast::PrototypeParameter;
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Modifier, Operation, Scope, Semantics, Space};
use crate::syntax::operand::{Call, CallSignature, Callee, Operand, Symbol};
use crate::syntax::scalar::{ScalarClass, ScalarType};

/// The number of barriers of a block.
const BARRIERS: u64 = 16;
/// The number of threads of a warp.
const WARP: u64 = 32;

impl Context<'_> {
    /// `bra`
    pub(super) fn branch(&self) -> Result<(), Error> {
        self.count(1..=1)?;
        match self.operand(0) {
            Operand::Label(_) => Ok(()),
            _ => Err(self.operand_error(0, "a label of this function")),
        }
    }

    /// `bar` and `barrier`
    pub(super) fn barrier(&self) -> Result<(), Error> {
        if self.has(Modifier::Scope(Scope::Cluster)) {
            return self.cluster_barrier();
        }
        if self.has_keyword(Keyword::Warp) {
            self.count(1..=1)?;
            return self.source(0, ScalarType::B32, Width::Exact);
        }
        if self.has_keyword(Keyword::Red) {
            return self.barrier_reduction();
        }
        let min = if self.has_keyword(Keyword::Sync) {
            1
        } else if self.has_keyword(Keyword::Arrive) {
            2
        } else {
            return Err(self.error("missing '.sync', '.arrive', '.red' or '.warp.sync'"));
        };
        self.count(min..=2)?;
        self.barrier_and_threads(0, self.spans.len())
    }

    /// `barrier.cluster`
    fn cluster_barrier(&self) -> Result<(), Error> {
        let arrives = self.has_keyword(Keyword::Arrive);
        if arrives == self.has_keyword(Keyword::Wait) {
            return Err(self.error("either '.arrive' or '.wait' is required"));
        }
        for modifier in &self.instruction.modifiers {
            let is_supported = match modifier {
                Modifier::Semantics(Semantics::Release | Semantics::Relaxed) => arrives,
                Modifier::Semantics(Semantics::Acquire) => !arrives,
                Modifier::Scope(Scope::Cluster)
                | Modifier::Keyword(Keyword::Arrive | Keyword::Wait | Keyword::Aligned) => true,
                _ => false,
            };
            if !is_supported {
                return Err(self.error(format!("unsupported suffix '.{modifier}'")));
            }
        }
        let semantics = self.instruction.modifiers.iter();
        let semantics = semantics.filter(|modifier| matches!(modifier, Modifier::Semantics(_)));
        if semantics.count() > 1 {
            return Err(self.error("more than one memory semantics"));
        }
        self.count(0..=0)
    }

    /// Checks the number of a barrier, and the number of its threads if there is one.
    fn barrier_and_threads(&self, from: usize, to: usize) -> Result<(), Error> {
        (from..to).try_for_each(|index| self.source(index, ScalarType::U32, Width::Exact))?;
        if let Operand::Integer(barrier) = self.operand(from)
            && barrier.bits >= BARRIERS
        {
            return Err(self.operand_error(from, format!("a barrier below {BARRIERS}")));
        }
        if from + 1 < to
            && let Operand::Integer(threads) = self.operand(from + 1)
        {
            let arrives = self.has_keyword(Keyword::Arrive);
            if !threads.bits.is_multiple_of(WARP) || arrives && threads.bits == 0 {
                return Err(self.operand_error(from + 1, format!("a multiple of {WARP} threads")));
            }
        }
        Ok(())
    }

    fn barrier_reduction(&self) -> Result<(), Error> {
        let allowed = if self.has_operation(Operation::PopulationCount) {
            &[ScalarType::U32]
        } else {
            &[ScalarType::Pred]
        };
        let scalar = self.scalar(allowed)?;
        self.count(3..=4)?;
        self.destination(0, scalar, Width::Exact)?;
        let last = self.spans.len() - 1;
        self.barrier_and_threads(1, last)?;
        self.source(last, ScalarType::Pred, Width::Exact)
    }

    /// `call`
    pub(super) fn call(&self) -> Result<(), Error> {
        self.count(1..=1)?;
        let Operand::Call(call) = self.operand(0) else {
            return Err(self.operand_error(0, "the name of a function or a register"));
        };
        match call.callee {
            Callee::Direct(id) => self.call_fits(call, &self.signatures[id.0 as usize]),
            Callee::Indirect(register, signature) => {
                if self.register(register).bits() != 64
                    || !self.register(register).is_integer_like()
                {
                    return Err(self.error_at(
                        self.spans[0],
                        format!(
                            "invalid callee (expected a 64-bit register, found {})",
                            self.describe_register(register)
                        ),
                    ));
                }
                self.indirect_call(call, signature)
            }
        }
    }

    fn indirect_call(&self, call: &Call, signature: CallSignature) -> Result<(), Error> {
        match signature {
            CallSignature::Prototype(id) => {
                let prototype = &self.function.prototypes[id.0 as usize];
                self.arguments(&call.returns, &prototype.returns, "result")?;
                self.arguments(&call.arguments, &prototype.parameters, "argument")
            }
            CallSignature::Targets(id) => {
                let targets = &self.function.call_targets[id.0 as usize].functions;
                targets.iter().try_for_each(|target| {
                    self.call_fits(call, &self.signatures[target.0 as usize])
                })
            }
        }
    }

    fn call_fits(&self, call: &Call, signature: &Signature) -> Result<(), Error> {
        self.arguments(&call.returns, &signature.returns, "result")?;
        self.arguments(&call.arguments, &signature.parameters, "argument")
    }

    /// Checks the arguments or the results of a call, which `what` names.
    fn arguments(
        &self,
        operands: &[Operand],
        parameters: &[PrototypeParameter],
        what: &str,
    ) -> Result<(), Error> {
        let span = self.spans[0];
        if operands.len() != parameters.len() {
            return Err(self.error_at(
                span,
                format!(
                    "wrong number of {what}s (expected {}, found {})",
                    parameters.len(),
                    operands.len()
                ),
            ));
        }
        for (index, (operand, parameter)) in operands.iter().zip(parameters).enumerate() {
            let number = index + 1;
            if !is_passed(parameter) {
                return Err(self.error_at(
                    span,
                    format!(
                        "type .{} of {what} {number} cannot be passed",
                        parameter.scalar.name()
                    ),
                ));
            }
            if *operand == Operand::Sink && what == "argument" {
                return Err(self.error_at(
                    span,
                    format!("invalid argument {number} (expected a value, found '_')"),
                ));
            }
            if !self.argument_fits(operand, parameter) {
                return Err(self.error_at(
                    span,
                    format!(
                        "invalid {what} {number} (expected {} bytes, found {})",
                        parameter.size,
                        self.describe_argument(operand)
                    ),
                ));
            }
        }
        Ok(())
    }

    fn argument_fits(&self, operand: &Operand, parameter: &PrototypeParameter) -> bool {
        match operand {
            Operand::Symbol(Symbol::Local(id), 0) => {
                let variable = &self.function.variables[id.0 as usize];
                // The caller determines the size of an unsized parameter.
                let is_alike = parameter.size == 0
                    || is_passed_as(variable.scalar, parameter.scalar)
                        && variable.size == parameter.size
                        && variable.align == parameter.align;
                variable.space == Space::Param && is_alike
            }
            Operand::Register(id) => {
                let register = &self.function.registers[id.0 as usize];
                let size = register.scalar.bytes() * u64::from(register.vector);
                // Only the size of a vector is compared.
                let is_alike =
                    register.vector > 1 || is_passed_as(register.scalar, parameter.scalar);
                is_alike && size == parameter.size
            }
            Operand::Sink => true,
            Operand::Integer(_) => {
                !matches!(
                    parameter.scalar.class(),
                    ScalarClass::Float | ScalarClass::Predicate
                ) && parameter.size <= 8
            }
            Operand::Single(_) | Operand::Double(_) => {
                let is_number = matches!(
                    parameter.scalar.class(),
                    ScalarClass::Float | ScalarClass::Bits
                );
                is_number && parameter.scalar != ScalarType::F16x2 && parameter.size <= 8
            }
            _ => false,
        }
    }

    fn describe_argument(&self, operand: &Operand) -> String {
        match operand {
            Operand::Symbol(Symbol::Local(id), _) => {
                let variable = &self.function.variables[id.0 as usize];
                let space = variable.space.name();
                format!(
                    "'{}' of {} bytes in .{space}",
                    self.module.text(variable.name),
                    variable.size
                )
            }
            _ => self.describe(operand),
        }
    }
}

/// Returns `true` if a parameter takes a value of a type of the same size. Floating-point formats
/// are not compared.
fn is_passed_as(argument: ScalarType, parameter: ScalarType) -> bool {
    fits(argument, parameter, Width::Exact) || argument.class() == parameter.class()
}

/// Returns `true` if calls pass values of this type. Predicates and typed integers of 8 and 16 bits
/// are not passed, whether in registers or in memory; untyped bits are.
fn is_passed(parameter: &PrototypeParameter) -> bool {
    let is_typed = matches!(
        parameter.scalar.class(),
        ScalarClass::Signed | ScalarClass::Unsigned | ScalarClass::Predicate
    );
    let is_scalar = parameter.size == parameter.scalar.bytes();
    !(is_typed && is_scalar && parameter.scalar.bits() < 32)
}

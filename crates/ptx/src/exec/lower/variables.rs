//! The variables and parameters of a function: their locations and addresses.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use super::module::Place;
use crate::exec::check::variable::{Shape, SharedVariable};
use crate::exec::machine::program::Late;
use crate::syntax::{FunctionKind, LocalId, Parameter, Space, Symbol, Variable};

/// The value at which sums of sizes saturate, in bytes. Functions with so much memory are rejected
/// later.
const MAX_BYTES: u64 = 1 << 40;

/// The location of a variable of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableLocation {
    /// At an offset of the frame's local memory.
    Frame(u64),
    /// At an offset of the kernel's parameters.
    Param(u64),
    /// At an offset of shared memory.
    Shared(u64),
    /// At the end of the kernel's static shared memory.
    DynamicShared,
}

impl Lowerer<'_> {
    /// Allocates every variable, and returns the end of the function's shared memory.
    pub(super) fn place_variables(&mut self, shared_base: u64) -> Lowered<u64> {
        let function = self.function;
        self.place_parameters();
        let mut shared = shared_base;
        for (index, variable) in function.variables.iter().enumerate() {
            let id = LocalId(index as u32);
            if self.homes.contains_key(&id) {
                continue;
            }
            let home = match variable.space {
                Space::Local | Space::Param | Space::ParamFunction => {
                    VariableLocation::Frame(self.new_local(variable.size, variable.align))
                }
                Space::Shared | Space::SharedCta if variable.size == 0 => {
                    VariableLocation::DynamicShared
                }
                Space::Shared | Space::SharedCta => {
                    let offset = shared.next_multiple_of(variable.align.max(1));
                    shared = offset.saturating_add(variable.size).min(MAX_BYTES);
                    VariableLocation::Shared(offset)
                }
                space => {
                    let name = space.name();
                    return Err(Refusal(format!(
                        "a variable in .{name} of a function is not supported"
                    )));
                }
            };
            self.homes.insert(id, home);
        }
        Ok(shared)
    }

    fn place_parameters(&mut self) {
        let function = self.function;
        if function.kind == FunctionKind::Entry {
            let mut end = 0u64;
            for parameter in &function.parameters {
                if let Parameter::Variable(id) = parameter {
                    let variable = &function.variables[id.0 as usize];
                    let offset = end.next_multiple_of(variable.align.max(1));
                    end = offset.saturating_add(variable.size).min(MAX_BYTES);
                    self.parameter_size = end;
                    self.homes.insert(*id, VariableLocation::Param(offset));
                }
            }
            return;
        }
        self.out.params = function
            .parameters
            .iter()
            .map(|parameter| self.place_formal(*parameter))
            .collect();
        self.out.returns = function
            .returns
            .iter()
            .map(|parameter| self.place_formal(*parameter))
            .collect();
    }

    fn place_formal(&mut self, parameter: Parameter) -> (u64, u64) {
        match parameter {
            Parameter::Variable(id) => {
                let variable = &self.function.variables[id.0 as usize];
                let offset = self.new_local(variable.size, variable.align);
                self.homes.insert(id, VariableLocation::Frame(offset));
                (offset, variable.size)
            }
            Parameter::Register(id) => {
                let bytes = self.register_bytes(id);
                let offset = self.new_local(bytes, 8);
                self.register_homes.insert(id, offset);
                (offset, bytes)
            }
        }
    }

    /// Returns the variables in static shared memory that the function declares.
    pub(super) fn shared_variables(&self) -> Vec<SharedVariable> {
        let variables = (0..).zip(&self.function.variables);
        let shared = variables.filter_map(|(index, variable)| {
            let Some(VariableLocation::Shared(offset)) = self.homes.get(&LocalId(index)) else {
                return None;
            };
            Some(SharedVariable {
                name: self.context.module.text(variable.name).into(),
                offset: *offset,
                size: variable.size,
                shape: shape(variable),
            })
        });
        shared.collect()
    }

    /// Reserves local memory and returns its offset. Calls copy whole words, so variables share no
    /// word.
    pub(super) fn new_local(&mut self, size: u64, align: u64) -> u64 {
        let offset = self.local_size.next_multiple_of(align.max(8));
        self.out.local_align = self.out.local_align.max(align);
        self.local_size = offset
            .saturating_add(size.min(MAX_BYTES).next_multiple_of(8))
            .min(MAX_BYTES);
        offset
    }

    /// Returns the number of bytes of a kernel's parameters.
    pub(super) fn parameter_size(&self) -> u64 {
        self.parameter_size
    }

    /// Returns the number of bytes of local memory of an activation.
    pub(super) fn local_size(&self) -> u64 {
        self.local_size.next_multiple_of(16)
    }

    /// Returns the offset of a kernel parameter in the parameter buffer.
    pub(super) fn param_offset(&self, id: LocalId) -> Option<u64> {
        match self.homes.get(&id) {
            Some(VariableLocation::Param(offset)) => Some(*offset),
            _ => None,
        }
    }

    /// Returns the location of a variable of the function.
    pub(super) fn home(&self, id: LocalId) -> VariableLocation {
        self.homes[&id]
    }

    /// Returns a 64-bit row with the address of a symbol in its own space.
    pub(super) fn symbol_address(&mut self, symbol: Symbol, offset: i64) -> Lowered<u32> {
        let home = match symbol {
            Symbol::Function(function) => {
                return Ok(self.double(self.context.function_address(function)));
            }
            Symbol::Global(id) => match self.context.variable_place(id)? {
                Place::Device(index) => return Ok(self.late(Late::Global(index, offset))),
                Place::Shared(base) => VariableLocation::Shared(base),
                Place::DynamicShared => VariableLocation::DynamicShared,
            },
            Symbol::Local(id) => self.home(id),
        };
        Ok(match home {
            VariableLocation::Param(base) | VariableLocation::Shared(base) => {
                self.double(base.wrapping_add_signed(offset))
            }
            VariableLocation::DynamicShared => self.late(Late::DynamicShared(offset)),
            VariableLocation::Frame(base) => self.frame_address(base.wrapping_add_signed(offset)),
        })
    }
}

/// Returns the elements of a variable.
pub(super) fn shape(variable: &Variable) -> Shape {
    Shape {
        element: variable.scalar.bytes() * u64::from(variable.vector),
        dimensions: variable.dimensions.clone(),
    }
}

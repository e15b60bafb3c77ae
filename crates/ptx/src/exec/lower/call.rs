//! Calls, direct and indirect. Parameters are passed in local memory.

use super::address::Target;
use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use super::variables::VariableLocation;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::program::{self, CallSite};
use crate::exec::ops::access::{load, store};
use crate::exec::ops::handler::select;
use crate::exec::space::Space;
use crate::syntax::{
    Call, CallSignature, Callee, FunctionId, Instruction, Operand, Parameter, RegisterId, Symbol,
};

impl Lowerer<'_> {
    /// `call`.
    pub(super) fn call(&mut self, instruction: &Instruction) -> Lowered {
        let [Operand::Call(call)] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let callee = match call.callee {
            Callee::Direct(function) => {
                let id = self.context.resolve_alias(function);
                let target = self.context.module.function(id);
                if target.body.is_none() {
                    return self.system_call(self.context.module.text(target.name), call);
                }
                if target.parameters.len() != call.arguments.len()
                    || target.returns.len() != call.returns.len()
                {
                    return Err(Refusal(
                        "the call does not match the function's signature".into(),
                    ));
                }
                program::Callee::Direct(id.0)
            }
            Callee::Indirect(register, _) => match self.slot(register) {
                Slot::Double(row) => program::Callee::Indirect(row),
                _ => return Err(Refusal::operand("a 64-bit function address")),
            },
        };
        let mut arguments = Vec::new();
        for argument in &call.arguments {
            arguments.push(self.argument(argument)?);
        }
        let mut results = Vec::new();
        let mut registers = Vec::new();
        for result in &call.returns {
            let offset = match result {
                Operand::Symbol(Symbol::Local(id), 0) => self.frame_home(*id)?,
                Operand::Register(register) => {
                    let offset = self.new_local(self.register_bytes(*register), 8);
                    registers.push((*register, offset));
                    offset
                }
                Operand::Sink => self.new_local(self.result_bytes(call, results.len()), 8),
                _ => return Err(Refusal::operand("a .param variable or a register")),
            };
            results.push(offset);
        }
        self.out.calls.push(CallSite {
            callee,
            arguments,
            results,
        });
        let site = self.out.calls.len() as u64 - 1;
        self.diverging(|_, _| Control::Call).imm = site;
        for (register, offset) in registers {
            self.register_from_frame(register, offset)?;
        }
        Ok(())
    }

    /// Returns the size in bytes of a result in the declaration of a function.
    fn declared_result_bytes(&self, function: FunctionId, index: usize) -> u64 {
        let function = self
            .context
            .module
            .function(self.context.resolve_alias(function));
        match function.returns[index] {
            Parameter::Variable(id) => function.variables[id.0 as usize].size,
            Parameter::Register(id) => {
                let register = &function.registers[id.0 as usize];
                u64::from(register.vector) * register.scalar.bytes().max(4)
            }
        }
    }

    /// Returns the number of bytes of local memory that a result takes.
    fn result_bytes(&self, call: &Call, index: usize) -> u64 {
        let bytes = match call.callee {
            Callee::Direct(id) => self.declared_result_bytes(id, index),
            Callee::Indirect(_, CallSignature::Targets(id)) => self.function.call_targets
                [id.0 as usize]
                .functions
                .first()
                .map_or(0, |id| self.declared_result_bytes(*id, index)),
            // An element in a register takes at least 4 bytes.
            Callee::Indirect(_, CallSignature::Prototype(id)) => {
                let result = &self.function.prototypes[id.0 as usize].returns[index];
                if result.is_register {
                    result.size * 4
                } else {
                    result.size
                }
            }
        };
        bytes.max(8)
    }

    pub(super) fn argument(&mut self, argument: &Operand) -> Lowered<u64> {
        match argument {
            Operand::Symbol(Symbol::Local(id), 0) => self.frame_home(*id),
            Operand::Register(register) => {
                let offset = self.new_local(self.register_bytes(*register), 8);
                self.register_to_frame(*register, offset)?;
                Ok(offset)
            }
            Operand::Integer(integer) => {
                let offset = self.new_local(8, 8);
                let row = self.double(integer.bits);
                self.copy_to_frame(Slot::Double(row), offset)?;
                Ok(offset)
            }
            Operand::Single(bits) => {
                let offset = self.new_local(8, 8);
                let row = self.word(*bits);
                self.copy_to_frame(Slot::Word(row), offset)?;
                Ok(offset)
            }
            Operand::Double(bits) => {
                let offset = self.new_local(8, 8);
                let row = self.double(*bits);
                self.copy_to_frame(Slot::Double(row), offset)?;
                Ok(offset)
            }
            _ => Err(Refusal::operand(
                "a .param variable, a register or an immediate",
            )),
        }
    }

    pub(super) fn frame_home(&self, id: crate::syntax::LocalId) -> Lowered<u64> {
        match self.home(id) {
            VariableLocation::Frame(offset) => Ok(offset),
            _ => Err(Refusal::operand("a .param variable of this function")),
        }
    }

    /// Appends loads of a register, with all its elements, from the frame's local memory.
    pub(super) fn register_from_frame(&mut self, register: RegisterId, offset: u64) -> Lowered {
        for (index, slot) in (0_u64..).zip(self.register_slots(register)) {
            self.copy_from_frame(slot, offset + index * element_bytes(slot))?;
        }
        Ok(())
    }

    /// Appends stores of a register, with all its elements, to the frame's local memory.
    pub(super) fn register_to_frame(&mut self, register: RegisterId, offset: u64) -> Lowered {
        for (index, slot) in (0_u64..).zip(self.register_slots(register)) {
            self.copy_to_frame(slot, offset + index * element_bytes(slot))?;
        }
        Ok(())
    }

    /// Returns the number of bytes of local memory of a register parameter.
    pub(super) fn register_bytes(&self, register: RegisterId) -> u64 {
        self.register_slots(register)
            .iter()
            .map(|slot| element_bytes(*slot))
            .sum::<u64>()
            .max(8)
    }

    fn register_slots(&self, register: RegisterId) -> Vec<Slot> {
        let vector = self.function.registers[register.0 as usize].vector;
        (0..vector)
            .map(|index| self.element(register, index))
            .collect()
    }

    /// Appends a load of a register from the frame's local memory.
    pub(super) fn copy_from_frame(&mut self, slot: Slot, offset: u64) -> Lowered {
        let (run, d) = match slot {
            Slot::Word(row) => (load::<u32, u32>(), row),
            Slot::Double(row) => (load::<u64, u64>(), row),
            Slot::Quad(row) => {
                self.copy_from_frame(Slot::Double(row), offset)?;
                return self.copy_from_frame(Slot::Double(row + 1), offset + 8);
            }
            Slot::Predicate(number) => {
                let word = self.new_word();
                self.copy_from_frame(Slot::Word(word), offset)?;
                return self.move_predicate(number, Slot::Word(word));
            }
        };
        self.push(Op {
            d,
            imm: offset,
            space: Space::Frame,
            ..Op::new(run)
        });
        Ok(())
    }

    /// Appends a store of a register to the frame's local memory.
    pub(super) fn copy_to_frame(&mut self, slot: Slot, offset: u64) -> Lowered {
        let (run, b) = match slot {
            Slot::Word(row) => (store::<u32, u32>(), row),
            Slot::Double(row) => (store::<u64, u64>(), row),
            Slot::Quad(row) => {
                self.copy_to_frame(Slot::Double(row), offset)?;
                return self.copy_to_frame(Slot::Double(row + 1), offset + 8);
            }
            Slot::Predicate(number) => {
                let word = self.new_word();
                let one = self.word(1);
                let zero = self.word(0);
                self.emit(select::<u32>(), word, [one, zero, number]);
                return self.copy_to_frame(Slot::Word(word), offset);
            }
        };
        let bytes = if matches!(slot, Slot::Word(_)) { 4 } else { 8 };
        self.note_write(
            Target {
                space: Space::Frame,
                row: 0,
                narrow: false,
                offset,
            },
            bytes,
        );
        self.push(Op {
            b,
            imm: offset,
            space: Space::Frame,
            ..Op::new(run)
        });
        Ok(())
    }
}

fn element_bytes(slot: Slot) -> u64 {
    match slot {
        Slot::Word(_) | Slot::Predicate(_) => 4,
        Slot::Double(_) => 8,
        Slot::Quad(_) => 16,
    }
}

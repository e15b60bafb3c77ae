//! Calls: parameters by local memory, direct and indirect.

use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use super::variables::Home;
use crate::exec::access::{load, store};
use crate::exec::op::{Control, Op, Space};
use crate::exec::program::{self, CallSite};
use crate::ptx::{Callee, Instruction, Operand, Symbol};

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
                if target.parameters.len() != call.arguments.len() || target.returns.len() != call.returns.len() {
                    return Err(Refusal("the call does not fit its function's signature".into()));
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
                    let offset = self.new_local(8, 8);
                    registers.push((self.slot(*register), offset));
                    offset
                }
                Operand::Sink => self.new_local(8, 8),
                _ => return Err(Refusal::operand("a .param variable or a register")),
            };
            results.push(offset);
        }
        self.out.calls.push(CallSite { callee, arguments, results });
        let site = self.out.calls.len() as u64 - 1;
        self.diverging(|_, _| Control::Call).imm = site;
        for (slot, offset) in registers {
            self.copy_from_frame(slot, offset)?;
        }
        Ok(())
    }

    pub(super) fn argument(&mut self, argument: &Operand) -> Lowered<u64> {
        match argument {
            Operand::Symbol(Symbol::Local(id), 0) => self.frame_home(*id),
            Operand::Register(register) => {
                let offset = self.new_local(8, 8);
                self.copy_to_frame(self.slot(*register), offset)?;
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
            _ => Err(Refusal::operand("a .param variable, a register or an immediate")),
        }
    }

    pub(super) fn frame_home(&self, id: crate::ptx::LocalId) -> Lowered<u64> {
        match self.home(id) {
            Home::Frame(offset) => Ok(offset),
            _ => Err(Refusal::operand("a .param variable of this function")),
        }
    }

    /// Appends a load of a register from the frame's local memory.
    pub(super) fn copy_from_frame(&mut self, slot: Slot, offset: u64) -> Lowered {
        let (run, d) = match slot {
            Slot::Word(row) => (load::<u32, u32>(), row),
            Slot::Double(row) => (load::<u64, u64>(), row),
            Slot::Quad(_) => return Err(Refusal("registers of 128 bits cannot be passed".into())),
            Slot::Predicate(_) => return Err(Refusal("predicates cannot be passed".into())),
        };
        self.push(Op { d, imm: offset, space: Space::Frame, ..Op::new(run) });
        Ok(())
    }

    /// Appends a store of a register to the frame's local memory.
    pub(super) fn copy_to_frame(&mut self, slot: Slot, offset: u64) -> Lowered {
        let (run, b) = match slot {
            Slot::Word(row) => (store::<u32, u32>(), row),
            Slot::Double(row) => (store::<u64, u64>(), row),
            Slot::Quad(_) => return Err(Refusal("registers of 128 bits cannot be passed".into())),
            Slot::Predicate(_) => return Err(Refusal("predicates cannot be passed".into())),
        };
        self.push(Op { b, imm: offset, space: Space::Frame, ..Op::new(run) });
        Ok(())
    }
}

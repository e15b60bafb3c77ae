//! Asynchronous copies, and the mbarrier objects on which they complete.

use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use crate::exec::machine::op::Op;
use crate::exec::ops::asynchronous::{
    run_arrive_after_copies, run_commit, run_copy, run_wait_all, run_wait_group,
};
use crate::exec::ops::barrier_object::{COMPLETE, run_update};
use crate::exec::ops::handler::moves::{add_doubles, add_words, zero_extend};
use crate::exec::ops::handler::select;
use crate::exec::space::Space;
use crate::syntax::{
    Address, Base, Instruction, Keyword, Modifier, Opcode, Operand, ScalarType, Space as State,
};

impl Lowerer<'_> {
    /// `cp.async`, and its commit and wait.
    pub(super) fn copy_asynchronously(&mut self, instruction: &Instruction) -> Lowered {
        if instruction.has_keyword(Keyword::Bulk) || instruction.has_keyword(Keyword::Reduce) {
            return self.copy_bulk(instruction);
        }
        if instruction.has_keyword(Keyword::CommitGroup) {
            self.push(Op::new(run_commit));
            return Ok(());
        }
        if instruction.has_keyword(Keyword::WaitAll) {
            self.push(Op::new(run_wait_all));
            return Ok(());
        }
        match &instruction.operands[..] {
            [Operand::Integer(count)] if instruction.has_keyword(Keyword::WaitGroup) => {
                self.push(Op::new(run_wait_group)).imm = count.bits;
                Ok(())
            }
            [Operand::Address(barrier)] if instruction.has_keyword(Keyword::Mbarrier) => {
                let space = address_space(state(instruction, 0));
                let a = self.address_row(*barrier)?;
                let op = self.push(Op {
                    a,
                    space,
                    ..Op::new(run_arrive_after_copies)
                });
                op.imm = u64::from(instruction.has_keyword(Keyword::Noinc));
                Ok(())
            }
            [
                Operand::Address(to),
                Operand::Address(from),
                Operand::Integer(size),
                rest @ ..,
            ] if matches!(size.bits, 4 | 8 | 16) => {
                let hint = usize::from(instruction.has(Modifier::CacheHint));
                let optional = &rest[..rest.len().saturating_sub(hint)];
                let a = self.address_row(*to)?;
                let b = self.address_row(*from)?;
                let c = self.bytes_read(optional.first(), size.bits as u32)?;
                let op = self.push(Op {
                    a,
                    b,
                    c,
                    ..Op::new(run_copy)
                });
                op.imm = size.bits;
                Ok(())
            }
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// Returns the row with the number of bytes that a copy reads: all, the operand, or none if a
    /// predicate is false.
    fn bytes_read(&mut self, operand: Option<&Operand>, size: u32) -> Lowered<u32> {
        let all = self.word(size);
        match operand {
            None => Ok(all),
            Some(Operand::Register(register)) => match self.slot(*register) {
                Slot::Predicate(predicate) => {
                    let none = self.word(0);
                    let row = self.new_word();
                    self.emit(select::<u32>(), row, [none, all, predicate]).e = 0;
                    Ok(row)
                }
                slot => self.source_slot(slot, false),
            },
            Some(negated @ Operand::Not(_)) => {
                let (predicate, negate) = self.predicate_source(negated)?;
                let none = self.word(0);
                let row = self.new_word();
                self.emit(select::<u32>(), row, [none, all, predicate]).e = negate;
                Ok(row)
            }
            Some(other) => self.source(other, ScalarType::U32),
        }
    }

    /// Returns a 64-bit row with the address in the operand's state space.
    pub(super) fn address_row(&mut self, address: Address) -> Lowered<u32> {
        let row = match address.base {
            Base::Symbol(symbol) => return self.symbol_address(symbol, address.offset),
            Base::Absolute => return Ok(self.double(address.offset as u64)),
            Base::Register(register) => match self.slot(register) {
                Slot::Double(row) => row,
                Slot::Word(row) => {
                    let sum = self.new_word();
                    let offset = self.word(address.offset as u32);
                    let wide = self.new_double();
                    self.emit(add_words(), sum, [row, offset, 0]);
                    self.emit(zero_extend(), wide, [sum, 0, 0]);
                    return Ok(wide);
                }
                _ => {
                    return Err(Refusal::operand(
                        "an address in a register of 32 or 64 bits",
                    ));
                }
            },
        };
        if address.offset == 0 {
            return Ok(row);
        }
        let sum = self.new_double();
        let offset = self.double(address.offset as u64);
        self.emit(add_doubles(), sum, [row, offset, 0]);
        Ok(sum)
    }

    /// `st.async` and `red.async`: a store or a reduction that completes on an mbarrier object, if
    /// it has one.
    pub(super) fn store_asynchronously(&mut self, instruction: &Instruction) -> Lowered {
        if let [Operand::Address(_), _] = &instruction.operands[..] {
            return match instruction.opcode {
                Opcode::Red => self.atomic(instruction, false),
                _ => self.store(instruction),
            };
        }
        let ([Operand::Address(to), source, Operand::Address(barrier)], Some(scalar)) =
            (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let store = Instruction {
            operands: vec![Operand::Address(*to), source.clone()],
            modifiers: instruction.modifiers.clone(),
            ..instruction.clone()
        };
        match store.opcode {
            Opcode::Red => self.atomic(&store, false)?,
            _ => self.store(&store)?,
        }
        let count = if let Operand::Vector(elements) = source {
            elements.len() as u64
        } else {
            1
        };
        let a = self.address_row(*barrier)?;
        let b = self.word((count * scalar.bytes()) as u32);
        let d = self.new_double();
        self.push(Op {
            a,
            b,
            d,
            space: Space::Shared,
            ..Op::new(run_update::<COMPLETE>)
        });
        Ok(())
    }
}

/// Returns the n-th state space that an instruction names.
pub(super) fn state(instruction: &Instruction, index: usize) -> Option<State> {
    let spaces = instruction
        .modifiers
        .iter()
        .filter_map(|modifier| match modifier {
            Modifier::Space(space) => Some(*space),
            _ => None,
        });
    spaces.into_iter().nth(index)
}

pub(super) fn address_space(state: Option<State>) -> Space {
    match state {
        Some(State::Shared | State::SharedCta | State::SharedCluster) => Space::Shared,
        Some(State::Global | State::Const) => Space::Global,
        _ => Space::Generic,
    }
}

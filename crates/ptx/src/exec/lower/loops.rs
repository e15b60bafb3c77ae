//! Loops and the conditions that end them, for reports of launches that do not end.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::function::{Lowerer, Slot};
use super::registers::visit_registers;
use crate::exec::check::undefined::RegisterRow;
use crate::exec::machine::loops::{Condition, Loop, NumberFormat, ReadRegister};
use crate::syntax::{Instruction, Opcode, Operand, RegisterId, ScalarClass, ScalarType};

/// The maximum number of conditions of a loop.
const MAX_CONDITIONS: usize = 4;
/// The maximum number of predicates through which a condition depends on a comparison.
const MAX_DEPTH: usize = 3;

/// A function whose instructions are lowered.
struct LoweredFunction<'l> {
    lowerer: &'l Lowerer<'l>,
    body: &'l [Instruction],
}

/// Returns the loops of a function whose instructions are lowered.
pub(super) fn loops(lowerer: &Lowerer<'_>) -> Vec<Loop> {
    let body = lowerer.function.body.as_deref().unwrap_or_default();
    LoweredFunction { lowerer, body }.loops()
}

impl LoweredFunction<'_> {
    fn loops(&self) -> Vec<Loop> {
        // The last backward branch to each target.
        let mut backward = BTreeMap::new();
        for (index, instruction) in self.body.iter().enumerate() {
            if let Some(target) = self.branch_target(instruction)
                && target <= index
            {
                backward.insert(target, index);
            }
        }
        backward
            .into_iter()
            .map(|(first, last)| self.describe_loop(first, last))
            .collect()
    }

    /// Returns the index of the instruction at the target of a direct branch.
    fn branch_target(&self, instruction: &Instruction) -> Option<usize> {
        match (instruction.opcode, &instruction.operands[..]) {
            (Opcode::Bra, [Operand::Label(label)]) => {
                Some(self.lowerer.function.labels[label.0 as usize].instruction as usize)
            }
            _ => None,
        }
    }

    /// Describes the loop from its first instruction to its last backward branch.
    fn describe_loop(&self, first: usize, last: usize) -> Loop {
        let mut conditions = Vec::new();
        let mut has_exit = false;
        for index in first..=last {
            let instruction = &self.body[index];
            let leaves = match instruction.opcode {
                Opcode::Bra => self
                    .branch_target(instruction)
                    .is_some_and(|target| target < first || target > last),
                Opcode::Brx | Opcode::Ret | Opcode::Exit | Opcode::Trap => true,
                _ => false,
            };
            if !leaves && index != last {
                continue;
            }
            // A guarded branch before an unguarded one skips it.
            let guard = match instruction.predicate {
                None if leaves && index > first => self.body[index - 1].predicate,
                guard => guard,
            };
            has_exit |= leaves || guard.is_some();
            if let Some(guard) = guard
                && conditions.len() < MAX_CONDITIONS
            {
                let span = first..=last;
                self.add_conditions(&span, index, guard.register, &mut conditions);
            }
        }
        Loop {
            first: self.lowerer.starts[first],
            last: self.lowerer.starts[last + 1] - 1,
            has_exit,
            conditions: conditions
                .into_iter()
                .map(|index| Condition {
                    op: self.lowerer.starts[index],
                    line: self.body[index].span.line,
                    is_invariant: !(first..=last).contains(&index),
                    registers: self.read_registers(&self.body[index]),
                })
                .collect(),
        }
    }

    /// Adds the instructions that compute a predicate from other registers than predicates.
    fn add_conditions(
        &self,
        span: &RangeInclusive<usize>,
        before: usize,
        predicate: RegisterId,
        conditions: &mut Vec<usize>,
    ) {
        let mut pending = vec![(predicate, before, 0)];
        while let Some((predicate, before, depth)) = pending.pop() {
            let Some(index) = definition(self.body, span, before, predicate) else {
                continue;
            };
            let sources: Vec<RegisterId> = sources(&self.body[index])
                .into_iter()
                .filter(|register| matches!(self.lowerer.slot(*register), Slot::Predicate(_)))
                .collect();
            if !sources.is_empty() && depth < MAX_DEPTH {
                pending.extend(sources.into_iter().map(|source| (source, index, depth + 1)));
            }
            let reads_numbers = !self.read_registers(&self.body[index]).is_empty();
            if reads_numbers && !conditions.contains(&index) && conditions.len() < MAX_CONDITIONS {
                conditions.push(index);
            }
        }
    }

    /// Returns the registers that an instruction reads, without predicates.
    fn read_registers(&self, instruction: &Instruction) -> Vec<ReadRegister> {
        let scalar = instruction.types().next();
        let mut registers: Vec<ReadRegister> = Vec::new();
        for register in sources(instruction) {
            let declared = &self.lowerer.function.registers[register.0 as usize];
            let row = match self.lowerer.slot(register) {
                Slot::Word(row) => RegisterRow::Word(row),
                Slot::Double(row) => RegisterRow::Double(row),
                Slot::Quad(_) | Slot::Predicate(_) => continue,
            };
            let name = self.lowerer.context.module.text(declared.name);
            if declared.vector == 1 && registers.iter().all(|other| &*other.name != name) {
                registers.push(ReadRegister {
                    name: name.into(),
                    row,
                    format: number_format(scalar.unwrap_or(declared.scalar)),
                });
            }
        }
        registers
    }
}

/// Returns the last instruction before another one that writes a register: in the loop if there is
/// one, and otherwise anywhere.
fn definition(
    body: &[Instruction],
    span: &RangeInclusive<usize>,
    before: usize,
    register: RegisterId,
) -> Option<usize> {
    let in_loop = (*span.start()..before).rev().chain(before..=*span.end());
    let outside = (0..*span.start()).rev();
    in_loop
        .chain(outside)
        .find(|index| writes(&body[*index], register))
}

/// Returns `true` if an instruction may write a register.
fn writes(instruction: &Instruction, register: RegisterId) -> bool {
    let mut is_written = false;
    if let Some(destination) = instruction.operands.first()
        && !matches!(instruction.opcode, Opcode::St | Opcode::Bra)
    {
        visit_registers(destination, &mut |other| is_written |= other == register);
    }
    is_written
}

/// Returns the registers of an instruction's operands after the first.
fn sources(instruction: &Instruction) -> Vec<RegisterId> {
    let mut registers = Vec::new();
    for operand in instruction.operands.iter().skip(1) {
        visit_registers(operand, &mut |register| registers.push(register));
    }
    registers
}

fn number_format(scalar: ScalarType) -> NumberFormat {
    match (scalar.class(), scalar.bits()) {
        (ScalarClass::Signed, bits) => NumberFormat::Signed { bits },
        (ScalarClass::Float, 32) => NumberFormat::Single,
        (ScalarClass::Float, 64) => NumberFormat::Double,
        _ => NumberFormat::Unsigned,
    }
}

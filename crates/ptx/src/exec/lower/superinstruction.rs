//! Combination of ops into superinstructions.
//!
//! A superinstruction replaces consecutive ops without guards. Branches may lead to the first only,
//! whose place it takes. The others stay where they are, for lanes that execute them one by one.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::function::Lowerer;
use crate::exec::check::shadow::CheckedRead;
use crate::exec::machine::op::{NO_REGISTER, Op, Operation, PatternSlot, Role};
use crate::exec::machine::superinstruction::{
    AddressRegister, MAX_ADDRESSES, Operand, Step, Superinstruction,
};
use crate::exec::ops::handler::superinstruction::handler;

/// The minimum number of arithmetic instructions of a superinstruction.
const LEAST_ARITHMETIC: usize = 2;

/// The instructions between which registers occupy each row of the 32-bit file, for rows that are
/// shared by registers.
pub(super) type RowSpans = HashMap<u32, Vec<RangeInclusive<usize>>>;

/// The values that consecutive ops compute.
#[derive(Default)]
struct Values {
    addresses: Vec<AddressRegister>,
    values: Vec<Value>,
    /// The last value that was written to a row.
    rows: HashMap<u32, usize>,
    /// The number of loads that are checked for races.
    checked: u32,
    finds_uninitialized: bool,
    /// The number of ops up to the last value.
    ops: usize,
}

/// The result of an op.
struct Value {
    operation: Operation,
    d: u32,
    sources: [Source; 3],
    /// `true` if the value is an element of a vector in memory.
    is_element: bool,
    /// The values that are computed from it.
    uses: Vec<usize>,
    /// `true` if an op after the superinstruction may read it.
    is_live: bool,
}

#[derive(Clone, Copy)]
enum Source {
    Row(u32),
    Memory(u8, i32),
    Value(usize),
}

impl Lowerer<'_> {
    /// Combines ops into superinstructions. `entries` are the instructions to which branches lead.
    pub(super) fn combine(&mut self, entries: &[bool]) {
        let Some(handler) = handler() else { return };
        let starts = self
            .starts
            .iter()
            .zip(entries)
            .filter(|(_, is_entry)| **is_entry);
        let entries: Vec<usize> = starts.map(|(start, _)| *start as usize).collect();
        let mut begin = 0;
        while begin < self.out.code.len() {
            let next_entry = entries.partition_point(|entry| *entry <= begin);
            let end = entries
                .get(next_entry)
                .copied()
                .unwrap_or(self.out.code.len());
            // Checks of a load that is no part of the superinstruction remain with the load.
            let last = Values::new(&self.out.code[begin..end]).ops;
            let mut values = Values::new(&self.out.code[begin..begin + last]);
            let count = values.ops;
            for (row, value) in values.rows.clone() {
                values.values[value].is_live = self.is_live(row, begin + count);
            }
            if values.are_worth_it() {
                let number = self.out.superinstructions.len() as u32;
                let first = &mut self.out.code[begin];
                let (steps, factors) = with_products(&values.steps());
                self.out.superinstructions.push(Superinstruction {
                    first: first.run,
                    ops: count as u32,
                    steps,
                    factors,
                    addresses: values.addresses,
                    checked: values.checked,
                    finds_uninitialized: values.finds_uninitialized,
                });
                (first.run, first.superinstruction) = (handler, number);
            }
            begin += count.max(1);
        }
    }

    /// Returns the index of the instruction that an op belongs to.
    fn instruction_index(&self, op: usize) -> usize {
        self.starts
            .partition_point(|start| *start as usize <= op)
            .saturating_sub(1)
    }

    /// Returns `true` if the op at an index or a later one may read the value that a row has there.
    fn is_live(&self, row: u32, at: usize) -> bool {
        let last = self.instruction_index(at - 1);
        let next = self.instruction_index(at);
        let Some(spans) = self.row_spans.get(&row) else {
            return true;
        };
        spans
            .iter()
            .any(|span| *span.start() <= last && next <= *span.end())
    }
}

impl Values {
    /// Returns the values that the first of some ops compute.
    fn new(ops: &[Op]) -> Self {
        let mut values = Self::default();
        for (number, op) in (1..).zip(ops) {
            if !values.add(op) {
                break;
            }
            if matches!(op.role, Role::Step(_)) {
                values.ops = number;
            }
        }
        values
    }

    /// Adds the next op. Returns `false` if it cannot be part of the superinstruction.
    fn add(&mut self, op: &Op) -> bool {
        if op.guard != 0 {
            return false;
        }
        let operation = match op.role {
            Role::None
            | Role::Branch
            | Role::IndexedBranch
            | Role::End
            | Role::CheckAligned
            | Role::Collective(_) => return false,
            Role::CheckRaces | Role::FindUninitialized => return self.add_check(op),
            Role::Step(operation) => operation,
        };
        let sources = if operation == Operation::Load {
            let Some(memory) = self.memory(op) else {
                return false;
            };
            [memory; 3]
        } else {
            [op.a, op.b, op.c].map(|row| {
                self.rows
                    .get(&row)
                    .map_or(Source::Row(row), |value| Source::Value(*value))
            })
        };
        let number = self.values.len();
        for source in &sources[..operation.sources()] {
            if let Source::Value(value) = source {
                self.values[*value].uses.push(number);
            }
        }
        let is_element = operation == Operation::Load && op.align_mask > 3;
        self.values.push(Value {
            operation,
            d: op.d,
            sources,
            is_element,
            uses: Vec::new(),
            is_live: false,
        });
        self.rows.insert(op.d, number);
        true
    }

    /// Adds a check of the loads that follow.
    fn add_check(&mut self, op: &Op) -> bool {
        let Some(Source::Memory(address, offset)) = self.memory(op) else {
            return false;
        };
        if op.role == Role::CheckRaces {
            self.checked += 1;
            let address = &mut self.addresses[usize::from(address)];
            let is_next = address
                .checked
                .last()
                .is_none_or(|last| last.offset.checked_add(4) == Some(offset));
            address.are_consecutive &= is_next;
            address.checked.push(CheckedRead {
                offset,
                number: self.checked,
                line: op.line,
            });
        } else {
            self.finds_uninitialized = true;
        }
        true
    }

    /// Returns the source of a load. `None` if its address is computed by the superinstruction
    /// itself, or too far from others.
    fn memory(&mut self, op: &Op) -> Option<Source> {
        if op.narrow_address && self.rows.contains_key(&op.a) {
            return None;
        }
        let vector = i32::try_from(op.imm.wrapping_sub(op.e.into()).cast_signed()).ok()?;
        let offset = vector.checked_add_unsigned(op.e)?;
        let position = self.addresses.iter().position(|address| {
            address.op.a == op.a
                && address.op.narrow_address == op.narrow_address
                && address.op.align_mask == op.align_mask
        });
        let index = position.unwrap_or(self.addresses.len());
        if index == MAX_ADDRESSES {
            return None;
        }
        if position.is_none() {
            self.addresses.push(AddressRegister {
                op: *op,
                offsets: [vector; 2],
                checked: Vec::new(),
                are_consecutive: true,
                pattern_slot: None,
            });
        }
        let address = &mut self.addresses[index];
        let [lowest, highest] = address.offsets;
        address.offsets = [lowest.min(vector), highest.max(vector)];
        if let PatternSlot::Fill(slot) = op.pattern {
            address.pattern_slot = Some(slot);
        }
        Some(Source::Memory(index as u8, offset))
    }

    /// Returns `true` if the superinstruction is faster than its ops, because it reads operands of
    /// arithmetic from memory directly.
    fn are_worth_it(&self) -> bool {
        let loads = self
            .values
            .iter()
            .filter(|value| value.operation == Operation::Load && !value.is_step())
            .count();
        let arithmetic = self
            .values
            .iter()
            .filter(|value| value.operation != Operation::Load)
            .count();
        arithmetic >= LEAST_ARITHMETIC && 2 * loads >= arithmetic
    }

    /// Returns the steps, in the order of the ops.
    fn steps(&self) -> Vec<Step> {
        let numbers: Vec<usize> = (0..self.values.len())
            .filter(|number| self.values[*number].is_step())
            .collect();
        let mut steps = Vec::with_capacity(numbers.len());
        for (index, &number) in numbers.iter().enumerate() {
            let value = &self.values[number];
            let previous = index.checked_sub(1).map(|index| numbers[index]);
            let next = numbers.get(index + 1);
            let needs_row = value.is_live || value.uses.iter().any(|user| next != Some(user));
            steps.push(Step::One {
                operation: value.operation,
                d: if needs_row { value.d } else { NO_REGISTER },
                sources: value
                    .sources
                    .map(|source| self.step_operand(source, previous)),
            });
        }
        steps
    }

    /// Returns the operand for a source. `previous` is the value of the previous step.
    fn step_operand(&self, source: Source, previous: Option<usize>) -> Operand {
        match source {
            Source::Row(row) => Operand::Row(row),
            Source::Memory(address, offset) => Operand::Memory(address, offset),
            Source::Value(value) => match &self.values[value] {
                load if !load.is_step() => match load.sources[0] {
                    Source::Memory(address, offset) => Operand::Memory(address, offset),
                    _ => Operand::Row(load.d),
                },
                _ if previous == Some(value) => Operand::Last,
                other => Operand::Row(other.d),
            },
        }
    }
}

impl Value {
    /// Returns `true` if the value is computed by a step. Most loaded values are read where they
    /// are used. Elements of vectors are not next to each other, so those that are used twice are
    /// read first.
    fn is_step(&self) -> bool {
        self.operation != Operation::Load || self.is_live || self.is_element && self.uses.len() > 1
    }
}

/// Combines consecutive multiply-adds into products. Returns the steps and the factors.
fn with_products(steps: &[Step]) -> (Vec<Step>, Vec<[i32; 2]>) {
    let mut combined = Vec::new();
    let mut all_factors = Vec::new();
    for step in steps {
        let Some((d, addend, mut addresses, mut offsets)) = product(step) else {
            combined.push(step.clone());
            continue;
        };
        if let Some(Step::Products {
            d: last_d,
            addresses: last,
            factors,
            ..
        }) = combined.last_mut()
            && *last_d == NO_REGISTER
            && addend == Operand::Last
        {
            if *last != addresses {
                addresses.reverse();
                offsets.reverse();
            }
            if *last == addresses {
                (*last_d, factors.end) = (d, factors.end + 1);
                all_factors.push(offsets);
                continue;
            }
        }
        let begin = all_factors.len();
        all_factors.push(offsets);
        combined.push(Step::Products {
            d,
            addend,
            addresses,
            factors: begin..begin + 1,
        });
    }
    (combined, all_factors)
}

/// Returns the result and the addend of a multiply-add of two values in memory, and their addresses
/// and offsets.
fn product(step: &Step) -> Option<(u32, Operand, [u8; 2], [i32; 2])> {
    match *step {
        Step::One {
            operation: Operation::MultiplyAdd,
            d,
            sources:
                [
                    Operand::Memory(first, offset),
                    Operand::Memory(second, other),
                    addend,
                ],
        } => Some((d, addend, [first, second], [offset, other])),
        _ => None,
    }
}

//! Loads, stores, atomics and address conversions.

use std::ops::Range;

use super::element::Element;
use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use super::module::Place;
use super::race::may_order;
use super::used_bytes::used_byte_ranges;
use super::variables::VariableLocation;
use crate::exec::machine::op::{Handler, Op, PatternSlot};
use crate::exec::machine::program::Late;
use crate::exec::memory::window::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::exec::ops::flow::run_fence;
use crate::exec::ops::handler::moves::{add_doubles, copy};
use crate::exec::ops::stack::run_frame_address;
use crate::exec::space::Space;
use crate::syntax::{
    Address, Base, FunctionKind, Instruction, Keyword, Modifier, Operand, ScalarType, Semantics,
    Space as State, Symbol,
};

/// The row of a parameter's address, which needs no register.
pub(super) const NO_ROW: u32 = u32::MAX;

/// A memory operand, decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) space: Space,
    pub(super) row: u32,
    pub(super) narrow: bool,
    pub(super) offset: u64,
}

impl Target {
    /// Returns `true` if the offset is a multiple of an alignment.
    pub(super) fn is_aligned(self, align: u64) -> bool {
        self.offset & (align - 1) == 0
    }

    /// Returns `true` if the address register is in this slot.
    fn is(self, slot: Slot) -> bool {
        slot == if self.narrow {
            Slot::Word(self.row)
        } else {
            Slot::Double(self.row)
        }
    }
}

impl Lowerer<'_> {
    /// `ld`, `ldu`.
    pub(super) fn load(&mut self, instruction: &Instruction) -> Lowered {
        let [destination, Operand::Address(address), ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let scalar = scalar(instruction)?;
        let target = self.target(instruction, *address)?;
        let (elements, scalar, align) = self.elements(destination, scalar)?;
        let used = instruction
            .used_bytes
            .filter(|_| target.row != NO_ROW)
            .unwrap_or(u32::MAX);
        for (index, Range { start, end }) in used_byte_ranges(used, align).into_iter().enumerate() {
            let target = Target {
                offset: target.offset.wrapping_add(start),
                ..target
            };
            self.check_race(instruction, target, end - start, None);
            self.find_uninitialized(target, start, end - start, index == 0);
        }
        if self.load_whole(instruction, target, &elements, scalar)? {
            self.after_load(instruction, target);
            return Ok(());
        }
        // An element that overwrites the address register is loaded last.
        let (last, first): (Vec<_>, Vec<_>) = elements
            .iter()
            .enumerate()
            .partition(|(_, slot)| target.is(**slot));
        for (index, slot) in first.into_iter().chain(last) {
            let offset = index as u64 * scalar.bytes();
            let whole = u32::MAX >> (32 - scalar.bytes());
            let used = used >> offset & whole;
            if used != whole {
                self.load_bytes(target, offset, used, align, *slot)?;
                continue;
            }
            let element = Element {
                slot: *slot,
                scalar,
            };
            self.load_element(instruction, target, offset, align, element)?;
        }
        self.after_load(instruction, target);
        Ok(())
    }

    fn after_load(&mut self, instruction: &Instruction, target: Target) {
        self.fence_after(instruction);
        if may_order(instruction) {
            self.exchange(target.space);
        }
    }

    /// `st`.
    pub(super) fn store(&mut self, instruction: &Instruction) -> Lowered {
        let [Operand::Address(address), source, ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let scalar = scalar(instruction)?;
        self.fence_before(instruction);
        let target = self.target(instruction, *address)?;
        if may_order(instruction) {
            self.exchange(target.space);
        }
        if target.space == Space::Param {
            return Err(Refusal("kernel parameters cannot be written".into()));
        }
        let (elements, scalar, align) = self.elements(source, scalar)?;
        self.check_race(instruction, target, align, Some((&elements, scalar)));
        self.note_write(target, align);
        if self.store_whole(instruction, target, &elements, scalar)? {
            return Ok(());
        }
        for (index, slot) in elements.into_iter().enumerate() {
            let offset = index as u64 * scalar.bytes();
            self.store_element(instruction, target, offset, align, Element { slot, scalar })?;
        }
        Ok(())
    }

    /// Returns the slots of the elements of an access, the type of each, and the alignment of all.
    pub(super) fn elements(
        &mut self,
        operand: &Operand,
        scalar: ScalarType,
    ) -> Lowered<(Vec<Slot>, ScalarType, u64)> {
        let mut slots = Vec::new();
        let all = match operand {
            Operand::Vector(elements) => elements,
            single => std::slice::from_ref(single),
        };
        for element in all {
            if scalar == ScalarType::B128 {
                slots.extend(self.quad(element)?.map(Slot::Double));
                continue;
            }
            let slot = match element {
                Operand::Sink => self.new_slot(if scalar.bits() == 64 {
                    ScalarType::B64
                } else {
                    ScalarType::B32
                }),
                Operand::Register(register) => {
                    let vector = self.function.registers[register.0 as usize].vector;
                    slots.extend((0..vector - 1).map(|index| self.element(*register, index)));
                    self.element(*register, vector - 1)
                }
                Operand::Element(register, part) => self.element(*register, *part),
                other => {
                    let row = self.source(other, scalar)?;
                    if scalar.bits() == 64 {
                        Slot::Double(row)
                    } else {
                        Slot::Word(row)
                    }
                }
            };
            slots.push(slot);
        }
        let scalar = if scalar == ScalarType::B128 {
            ScalarType::B64
        } else {
            scalar
        };
        let align = scalar.bytes() * slots.len() as u64;
        Ok((slots, scalar, align))
    }

    /// `cvta`.
    pub(super) fn convert_address(&mut self, instruction: &Instruction) -> Lowered {
        let [destination, source] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let scalar = scalar(instruction)?;
        let window = match state(instruction) {
            Some(State::Shared | State::SharedCta | State::SharedCluster) => SHARED_WINDOW,
            Some(State::Local) => LOCAL_WINDOW,
            Some(State::Param | State::ParamEntry) => PARAM_WINDOW,
            _ => 0,
        };
        let to = instruction.has_keyword(Keyword::To);
        let window = if to { window.wrapping_neg() } else { window };
        let a = self.source(source, scalar)?;
        let d = self.destination(destination, scalar)?;
        if scalar.bits() != 64 {
            self.emit(copy::<u32>(), d, [a, 0, 0]);
        } else if window == 0 {
            self.emit(copy::<u64>(), d, [a, 0, 0]);
        } else {
            let b = self.double(window);
            self.emit(add_doubles(), d, [a, b, 0]);
        }
        Ok(())
    }

    /// `createpolicy`. Policies affect no result, so all have the same value.
    pub(super) fn create_policy(&mut self, instruction: &Instruction) -> Lowered {
        let Some(destination) = instruction.operands.first() else {
            return Err(Refusal::form(instruction));
        };
        let a = self.double(0);
        let d = self.destination(destination, ScalarType::B64)?;
        self.emit(copy::<u64>(), d, [a, 0, 0]);
        Ok(())
    }

    /// `membar`, `fence`.
    pub(super) fn fence(&mut self) {
        self.push(Op::new(run_fence));
    }

    /// Returns a row with the address of a variable of the frame, in the thread's local memory.
    pub(super) fn frame_address(&mut self, offset: u64) -> u32 {
        let d = self.new_double();
        self.emit(run_frame_address, d, [0; 3]).imm = offset;
        d
    }

    /// Decodes a memory operand.
    pub(super) fn target(
        &mut self,
        instruction: &Instruction,
        address: Address,
    ) -> Lowered<Target> {
        let offset = address.offset as u64;
        let space = match state(instruction) {
            None => Space::Generic,
            Some(State::Global | State::Const) => Space::Global,
            Some(State::Shared | State::SharedCta | State::SharedCluster) => Space::Shared,
            Some(State::Local) => Space::Local,
            Some(State::Param | State::ParamEntry) if self.function.kind == FunctionKind::Entry => {
                Space::Param
            }
            Some(_) => Space::Local,
        };
        match address.base {
            Base::Register(register) => {
                let (row, double) = row(self.slot(register))?;
                Ok(Target {
                    space,
                    row,
                    narrow: !double,
                    offset,
                })
            }
            Base::Absolute => {
                let row = self.double(0);
                Ok(Target {
                    space,
                    row,
                    narrow: false,
                    offset,
                })
            }
            Base::Symbol(symbol) => self.symbol_target(symbol, offset),
        }
    }

    /// Returns the target of a variable. A variable's state space is more precise than the
    /// instruction's.
    fn symbol_target(&mut self, symbol: Symbol, offset: u64) -> Lowered<Target> {
        let home = match symbol {
            Symbol::Local(id) => self.home(id),
            Symbol::Global(id) => match self.context.variable_place(id)? {
                Place::Shared(base) => VariableLocation::Shared(base),
                Place::DynamicShared => VariableLocation::DynamicShared,
                Place::Device(index) => {
                    let row = self.late(Late::Global(index, 0));
                    return Ok(Target {
                        space: Space::Global,
                        row,
                        narrow: false,
                        offset,
                    });
                }
            },
            Symbol::Function(_) => return Err(Refusal::operand("a memory address")),
        };
        let (space, row, offset) = match home {
            VariableLocation::Frame(base) => (Space::Frame, 0, base.wrapping_add(offset)),
            VariableLocation::Param(base) => (Space::Param, NO_ROW, base.wrapping_add(offset)),
            VariableLocation::Shared(base) => (Space::Shared, self.double(base), offset),
            VariableLocation::DynamicShared => {
                (Space::Shared, self.late(Late::DynamicShared(0)), offset)
            }
        };
        Ok(Target {
            space,
            row,
            narrow: false,
            offset,
        })
    }

    /// Appends an access to an element of a memory operand.
    pub(super) fn access(
        &mut self,
        run: Handler,
        target: Target,
        element: u64,
        align: u64,
    ) -> &mut Op {
        let pattern = self.pattern_slots.reuse(target, align);
        self.push(Op {
            imm: target.offset.wrapping_add(element),
            a: target.row,
            e: element as u32,
            space: target.space,
            narrow_address: target.narrow,
            align_mask: (align - 1) as u8,
            pattern,
            ..Op::new(run)
        })
    }

    /// Appends a check of the next access that computes the pattern of its address register, and
    /// caches it if no other access did.
    pub(super) fn checking_access(&mut self, run: Handler, target: Target, bytes: u64) -> &mut Op {
        let pattern = if bytes.is_power_of_two() {
            self.pattern_slot(target, bytes)
        } else {
            PatternSlot::None
        };
        let op = self.access(run, target, 0, bytes);
        op.pattern = pattern;
        op
    }

    /// Returns the slot of the pattern of the address register of a load or a store, which fills it
    /// if no earlier access did.
    pub(super) fn pattern_slot(&mut self, target: Target, align: u64) -> PatternSlot {
        match self.pattern_slots.reuse(target, align) {
            PatternSlot::None if !self.is_guarded() => self.pattern_slots.fill(target, align),
            slot => slot,
        }
    }

    pub(super) fn fence_after(&mut self, instruction: &Instruction) {
        if [Semantics::Acquire, Semantics::AcquireRelease]
            .into_iter()
            .any(|semantics| instruction.has(Modifier::Semantics(semantics)))
        {
            self.fence();
        }
    }

    pub(super) fn fence_before(&mut self, instruction: &Instruction) {
        if [Semantics::Release, Semantics::AcquireRelease]
            .into_iter()
            .any(|semantics| instruction.has(Modifier::Semantics(semantics)))
        {
            self.fence();
        }
    }
}

pub(super) fn row(slot: Slot) -> Lowered<(u32, bool)> {
    match slot {
        Slot::Word(row) => Ok((row, false)),
        Slot::Double(row) => Ok((row, true)),
        Slot::Quad(_) => Err(Refusal::operand("a register of at most 64 bits")),
        Slot::Predicate(_) => Err(Refusal::operand("a register that is not a predicate")),
    }
}

/// Returns the state space that an instruction names.
pub(super) fn state(instruction: &Instruction) -> Option<State> {
    instruction
        .modifiers
        .iter()
        .find_map(|modifier| match modifier {
            Modifier::Space(space) => Some(*space),
            _ => None,
        })
}

/// Returns the first type of an instruction.
pub(super) fn scalar(instruction: &Instruction) -> Lowered<ScalarType> {
    instruction
        .types()
        .next()
        .ok_or_else(|| Refusal::form(instruction))
}

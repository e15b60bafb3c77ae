//! A function being lowered: its registers, constants and code so far.

use std::collections::HashMap;

use super::error::{LowerError, Lowered, Refusal};
use super::loops::loops;
use super::module::Context;
use super::pattern_slots::PatternSlots;
use super::registers::entries;
use super::superinstruction::RowSpans;
use super::variables::VariableLocation;
use crate::exec::machine::op::{Handler, Op};
use crate::exec::machine::program::{self, Late, Patch};
use crate::exec::ops::handler::moves::{lower_word, sign_extend, zero_extend};
use crate::syntax::{
    Function, Instruction, LabelId, LocalId, Operand, RegisterId, ScalarClass, ScalarType,
};

/// The location of a PTX register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A row of the 32-bit file.
    Word(u32),
    /// A row of the 64-bit file.
    Double(u32),
    /// Two rows of the 64-bit file, the lower half first.
    Quad(u32),
    /// A predicate.
    Predicate(u32),
}

/// A branch whose target is not resolved yet.
pub(super) enum Fixup {
    /// The instruction at this index jumps to a label.
    Branch(usize, LabelId),
}

/// The state of lowering one function.
pub(super) struct Lowerer<'m> {
    pub(super) context: &'m Context<'m>,
    pub(super) function: &'m Function,
    pub(super) out: program::Function,
    slots: Vec<Slot>,
    pub(super) homes: HashMap<LocalId, VariableLocation>,
    words: HashMap<u32, u32>,
    doubles: HashMap<u64, u32>,
    late: HashMap<Late, u32>,
    pub(super) local_size: u64,
    /// The number of bytes of a kernel's parameters.
    pub(super) parameter_size: u64,
    /// The local memory of register parameters and results.
    pub(super) register_homes: HashMap<RegisterId, u64>,
    guard: (u32, u32),
    line: u32,
    /// The predicate of the carry flag, if an instruction has used it.
    carry: Option<u32>,
    /// Ops that follow the instruction: conversions of results to registers of another width.
    pending: Vec<Op>,
    pub(super) fixups: Vec<Fixup>,
    /// The index of the instruction's first op after the search for uninitialized bytes, if there
    /// is one.
    pub(super) moved_at: Option<usize>,
    /// The index in the code of each instruction of the source.
    pub(super) starts: Vec<u32>,
    /// The slots of cached access patterns.
    pub(super) pattern_slots: PatternSlots,
    /// The instructions during which each shared row is occupied.
    pub(super) row_spans: RowSpans,
}

impl<'m> Lowerer<'m> {
    /// Creates a lowerer with no code.
    pub(super) fn new(context: &'m Context<'m>, function: &'m Function) -> Self {
        let mut lowerer = Self {
            context,
            function,
            out: program::Function {
                name: context.module.text(function.name).to_owned(),
                ..program::Function::default()
            },
            slots: Vec::new(),
            homes: HashMap::new(),
            words: HashMap::new(),
            doubles: HashMap::new(),
            late: HashMap::new(),
            local_size: 0,
            parameter_size: 0,
            register_homes: HashMap::new(),
            guard: (0, 0),
            line: 0,
            carry: None,
            pending: Vec::new(),
            fixups: Vec::new(),
            moved_at: None,
            starts: Vec::new(),
            pattern_slots: PatternSlots::default(),
            row_spans: RowSpans::default(),
        };
        // Predicate 0 is always true.
        lowerer.out.layout.predicates = 1;
        lowerer.slots = lowerer.place_registers();
        lowerer
    }

    /// Lowers the function's body.
    pub(super) fn lower(mut self) -> Result<program::Function, LowerError> {
        let function = self.function;
        let context = self.context;
        self.load_register_parameters()
            .map_err(|refusal| LowerError::new(function.span, refusal))?;
        let body = function.body.as_deref().unwrap_or_default();
        let entries = entries(function, body);
        for (instruction, is_entry) in body.iter().zip(&entries) {
            self.pattern_slots.enter(*is_entry);
            self.starts.push(self.out.code.len() as u32);
            self.line = instruction.span.line;
            self.guard = self
                .guard_rows(instruction)
                .map_err(|refusal| LowerError::new(function.span, refusal))?;
            self.moved_at = None;
            self.instruction(instruction)
                .map_err(|refusal| LowerError::new(instruction.span, refusal))?;
            if context.checking.uninitialized {
                self.add_flows(instruction);
            }
            let pending = std::mem::take(&mut self.pending);
            self.out.code.extend(pending);
            self.discard_result_patterns(instruction);
        }
        self.starts.push(self.out.code.len() as u32);
        self.guard = (0, 0);
        self.end_function();
        self.drop_unused_patterns();
        self.combine(&entries);
        self.resolve_branches();
        self.out.loops = loops(&self);
        self.out.local_size = self.local_size();
        Ok(self.out)
    }

    /// Returns the index of the first op of the instruction that was lowered last.
    pub(super) fn starts_at(&self) -> usize {
        self.starts.last().map_or(0, |start| *start as usize)
    }

    /// Returns `true` if the instruction has a guard.
    pub(super) fn is_guarded(&self) -> bool {
        self.guard != (0, 0)
    }

    /// Returns the row of an instruction's guard, and a mask that is set if the guard is negated.
    fn guard_rows(&self, instruction: &Instruction) -> Lowered<(u32, u32)> {
        let Some(guard) = instruction.predicate else {
            return Ok((0, 0));
        };
        let negate = if guard.negated { u32::MAX } else { 0 };
        Ok((self.predicate_register(guard.register)?, negate))
    }

    /// Appends an instruction under the current guard.
    pub(super) fn push(&mut self, op: Op) -> &mut Op {
        let (guard, negate) = self.guard;
        self.out.code.push(Op {
            guard,
            negate,
            line: self.line,
            ..op
        });
        let last = self.out.code.len() - 1;
        &mut self.out.code[last]
    }

    /// Appends an instruction with up to three sources.
    pub(super) fn emit(&mut self, run: Handler, d: u32, sources: [u32; 3]) -> &mut Op {
        let [a, b, c] = sources;
        self.push(Op {
            d,
            a,
            b,
            c,
            ..Op::new(run)
        })
    }

    /// Returns the location of a register.
    pub(super) fn slot(&self, register: RegisterId) -> Slot {
        self.slots[register.0 as usize]
    }

    /// Returns the location of an element of a vector register.
    pub(super) fn element(&self, register: RegisterId, index: u8) -> Slot {
        match self.slot(register) {
            Slot::Word(row) => Slot::Word(row + u32::from(index)),
            Slot::Double(row) => Slot::Double(row + u32::from(index)),
            Slot::Quad(row) => Slot::Quad(row + 2 * u32::from(index)),
            Slot::Predicate(number) => Slot::Predicate(number + u32::from(index)),
        }
    }

    /// Returns the number of a predicate register.
    pub(super) fn predicate_register(&self, register: RegisterId) -> Lowered<u32> {
        match self.slot(register) {
            Slot::Predicate(number) => Ok(number),
            _ => Err(Refusal::operand("a predicate")),
        }
    }

    /// Allocates a slot for a type.
    pub(super) fn new_slot(&mut self, scalar: ScalarType) -> Slot {
        match scalar.bits() {
            1 => {
                self.out.layout.predicates += 1;
                Slot::Predicate(self.out.layout.predicates as u32 - 1)
            }
            128 => {
                let row = self.new_double();
                self.new_double();
                Slot::Quad(row)
            }
            64.. => Slot::Double(self.new_double()),
            _ => Slot::Word(self.new_word()),
        }
    }

    /// Allocates a predicate.
    pub(super) fn new_predicate(&mut self) -> u32 {
        self.out.layout.predicates += 1;
        self.out.layout.predicates as u32 - 1
    }

    /// Returns the predicate of the carry flag.
    pub(super) fn carry(&mut self) -> u32 {
        let carry = self.carry.unwrap_or_else(|| self.new_predicate());
        *self.carry.insert(carry)
    }

    /// Allocates a row of the 32-bit file.
    pub(super) fn new_word(&mut self) -> u32 {
        self.out.layout.words.push(0);
        self.out.layout.words.len() as u32 - 1
    }

    /// Allocates a row of the 64-bit file.
    pub(super) fn new_double(&mut self) -> u32 {
        self.out.layout.doubles.push(0);
        self.out.layout.doubles.len() as u32 - 1
    }

    /// Stores the rows of an instruction with more operands than an `Op` holds, and returns the
    /// index of the list.
    pub(super) fn row_list(&mut self, rows: Vec<u32>) -> u32 {
        self.out.row_lists.push(rows);
        self.out.row_lists.len() as u32 - 1
    }

    /// Returns a row that holds a 32-bit constant.
    pub(super) fn word(&mut self, value: u32) -> u32 {
        if let Some(&row) = self.words.get(&value) {
            return row;
        }
        self.out.layout.words.push(value);
        let row = self.out.layout.words.len() as u32 - 1;
        self.words.insert(value, row);
        row
    }

    /// Returns a row that holds a 64-bit constant.
    pub(super) fn double(&mut self, value: u64) -> u32 {
        if let Some(&row) = self.doubles.get(&value) {
            return row;
        }
        self.out.layout.doubles.push(value);
        let row = self.out.layout.doubles.len() as u32 - 1;
        self.doubles.insert(value, row);
        row
    }

    /// Returns a 64-bit row that the launch sets.
    pub(super) fn late(&mut self, value: Late) -> u32 {
        if let Some(&row) = self.late.get(&value) {
            return row;
        }
        let row = self.new_double();
        self.out.patches.push(Patch { row, value });
        self.late.insert(value, row);
        row
    }

    /// Returns the row that holds a source operand of a type, in the file of the type's width.
    pub(super) fn source(&mut self, operand: &Operand, scalar: ScalarType) -> Lowered<u32> {
        let double = scalar.bits() == 64;
        let bits = match operand {
            Operand::Register(register) => return self.source_slot(self.slot(*register), double),
            Operand::Element(register, index) => {
                return self.source_slot(self.element(*register, *index), double);
            }
            Operand::Special(register) => {
                let slot = self.special(*register);
                return self.source_slot(slot, double);
            }
            Operand::Symbol(symbol, offset) => {
                let row = self.symbol_address(*symbol, *offset)?;
                return self.source_slot(Slot::Double(row), double);
            }
            Operand::Integer(integer) => integer.bits,
            Operand::Single(bits) if double => f64::from(f32::from_bits(*bits)).to_bits(),
            Operand::Single(bits) => u64::from(*bits),
            Operand::Double(bits) if !double && scalar.class() == ScalarClass::Float => {
                u64::from((f64::from_bits(*bits) as f32).to_bits())
            }
            Operand::Double(bits) => *bits,
            _ => return Err(Refusal::operand("a register or an immediate")),
        };
        Ok(if double {
            self.double(bits)
        } else {
            self.word(bits as u32)
        })
    }

    /// Returns the row of a slot in the file of a width, after a conversion if the slot is in the
    /// other file.
    pub(super) fn source_slot(&mut self, slot: Slot, double: bool) -> Lowered<u32> {
        match (slot, double) {
            (Slot::Word(row), false) | (Slot::Double(row), true) => Ok(row),
            (Slot::Word(row), true) => {
                let wide = self.new_double();
                self.emit(zero_extend(), wide, [row, 0, 0]);
                Ok(wide)
            }
            (Slot::Double(row), false) => {
                let narrow = self.new_word();
                self.emit(lower_word(), narrow, [row, 0, 0]);
                Ok(narrow)
            }
            (Slot::Quad(_), _) => Err(Refusal::operand("a register of at most 64 bits")),
            (Slot::Predicate(_), _) => Err(Refusal::operand("a register that is not a predicate")),
        }
    }

    /// Returns the two 64-bit rows of a register of 128 bits, or of a vector of two registers.
    pub(super) fn quad(&mut self, operand: &Operand) -> Lowered<[u32; 2]> {
        let slot = match operand {
            Operand::Register(register) => self.slot(*register),
            Operand::Element(register, index) => self.element(*register, *index),
            Operand::Sink => self.new_slot(ScalarType::B128),
            Operand::Vector(halves) if halves.len() == 2 => {
                return Ok([
                    self.source(&halves[0], ScalarType::B64)?,
                    self.source(&halves[1], ScalarType::B64)?,
                ]);
            }
            _ => return Err(Refusal::operand("a register of 128 bits")),
        };
        match slot {
            Slot::Quad(row) => Ok([row, row + 1]),
            _ => Err(Refusal::operand("a register of 128 bits")),
        }
    }

    /// Returns the row for a result of a type, in the file of the type's width.
    pub(super) fn destination(&mut self, operand: &Operand, scalar: ScalarType) -> Lowered<u32> {
        let slot = match operand {
            Operand::Register(register) => self.slot(*register),
            Operand::Element(register, index) => self.element(*register, *index),
            Operand::Sink => self.new_slot(scalar),
            _ => return Err(Refusal::operand("a destination register")),
        };
        self.destination_slot(slot, scalar)
    }

    /// Returns the row for a result that is moved to a slot.
    pub(super) fn destination_slot(&mut self, slot: Slot, scalar: ScalarType) -> Lowered<u32> {
        match (slot, scalar.bits() == 64) {
            (Slot::Word(row), false) | (Slot::Double(row), true) => Ok(row),
            (Slot::Double(row), false) => {
                let narrow = self.new_word();
                let is_signed = scalar.class() == ScalarClass::Signed;
                let widen = if is_signed {
                    sign_extend()
                } else {
                    zero_extend()
                };
                self.after(widen, row, narrow);
                Ok(narrow)
            }
            (Slot::Word(row), true) => {
                let wide = self.new_double();
                self.after(lower_word(), row, wide);
                Ok(wide)
            }
            (Slot::Quad(_), _) => Err(Refusal::operand("a register of at most 64 bits")),
            (Slot::Predicate(_), _) => Err(Refusal::operand("a register that is not a predicate")),
        }
    }

    /// Appends a move after the instruction.
    fn after(&mut self, run: Handler, d: u32, a: u32) {
        let (guard, negate) = self.guard;
        let line = self.line;
        self.pending.push(Op {
            d,
            a,
            guard,
            negate,
            line,
            ..Op::new(run)
        });
    }

    /// Returns the number of a predicate source, with a mask that negates it.
    pub(super) fn predicate_source(&mut self, operand: &Operand) -> Lowered<(u32, u32)> {
        match operand {
            Operand::Register(register) => Ok((self.predicate_register(*register)?, 0)),
            Operand::Not(register) => Ok((self.predicate_register(*register)?, u32::MAX)),
            // Predicate 0 is true, so an immediate is predicate 0 or its negation.
            Operand::Integer(integer) => Ok((0, if integer.bits == 0 { u32::MAX } else { 0 })),
            _ => Err(Refusal::operand("a predicate")),
        }
    }

    /// Returns the number of a predicate destination.
    pub(super) fn predicate_destination(&mut self, register: Option<RegisterId>) -> Lowered<u32> {
        match register {
            Some(register) => self.predicate_register(register),
            None => match self.new_slot(ScalarType::Pred) {
                Slot::Predicate(number) => Ok(number),
                _ => Err(Refusal::operand("a predicate")),
            },
        }
    }
}

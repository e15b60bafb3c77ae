//! `set` and `isspacep`, `lop3` with a predicate, and comparisons of packed 16-bit floats.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::{Handler, NO_REGISTER};
use crate::exec::memory::window::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::exec::ops::handler::moves::{lower_half, pack_halves, upper_half, words_differ};
use crate::exec::ops::handler::{quaternary, select};
use crate::exec::ops::moves::run_predicate_copy;
use crate::exec::ops::set::{run_constants, run_space};
use crate::exec::values::integer::table_logic;
use crate::syntax::{
    Compare, Instruction, Modifier, Operand, RegisterId, ScalarType, Space as State,
};

/// Returns the handler of a comparison for a relation and a type, which flushes subnormals if the
/// last argument is `true`.
pub(super) type ComparisonHandler = fn(Compare, ScalarType, bool) -> Option<Handler>;

impl Lowerer<'_> {
    /// `set`: a comparison whose result is a number.
    pub(super) fn set(&mut self, instruction: &Instruction, handler: ComparisonHandler) -> Lowered {
        let types: Vec<ScalarType> = instruction.types().collect();
        let ([to, from], [destination, a, b, rest @ ..]) = (&types[..], &instruction.operands[..])
        else {
            return Err(Refusal::form(instruction));
        };
        let truth = truth(*to).ok_or_else(|| Refusal::scalar(instruction, *to))?;
        if is_packed(*from) {
            let [low, high] = [self.new_predicate(), self.new_predicate()];
            self.compare_halves(
                instruction,
                handler,
                [low, high],
                *from,
                [a, b],
                rest.first(),
            )?;
            let halves = [self.new_word(), self.new_word()];
            for (row, predicate) in halves.into_iter().zip([low, high]) {
                self.choose(row, predicate, truth);
            }
            let d = self.destination(destination, *to)?;
            self.emit(pack_halves(), d, [halves[0], halves[1], 0]);
            return Ok(());
        }
        let predicate = self.new_predicate();
        let comparison = comparison(instruction)?;
        let flushes = instruction.has(Modifier::FlushToZero);
        let run = handler(comparison, *from, flushes).ok_or_else(|| Refusal::form(instruction))?;
        let a = self.source(a, *from)?;
        let b = self.source(b, *from)?;
        let (c, imm) = self.combined(instruction, rest.first())?;
        let op = self.emit(run, predicate, [a, b, c]);
        (op.e, op.imm) = (NO_REGISTER, imm);
        let d = self.destination(destination, *to)?;
        self.choose(d, predicate, truth);
        Ok(())
    }

    /// Appends the selection between the value of a true comparison and zero.
    fn choose(&mut self, d: u32, predicate: u32, truth: u32) {
        let yes = self.word(truth);
        let no = self.word(0);
        self.emit(select::<u32>(), d, [yes, no, predicate]).e = 0;
    }

    /// `setp` of packed 16-bit floats: a predicate for each half.
    pub(super) fn set_half_predicates(
        &mut self,
        instruction: &Instruction,
        handler: ComparisonHandler,
        registers: [Option<RegisterId>; 2],
        scalar: ScalarType,
        operands: [&Operand; 2],
        combined: Option<&Operand>,
    ) -> Lowered {
        let [first, second] = registers;
        let predicates = [
            self.predicate_destination(first)?,
            self.predicate_destination(second)?,
        ];
        self.compare_halves(instruction, handler, predicates, scalar, operands, combined)
    }

    fn compare_halves(
        &mut self,
        instruction: &Instruction,
        handler: ComparisonHandler,
        predicates: [u32; 2],
        scalar: ScalarType,
        operands: [&Operand; 2],
        combined: Option<&Operand>,
    ) -> Lowered {
        let comparison = comparison(instruction)?;
        let half = if scalar == ScalarType::F16x2 {
            ScalarType::F16
        } else {
            ScalarType::Bf16
        };
        let flushes = instruction.has(Modifier::FlushToZero);
        let run = handler(comparison, half, flushes).ok_or_else(|| Refusal::form(instruction))?;
        let [a, b] = [
            self.source(operands[0], scalar)?,
            self.source(operands[1], scalar)?,
        ];
        let a = self.halves(a);
        let b = self.halves(b);
        let (mut c, imm) = self.combined(instruction, combined)?;
        if imm != 0 && predicates[0] == c {
            // The upper half must not be combined with the lower half's result.
            c = self.new_predicate();
            self.emit(run_predicate_copy, c, [predicates[0], 0, 0]).e = 0;
        }
        for index in 0..2 {
            let op = self.emit(run, predicates[index], [a[index], b[index], c]);
            (op.e, op.imm) = (NO_REGISTER, imm);
        }
        Ok(())
    }

    /// Returns two new rows with the lower and the upper half of a row.
    pub(super) fn halves(&mut self, row: u32) -> [u32; 2] {
        let rows = [self.new_word(), self.new_word()];
        self.emit(lower_half(), rows[0], [row, 0, 0]);
        self.emit(upper_half(), rows[1], [row, 0, 0]);
        rows
    }

    /// `lop3` that also tests its result for nonzero bits.
    pub(super) fn test_table_logic(&mut self, instruction: &Instruction) -> Lowered {
        let [Operand::Pair(destination, tested), sources @ .., other] = &instruction.operands[..]
        else {
            return Err(Refusal::form(instruction));
        };
        let [a, b, c, table] = sources else {
            return Err(Refusal::form(instruction));
        };
        let word = ScalarType::B32;
        let rows = [
            self.source(a, word)?,
            self.source(b, word)?,
            self.source(c, word)?,
        ];
        let table = self.source(table, word)?;
        let d = match destination {
            Some(register) => self.destination(&Operand::Register(*register), word)?,
            None => self.new_word(),
        };
        self.emit(quaternary(table_logic), d, rows).e = table;
        let predicate = self.predicate_destination(*tested)?;
        let (c, imm) = self.combined(instruction, Some(other))?;
        let zero = self.word(0);
        let op = self.emit(words_differ(), predicate, [d, zero, c]);
        (op.e, op.imm) = (NO_REGISTER, imm);
        Ok(())
    }

    /// `isspacep`: tests if a generic address is in a state space.
    pub(super) fn is_in_space(&mut self, instruction: &Instruction) -> Lowered {
        let [Operand::Register(destination), source] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let state = instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Space(space) => Some(*space),
                _ => None,
            });
        let window = match state {
            Some(State::Global | State::Const) => 0,
            Some(State::Shared | State::SharedCta) => SHARED_WINDOW,
            Some(State::SharedCluster) => SHARED_WINDOW | 1,
            Some(State::Local) => LOCAL_WINDOW,
            Some(State::Param | State::ParamEntry) => PARAM_WINDOW,
            _ => return Err(Refusal::form(instruction)),
        };
        let d = self.predicate_register(*destination)?;
        let a = self.source(source, ScalarType::U64)?;
        let run = if state == Some(State::Const) {
            run_constants
        } else {
            run_space
        };
        self.emit(run, d, [a, 0, 0]).imm = window;
        Ok(())
    }
}

/// Returns the value of `set` for a true comparison.
fn truth(scalar: ScalarType) -> Option<u32> {
    Some(match scalar {
        ScalarType::U32 | ScalarType::S32 | ScalarType::B32 => u32::MAX,
        ScalarType::U16 | ScalarType::S16 => 0xffff,
        ScalarType::F32 => 0x3f80_0000,
        ScalarType::F16 | ScalarType::F16x2 => 0x3c00,
        ScalarType::Bf16 | ScalarType::Bf16x2 => 0x3f80,
        _ => return None,
    })
}

/// Returns `true` if values of a type are two 16-bit floating-point numbers.
pub(super) fn is_packed(scalar: ScalarType) -> bool {
    matches!(scalar, ScalarType::F16x2 | ScalarType::Bf16x2)
}

/// Returns the comparison that an instruction names.
pub(super) fn comparison(instruction: &Instruction) -> Lowered<Compare> {
    let comparison = instruction
        .modifiers
        .iter()
        .find_map(|modifier| match modifier {
            Modifier::Compare(compare) => Some(*compare),
            _ => None,
        });
    comparison.ok_or_else(|| Refusal::form(instruction))
}

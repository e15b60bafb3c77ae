//! Instructions that have a definition.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::{Handler, NO_REGISTER, Role};
use crate::exec::ops::handler::moves::widen_half;
use crate::exec::values::convert::{Conversion, Target};
use crate::exec::values::exact::{BF16, F16, F32, F64, Rounding};
use crate::exec::values::float::Mode;
use crate::exec::values::lane::Lane as _;
use crate::isa::{OperandKind, Run};
use crate::syntax::{
    Instruction, Keyword, Modifier, Operand, ParsedForm, Rounding as Written, ScalarClass,
    ScalarType,
};

impl Lowerer<'_> {
    /// Lowers an instruction by the form of its definition.
    pub(super) fn by_form(&mut self, instruction: &Instruction) -> Lowered {
        let parsed = instruction.form.ok_or_else(|| Refusal::form(instruction))?;
        match parsed.form.run {
            Run::Handler(handler) => self.computation(instruction, parsed, handler()),
            Run::Typed(handler) => {
                let handler = instruction.types().next().and_then(handler);
                let handler = handler.ok_or_else(|| Refusal::form(instruction))?;
                self.computation(instruction, parsed, handler)
            }
            Run::Converting(handler) => {
                let types = instruction.form_types();
                let handler = types.and_then(|types| handler(types.first, types.second?));
                let handler = handler.ok_or_else(|| Refusal::form(instruction))?;
                self.computation(instruction, parsed, handler)
            }
            Run::Quad(handlers) => self.convert_four(instruction, handlers()),
            Run::Comparison(handler) if parsed.operands[0] == OperandKind::First => {
                self.set(instruction, handler)
            }
            Run::Comparison(handler) => self.set_predicate(instruction, handler),
            Run::Extended(extended) => self.extended(instruction, extended),
            Run::Test(handler) => self.test(instruction, handler()),
            Run::Predicates(logic) => self.predicate_logic(instruction, logic),
            Run::TestedTable => self.test_table_logic(instruction),
        }
    }

    /// Lowers an instruction whose handler has the operands of the form.
    fn computation(
        &mut self,
        instruction: &Instruction,
        parsed: &ParsedForm,
        run: Handler,
    ) -> Lowered {
        let (Some(types), Some((result, sources)), Some((result_kind, kinds))) = (
            instruction.form_types(),
            instruction.operands.split_first(),
            parsed.operands.split_first(),
        ) else {
            return Err(Refusal::form(instruction));
        };
        let mut rows = Vec::with_capacity(4);
        for (source, kind) in sources.iter().zip(kinds) {
            let scalar = kind.scalar(types.first, types.second);
            match kind {
                OperandKind::Narrow => rows.push(self.widened(instruction, source, scalar)?),
                OperandKind::Predicate => {
                    rows.extend(<[u32; 2]>::from(self.predicate_source(source)?));
                }
                _ => rows.push(self.source(source, scalar)?),
            }
        }
        let form = parsed.form;
        if form.has_mode() {
            let mode = mode(instruction).ok_or_else(|| Refusal::form(instruction))?;
            rows.push(self.word(mode.bits()));
        }
        if form.has_conversion() {
            let conversion = conversion(instruction).ok_or_else(|| Refusal::form(instruction))?;
            rows.push(self.word(conversion.into_raw()));
        }
        rows.resize(4, 0);
        let d = self.destination(result, result_kind.scalar(types.first, types.second))?;
        let op = self.emit(run, d, [rows[0], rows[1], rows[2]]);
        op.e = rows[3];
        if let Some(step) = form.step {
            op.role = Role::Step(step);
        }
        Ok(())
    }

    /// Returns a row with the value of a narrower source, converted to f32.
    fn widened(
        &mut self,
        instruction: &Instruction,
        source: &Operand,
        narrow: ScalarType,
    ) -> Lowered<u32> {
        let a = self.source(source, narrow)?;
        let row = self.new_word();
        let run = widen_half(narrow).ok_or_else(|| Refusal::scalar(instruction, narrow))?;
        self.emit(run, row, [a, 0, 0]);
        Ok(row)
    }

    /// Lowers a conversion of four f32 with the first handler for the first two, and the second for
    /// the last two.
    fn convert_four(&mut self, instruction: &Instruction, handlers: [Handler; 2]) -> Lowered {
        let [destination, Operand::Vector(elements), random] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let mut rows = Vec::with_capacity(4);
        for element in elements {
            rows.push(self.source(element, ScalarType::F32)?);
        }
        let [a, b, c, d] = rows[..] else {
            return Err(Refusal::form(instruction));
        };
        let random = self.source(random, ScalarType::B32)?;
        let above = self.new_word();
        self.emit(handlers[0], above, [a, b, random]);
        let result = self.destination(destination, ScalarType::B32)?;
        self.emit(handlers[1], result, [c, d, random]).e = above;
        Ok(())
    }

    /// Lowers a test of one value, whose handler compares it with itself.
    fn test(&mut self, instruction: &Instruction, run: Handler) -> Lowered {
        let ([Operand::Register(destination), source], Some(scalar)) =
            (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let a = self.source(source, scalar)?;
        let d = self.predicate_register(*destination)?;
        self.emit(run, d, [a, a, 0]).e = NO_REGISTER;
        Ok(())
    }
}

/// Returns the rounding, flushing and saturation of an instruction.
fn mode(instruction: &Instruction) -> Option<Mode> {
    let rounding = match instruction.rounding() {
        None | Some(Written::NearestEven) => Rounding::Nearest,
        Some(Written::Zero) => Rounding::Zero,
        Some(Written::Down) => Rounding::Down,
        Some(Written::Up) => Rounding::Up,
        Some(_) => return None,
    };
    let flush = instruction.has(Modifier::FlushToZero);
    let saturate = instruction.has(Modifier::Saturate);
    let mut mode = Mode::new(rounding, flush, saturate);
    if instruction.has_keyword(Keyword::Relu) {
        mode = mode.rectified();
    }
    if instruction.has_keyword(Keyword::Oob) {
        mode = mode.with_zeroed_out_of_bounds();
    }
    Some(mode)
}

/// Returns the target, rounding and saturation of a conversion.
fn conversion(instruction: &Instruction) -> Option<Conversion> {
    let types = instruction.form_types()?;
    let written = instruction.rounding();
    let (rounding, is_integral) = match written {
        // A conversion without a rounding is exact, or between integers.
        None | Some(Written::Zero) => (Rounding::Zero, false),
        Some(Written::NearestEven) => (Rounding::Nearest, false),
        Some(Written::Down) => (Rounding::Down, false),
        Some(Written::Up) => (Rounding::Up, false),
        Some(Written::IntegerZero) => (Rounding::Zero, true),
        Some(Written::IntegerNearestEven) => (Rounding::Nearest, true),
        Some(Written::IntegerDown) => (Rounding::Down, true),
        Some(Written::IntegerUp) => (Rounding::Up, true),
        Some(_) => return None,
    };
    let target = match types.first {
        ScalarType::F16 | ScalarType::F16x2 => Target::Real(F16),
        ScalarType::Bf16 | ScalarType::Bf16x2 => Target::Real(BF16),
        ScalarType::F32 => Target::Real(F32),
        ScalarType::F64 => Target::Real(F64),
        integer => Target::Integer {
            bits: integer.bits(),
            signed: integer.class() == ScalarClass::Signed,
        },
    };
    Some(Conversion {
        target,
        rounding,
        integral: is_integral && types.first.class() == ScalarClass::Float,
        saturate: instruction.has(Modifier::Saturate),
        rectify: instruction.has_keyword(Keyword::Relu),
        flush: instruction.has(Modifier::FlushToZero),
        finite: instruction.has(Modifier::SaturateFinite),
    })
}

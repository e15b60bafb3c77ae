//! Allocation of rows to registers.
//!
//! Compilers write most registers once and read them soon afterward. With a row for each register,
//! an activation would exceed the processor's caches. A register shares a row if all its uses are
//! between two labels and it is written there before it is read. It then occupies the row only from
//! its first to its last use. The code between two labels is entered from above only, so no value
//! must survive outside. Each lane writes only its own values, so the positions of other lanes are
//! irrelevant.

use std::ops::RangeInclusive;

use super::function::{Lowerer, Slot};
use crate::syntax::{
    Base, Callee, Function, Instruction, Opcode, Operand, Parameter, Register, RegisterId,
};

/// The instructions between which a register occupies its row.
type Span = RangeInclusive<usize>;

impl Lowerer<'_> {
    /// Allocates a slot for every register. Registers that may be read before they are written come
    /// first.
    pub(super) fn place_registers(&mut self) -> Vec<Slot> {
        let function = self.function;
        let spans = spans(function);
        let registers = function.registers.iter().zip(&spans);
        let mut slots: Vec<Slot> = registers
            .map(|(register, span)| self.place_register(register, span))
            .collect();
        self.out.layout.reset_rows = [self.out.layout.words.len(), self.out.layout.doubles.len()];
        let mut shared: Vec<(&Span, usize)> = spans
            .iter()
            .enumerate()
            .filter_map(|(register, span)| Some((span.as_ref()?, register)))
            .collect();
        shared.sort_unstable_by_key(|(span, _)| *span.start());
        let mut rows: [Vec<(usize, Slot)>; 2] = [Vec::new(), Vec::new()];
        for (span, register) in shared {
            let scalar = function.registers[register].scalar;
            let rows = &mut rows[usize::from(scalar.bits() == 64)];
            let slot = match rows.iter().position(|(end, _)| end < span.start()) {
                Some(free) => rows.swap_remove(free).1,
                None => self.new_slot(scalar),
            };
            rows.push((*span.end(), slot));
            if let Slot::Word(row) = slot {
                self.row_spans.entry(row).or_default().push(span.clone());
            }
            slots[register] = slot;
        }
        slots
    }

    /// Returns the slot of a register with its own row, or any slot for one that shares a row.
    fn place_register(&mut self, register: &Register, span: &Option<Span>) -> Slot {
        if span.is_some() {
            return Slot::Word(0);
        }
        let slot = self.new_slot(register.scalar);
        for _ in 1..register.vector {
            self.new_slot(register.scalar);
        }
        slot
    }
}

/// Returns the span of each register that can share a row.
fn spans(function: &Function) -> Vec<Option<Span>> {
    let body = function.body.as_deref().unwrap_or_default();
    let entries = entries(function, body);
    let mut spans: Vec<Option<Span>> = vec![None; function.registers.len()];
    let mut is_kept: Vec<bool> = function
        .registers
        .iter()
        .map(|register| register.vector > 1 || !has_row(register))
        .collect();
    for parameter in function.parameters.iter().chain(&function.returns) {
        if let Parameter::Register(register) = parameter {
            is_kept[register.0 as usize] = true;
        }
    }
    let mut start = 0;
    for (at, instruction) in body.iter().enumerate() {
        if entries[at] {
            start = at;
        }
        let mut written = Vec::new();
        written_first(instruction, &mut written);
        each_register(instruction, &mut |register| {
            let index = register.0 as usize;
            match &mut spans[index] {
                Some(span) if *span.start() >= start => *span = *span.start()..=at,
                span @ None if written.contains(&register) => *span = Some(at..=at),
                _ => is_kept[index] = true,
            }
        });
    }
    spans
        .into_iter()
        .zip(is_kept)
        .map(|(span, is_kept)| span.filter(|_| !is_kept))
        .collect()
}

fn has_row(register: &Register) -> bool {
    matches!(register.scalar.bits(), 2..=64)
}

/// For each instruction, returns `true` if a branch may lead to it.
pub(super) fn entries(function: &Function, body: &[Instruction]) -> Vec<bool> {
    let mut entries = vec![false; body.len() + 1];
    let direct = body
        .iter()
        .flat_map(|instruction| &instruction.operands)
        .filter_map(|operand| match operand {
            Operand::Label(label) => Some(label),
            _ => None,
        });
    let listed = function.branch_targets.iter().flat_map(|list| &list.labels);
    for label in direct.chain(listed) {
        entries[function.labels[label.0 as usize].instruction as usize] = true;
    }
    entries
}

/// Adds the registers that an instruction overwrites in every lane that executes it.
fn written_first(instruction: &Instruction, written: &mut Vec<RegisterId>) {
    if instruction.predicate.is_some() || !writes_its_first_operand(instruction.opcode) {
        return;
    }
    let Some((destination, sources)) = instruction.operands.split_first() else {
        return;
    };
    let parts = match destination {
        Operand::Vector(parts) => parts,
        single => std::slice::from_ref(single),
    };
    written.extend(parts.iter().filter_map(|part| match part {
        Operand::Register(register) => Some(*register),
        _ => None,
    }));
    for source in sources {
        visit_registers(source, &mut |register| {
            written.retain(|other| *other != register);
        });
    }
}

/// Returns `true` if an operation's first operand is a result that overwrites a register
/// completely. Rare operations are left out: a register with its own row is always correct.
fn writes_its_first_operand(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(opcode, O::Mov | O::Ld | O::Ldu | O::Cvta | O::Defined(_))
}

/// Visits all registers that an instruction may write.
pub(super) fn each_result(instruction: &Instruction, visit: &mut impl FnMut(RegisterId)) {
    match instruction.opcode {
        Opcode::St => {}
        opcode if writes_its_first_operand(opcode) => {
            if let Some(operand) = instruction.operands.first() {
                visit_registers(operand, visit);
            }
        }
        _ => each_register(instruction, visit),
    }
}

/// Visits every register of an instruction except its guard.
fn each_register(instruction: &Instruction, visit: &mut impl FnMut(RegisterId)) {
    for operand in &instruction.operands {
        visit_registers(operand, visit);
    }
}

fn visit_base(base: Base, visit: &mut impl FnMut(RegisterId)) {
    if let Base::Register(register) = base {
        visit(register);
    }
}

/// Visits every register of an operand.
pub(super) fn visit_registers(operand: &Operand, visit: &mut impl FnMut(RegisterId)) {
    match operand {
        Operand::Register(register)
        | Operand::Element(register, _)
        | Operand::Select(register, _)
        | Operand::Not(register) => visit(*register),
        Operand::Pair(first, second) => {
            for register in first.iter().chain(second) {
                visit(*register);
            }
        }
        Operand::Address(address) => visit_base(address.base, visit),
        Operand::Tensor(tensor) => {
            visit_base(tensor.handle.base, visit);
            if let Some(sampler) = tensor.sampler {
                visit_base(sampler.base, visit);
            }
            for coordinate in &tensor.coordinates {
                visit_registers(coordinate, visit);
            }
        }
        Operand::Vector(parts) => {
            for part in parts {
                visit_registers(part, visit);
            }
        }
        Operand::VectorPair(parts, predicate) => {
            visit(*predicate);
            for part in parts {
                visit_registers(part, visit);
            }
        }
        Operand::Call(call) => {
            if let Callee::Indirect(register, _) = call.callee {
                visit(register);
            }
            call.returns
                .iter()
                .chain(&call.arguments)
                .for_each(|operand| visit_registers(operand, visit));
        }
        Operand::Integer(_)
        | Operand::Single(_)
        | Operand::Double(_)
        | Operand::Special(_)
        | Operand::Label(_)
        | Operand::BranchTargets(_)
        | Operand::Symbol(..)
        | Operand::Sink => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax;

    /// Returns the spans of the registers `%r0`, `%r1` … of a kernel whose body begins with a move
    /// to each.
    fn body_spans(body: &str) -> Vec<Option<Span>> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry main(.param .u64 p)\n{{\n
             .reg .pred %p;\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\n{body}\nret;\n}}"
        );
        let module = syntax::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let function = &module.functions[0];
        let spans = spans(function);
        (0..8)
            .map_while(|number| {
                let name = format!("%r{number}");
                let registers = function.registers.iter();
                registers
                    .zip(&spans)
                    .find(|(register, _)| module.text(register.name) == name)
            })
            .map(|(_, span)| span.clone())
            .collect()
    }

    #[test]
    fn span_is_from_first_to_last_use() {
        let spans = body_spans(
            "mov.u32 %r0, 1; add.u32 %r1, %r0, 2; add.u32 %r2, %r0, %r1; mul.lo.u32 %r2, %r2, 3;",
        );
        assert_eq!(spans, [Some(0..=2), Some(1..=2), Some(2..=3)]);
    }

    #[test]
    fn register_read_before_written_keeps_its_row() {
        for body in [
            "add.u32 %r0, %r0, 1;",
            "setp.eq.u32 %p, 1, 2; @%p mov.u32 %r0, 1; mov.u32 %r0, 2;",
            "mov.u32 %r0, 1; L: add.u32 %r0, %r0, 1; bra L;",
            "bra M; L: mov.u32 %r0, 1; bra N; M: bra L; N: add.u32 %r0, %r0, 1;",
            "atom.global.add.u32 %r0, [0], 1;",
        ] {
            assert_eq!(body_spans(body), [None], "{body}");
        }
    }

    #[test]
    fn branches_out_do_not_end_a_span() {
        let spans = body_spans(
            "mov.u32 %r0, 1; setp.eq.u32 %p, %r0, 2; @%p bra END; L: add.u32 %r1, %r0, 1; END:",
        );
        assert_eq!(spans, [Some(0..=3), Some(3..=3)]);
    }
}

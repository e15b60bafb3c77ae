//! `atom` and `red`.

use super::address::{Target, scalar};
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::check::watch::AccessKind;
use crate::exec::ops::access::atomic_handler::atomic_handler;
use crate::exec::ops::atomic::run_wide_atomic;
use crate::syntax::{Instruction, Modifier, Operand, Operation, ScalarType, Semantics};

impl Lowerer<'_> {
    /// `atom` and `red`.
    pub(super) fn atomic(&mut self, instruction: &Instruction, returns: bool) -> Lowered {
        let skip = usize::from(returns);
        let Some(Operand::Address(address)) = instruction.operands.get(skip) else {
            return Err(Refusal::form(instruction));
        };
        let scalar = scalar(instruction)?;
        let operation = instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Operation(operation) => Some(*operation),
                _ => None,
            });
        let operation = operation.ok_or_else(|| Refusal::form(instruction))?;
        let target = self.target(instruction, *address)?;
        let mut sources = instruction.operands[skip + 1..].iter();
        let b = sources.next().ok_or_else(|| Refusal::form(instruction))?;
        let c = if operation == Operation::CompareAndSwap {
            sources.next().unwrap_or(b)
        } else {
            b
        };
        let sink = Operand::Sink;
        let destination = if returns {
            &instruction.operands[0]
        } else {
            &sink
        };
        self.fence_before(instruction);
        if instruction.has(Modifier::Semantics(Semantics::Release))
            || instruction.has(Modifier::Semantics(Semantics::AcquireRelease))
        {
            self.exchange(target.space);
        }
        let elements = if let Operand::Vector(sources) = b {
            sources.len() as u64
        } else {
            1
        };
        let bytes = elements * scalar.bytes();
        self.note_access(target, bytes, AccessKind::Atomic);
        if operation == Operation::Exchange {
            self.note_write(target, bytes);
        } else {
            self.check_written(target, bytes);
        }
        if scalar == ScalarType::B128 {
            self.wide_atomic(operation, target, destination, [b, c])?;
        } else if let Operand::Vector(sources) = b {
            self.vector_atomic(instruction, operation, target, destination, sources)?;
        } else {
            let run = atomic_handler(operation, scalar, target.space)
                .ok_or_else(|| Refusal::form(instruction))?;
            let b = self.source(b, scalar)?;
            let c = self.source(c, scalar)?;
            let d = self.destination(destination, scalar)?;
            let op = self.access(run, target, 0, scalar.bytes());
            (op.d, op.b, op.c) = (d, b, c);
        }
        self.fence_after(instruction);
        if instruction.has(Modifier::Semantics(Semantics::Acquire))
            || instruction.has(Modifier::Semantics(Semantics::AcquireRelease))
        {
            self.exchange(target.space);
        }
        Ok(())
    }

    /// Lowers an operation on 128 bits.
    fn wide_atomic(
        &mut self,
        operation: Operation,
        target: Target,
        destination: &Operand,
        [b, c]: [&Operand; 2],
    ) -> Lowered {
        let rows = [self.quad(b)?, self.quad(c)?, self.quad(destination)?];
        let run = match operation {
            Operation::CompareAndSwap => run_wide_atomic::<true>,
            _ => run_wide_atomic::<false>,
        };
        let list = self.row_list(rows.concat());
        self.access(run, target, 0, 16).b = list;
        Ok(())
    }

    /// Lowers an operation on each element of a vector. Each element is atomic by itself.
    fn vector_atomic(
        &mut self,
        instruction: &Instruction,
        operation: Operation,
        target: Target,
        destination: &Operand,
        sources: &[Operand],
    ) -> Lowered {
        let scalar = scalar(instruction)?;
        let run = atomic_handler(operation, scalar, target.space)
            .ok_or_else(|| Refusal::form(instruction))?;
        let align = scalar.bytes() * sources.len() as u64;
        for (index, source) in sources.iter().enumerate() {
            let b = self.source(source, scalar)?;
            let d = match destination {
                Operand::Vector(elements) if index < elements.len() => {
                    self.destination(&elements[index], scalar)?
                }
                Operand::Sink => self.destination(&Operand::Sink, scalar)?,
                _ => return Err(Refusal::form(instruction)),
            };
            let op = self.access(run, target, index as u64 * scalar.bytes(), align);
            (op.d, op.b, op.c) = (d, b, b);
        }
        Ok(())
    }
}

//! `atom` and `red`.

use super::address::{Target, scalar};
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::access::atomic;
use crate::exec::atomic::{change, flushed_sum, run_generic_sum, run_wide_atomic, sum};
use crate::exec::float::{self, Mode, Real, inherit};
use crate::exec::narrow::{Bfloat, Half};
use crate::exec::op::{Handler, Space};
use crate::exec::watch::AccessKind;
use crate::ptx::{Instruction, Modifier, Operand, Operation, ScalarClass, ScalarType, Semantics};

impl Lowerer<'_> {
    /// `atom` and `red`.
    pub(super) fn atomic(&mut self, instruction: &Instruction, returns: bool) -> Lowered {
        let skip = usize::from(returns);
        let Some(Operand::Address(address)) = instruction.operands.get(skip) else {
            return Err(Refusal::form(instruction));
        };
        let scalar = scalar(instruction)?;
        let operation = instruction.modifiers.iter().find_map(|modifier| match modifier {
            Modifier::Operation(operation) => Some(*operation),
            _ => None,
        });
        let operation = operation.ok_or_else(|| Refusal::form(instruction))?;
        let target = self.target(instruction, *address)?;
        let operand = |index: usize| instruction.operands.get(skip + index);
        let b = operand(1).ok_or_else(|| Refusal::form(instruction))?;
        let c = if operation == Operation::CompareAndSwap { operand(2).unwrap_or(b) } else { b };
        let sink = Operand::Sink;
        let destination = if returns { &instruction.operands[0] } else { &sink };
        self.fence_before(instruction);
        let orders = |semantics: &[Semantics]| semantics.iter().any(|it| instruction.has(Modifier::Semantics(*it)));
        if orders(&[Semantics::Release, Semantics::AcquireRelease]) {
            self.exchange(target.space);
        }
        let elements = if let Operand::Vector(sources) = b { sources.len() as u64 } else { 1 };
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
            let run = atomic_handler(operation, scalar, target.space).ok_or_else(|| Refusal::form(instruction))?;
            let (b, c) = (self.source(b, scalar)?, self.source(c, scalar)?);
            let d = self.destination(destination, scalar)?;
            let op = self.access(run, target, 0, scalar.bytes());
            (op.d, op.b, op.c) = (d, b, c);
        }
        self.fence_after(instruction);
        if orders(&[Semantics::Acquire, Semantics::AcquireRelease]) {
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
        let run = atomic_handler(operation, scalar, target.space).ok_or_else(|| Refusal::form(instruction))?;
        let align = scalar.bytes() * sources.len() as u64;
        for (index, source) in sources.iter().enumerate() {
            let b = self.source(source, scalar)?;
            let d = match destination {
                Operand::Vector(elements) if index < elements.len() => self.destination(&elements[index], scalar)?,
                Operand::Sink => self.destination(&Operand::Sink, scalar)?,
                _ => return Err(Refusal::form(instruction)),
            };
            let op = self.access(run, target, index as u64 * scalar.bytes(), align);
            (op.d, op.b, op.c) = (d, b, b);
        }
        Ok(())
    }
}

fn atomic_handler(operation: Operation, scalar: ScalarType, space: Space) -> Option<Handler> {
    macro_rules! bits {
        ($word:ty, $raw:ty) => {
            match operation {
                Operation::And => atomic::<$word, $raw, _>(|old, b, _| old & b),
                Operation::Or => atomic::<$word, $raw, _>(|old, b, _| old | b),
                Operation::Xor => atomic::<$word, $raw, _>(|old, b, _| old ^ b),
                Operation::Exchange => atomic::<$word, $raw, _>(|_, b, _| b),
                Operation::CompareAndSwap => atomic::<$word, $raw, _>(|old, b, c| if old == b { c } else { old }),
                Operation::Add => atomic::<$word, $raw, _>(|old, b, _| old.wrapping_add(b)),
                _ => return integer_atomic(operation, scalar),
            }
        };
    }
    Some(match (scalar, operation) {
        (ScalarType::F32, Operation::Add) => float_add(space),
        (ScalarType::F64, Operation::Add) => atomic::<u64, u64, _>(|old, b, _| {
            let (x, y) = (f64::from_bits(old), f64::from_bits(b));
            inherit(x + y, [x, y]).to_bits()
        }),
        (ScalarType::F16, _) => narrow_atomic::<Half>(operation)?,
        (ScalarType::Bf16, _) => narrow_atomic::<Bfloat>(operation)?,
        (ScalarType::F16x2, _) => pair_atomic::<Half>(operation)?,
        (ScalarType::Bf16x2, _) => pair_atomic::<Bfloat>(operation)?,
        _ if scalar.class() == ScalarClass::Float => return None,
        _ => match scalar.bits() {
            16 => bits!(u16, u32),
            32 => bits!(u32, u32),
            64 => bits!(u64, u64),
            _ => return None,
        },
    })
}

/// Returns the handler of an operation that depends on the sign, or wraps at a bound.
fn integer_atomic(operation: Operation, scalar: ScalarType) -> Option<Handler> {
    Some(match (operation, scalar) {
        (Operation::Min, ScalarType::U32) => atomic::<u32, u32, _>(|old, b, _| old.min(b)),
        (Operation::Max, ScalarType::U32) => atomic::<u32, u32, _>(|old, b, _| old.max(b)),
        (Operation::Min, ScalarType::U64) => atomic::<u64, u64, _>(|old, b, _| old.min(b)),
        (Operation::Max, ScalarType::U64) => atomic::<u64, u64, _>(|old, b, _| old.max(b)),
        (Operation::Min, ScalarType::S32) => {
            atomic::<u32, u32, _>(|old, b, _| old.cast_signed().min(b.cast_signed()).cast_unsigned())
        }
        (Operation::Max, ScalarType::S32) => {
            atomic::<u32, u32, _>(|old, b, _| old.cast_signed().max(b.cast_signed()).cast_unsigned())
        }
        (Operation::Min, ScalarType::S64) => {
            atomic::<u64, u64, _>(|old, b, _| old.cast_signed().min(b.cast_signed()).cast_unsigned())
        }
        (Operation::Max, ScalarType::S64) => {
            atomic::<u64, u64, _>(|old, b, _| old.cast_signed().max(b.cast_signed()).cast_unsigned())
        }
        (Operation::Increment, ScalarType::U32) => {
            atomic::<u32, u32, _>(|old, b, _| if old >= b { 0 } else { old + 1 })
        }
        (Operation::Decrement, ScalarType::U32) => {
            atomic::<u32, u32, _>(|old, b, _| if old == 0 || old > b { b } else { old - 1 })
        }
        _ => return None,
    })
}

/// Returns the handler of an addition. It flushes subnormals in device memory, but not in shared memory.
fn float_add(space: Space) -> Handler {
    match space {
        Space::Global => atomic::<u32, u32, _>(|old, b, _| flushed_sum(old, b)),
        Space::Generic => run_generic_sum,
        _ => atomic::<u32, u32, _>(|old, b, _| sum(old, b)),
    }
}

/// Returns the handler of an addition or extreme of one 16-bit number, with subnormals.
fn narrow_atomic<T: Real<Raw = u32>>(operation: Operation) -> Option<Handler> {
    Some(match operation {
        Operation::Add => {
            atomic::<u16, u32, _>(|old, b, _| change::<T>(old, b, |a, b| float::add(a, b, Mode::NEAREST)))
        }
        Operation::Min => atomic::<u16, u32, _>(|old, b, _| change::<T>(old, b, float::min)),
        Operation::Max => atomic::<u16, u32, _>(|old, b, _| change::<T>(old, b, float::max)),
        _ => return None,
    })
}

/// Returns the handler of an addition or extreme of two 16-bit numbers.
fn pair_atomic<T: Real<Raw = u32>>(operation: Operation) -> Option<Handler> {
    Some(match operation {
        Operation::Add => {
            atomic::<u32, u32, _>(|old, b, _| change_pair::<T>(old, b, |a, b| float::add(a, b, Mode::NEAREST)))
        }
        Operation::Min => atomic::<u32, u32, _>(|old, b, _| change_pair::<T>(old, b, float::min)),
        Operation::Max => atomic::<u32, u32, _>(|old, b, _| change_pair::<T>(old, b, float::max)),
        _ => return None,
    })
}

fn change_pair<T: Real>(old: u32, b: u32, f: impl Fn(T, T) -> T + Copy) -> u32 {
    let high = change((old >> 16) as u16, (b >> 16) as u16, f);
    u32::from(high) << 16 | u32::from(change(old as u16, b as u16, f))
}

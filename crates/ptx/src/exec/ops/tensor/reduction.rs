//! Reductions of bulk copies: element by element, each atomic by itself.

use super::element::Element;
use crate::exec::check::report::Trap;
use crate::exec::machine::unit::Unit;
use crate::exec::operands::bulk::Change;
use crate::exec::ops::access::{read_at, update_at};
use crate::exec::space::Space;
use crate::exec::values::float::{self, Mode, Real, canonical, flush, inherit};
use crate::exec::values::narrow::{Bfloat, Half};
use crate::syntax::{Operation, ScalarType};

/// Returns the operation on elements of a type, if the reduction exists.
pub(crate) fn change(operation: Operation, scalar: ScalarType) -> Option<Change> {
    use ScalarType as S;
    Some(match (operation, scalar) {
        (Operation::And, S::B32 | S::B64) => |old, new| old & new,
        (Operation::Or, S::B32 | S::B64) => |old, new| old | new,
        (Operation::Xor, S::B32 | S::B64) => |old, new| old ^ new,
        // Sums are truncated to the width.
        (Operation::Add, S::U32 | S::S32 | S::U64) => u64::wrapping_add,
        (Operation::Increment, S::U32) => |old, new| if old >= new { 0 } else { old + 1 },
        (Operation::Decrement, S::U32) => {
            |old, new| if old == 0 || old > new { new } else { old - 1 }
        }
        (Operation::Min, S::U32 | S::U64) => u64::min,
        (Operation::Max, S::U32 | S::U64) => u64::max,
        (Operation::Min, S::S32) => {
            |old, new| u64::from((old as i32).min(new as i32).cast_unsigned())
        }
        (Operation::Max, S::S32) => {
            |old, new| u64::from((old as i32).max(new as i32).cast_unsigned())
        }
        (Operation::Min, S::S64) => {
            |old, new| old.cast_signed().min(new.cast_signed()).cast_unsigned()
        }
        (Operation::Max, S::S64) => {
            |old, new| old.cast_signed().max(new.cast_signed()).cast_unsigned()
        }
        (_, S::F16) => narrow::<Half>(operation)?,
        (_, S::Bf16) => narrow::<Bfloat>(operation)?,
        (Operation::Add, S::F32) => |old, new| sum(old, new, |value| value),
        (Operation::Add, S::F64) => |old, new| {
            let [old, new] = [old, new].map(f64::from_bits);
            inherit(old + new, [old, new]).to_bits()
        },
        _ => return None,
    })
}

/// Returns the operation on elements of a tensor, if the reduction exists.
pub(super) fn tensor_change(operation: Operation, element: Element) -> Option<Change> {
    use Operation as O;
    let is_bitwise = matches!(operation, O::And | O::Or | O::Xor);
    let scalar = match element {
        Element::U32 | Element::S32 if is_bitwise => ScalarType::B32,
        Element::U64 if is_bitwise => ScalarType::B64,
        Element::U32 => ScalarType::U32,
        Element::S32 => ScalarType::S32,
        Element::U64 => ScalarType::U64,
        Element::S64 => ScalarType::S64,
        Element::F16 => ScalarType::F16,
        Element::Bf16 => ScalarType::Bf16,
        Element::F32 | Element::Tf32 => ScalarType::F32,
        Element::F64 => ScalarType::F64,
        Element::FlushedF32 | Element::FlushedTf32 if operation == O::Add => {
            return Some(|old, new| sum(old, new, flush));
        }
        _ => return None,
    };
    change(operation, scalar)
}

/// An element in memory that a lane accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    pub(crate) space: Space,
    pub(crate) lane: usize,
    pub(crate) address: u64,
    /// The size of the element: 1, 2, 4 or 8.
    pub(crate) bytes: u64,
}

/// Combines the element in memory with a new one.
pub(crate) fn update(
    unit: &mut Unit<'_>,
    location: Location,
    change: Change,
    new: u64,
) -> Result<(), Trap> {
    let Location {
        space,
        lane,
        address,
        bytes,
    } = location;
    match bytes {
        2 => {
            update_at::<u16>(unit, space, lane, address, |old| {
                change(old.into(), new) as u16
            })?;
        }
        4 => {
            update_at::<u32>(unit, space, lane, address, |old| {
                change(old.into(), new) as u32
            })?;
        }
        _ => {
            update_at::<u64>(unit, space, lane, address, |old| change(old, new))?;
        }
    }
    Ok(())
}

/// Reads 1, 2, 4 or 8 bytes at an address.
pub(crate) fn read_bytes(
    unit: &mut Unit<'_>,
    space: Space,
    lane: usize,
    address: u64,
    bytes: u64,
) -> Result<u64, Trap> {
    Ok(match bytes {
        1 => read_at::<u8>(unit, space, lane, address)?.into(),
        2 => read_at::<u16>(unit, space, lane, address)?.into(),
        4 => read_at::<u32>(unit, space, lane, address)?.into(),
        _ => read_at(unit, space, lane, address)?,
    })
}

fn sum(old: u64, new: u64, before: fn(f32) -> f32) -> u64 {
    let [old, new] = [old, new].map(|bits| before(f32::from_bits(bits as u32)));
    before(canonical(old + new)).to_bits().into()
}

fn narrow<T: Real>(operation: Operation) -> Option<Change> {
    Some(match operation {
        Operation::Add => |old, new| {
            float::add(T::from_low_bits(old), T::from_low_bits(new), Mode::NEAREST).bits()
        },
        Operation::Min => {
            |old, new| float::min(T::from_low_bits(old), T::from_low_bits(new)).bits()
        }
        Operation::Max => {
            |old, new| float::max(T::from_low_bits(old), T::from_low_bits(new)).bits()
        }
        _ => return None,
    })
}

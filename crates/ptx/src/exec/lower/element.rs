//! Loads and stores of the elements of a vector.

use super::address::{NO_ROW, Target, row};
use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use crate::exec::machine::op::{Handler, Operation, PatternSlot, Role};
use crate::exec::ops::access::{load, load_again, load_param, store, store_again};
use crate::exec::space::Space;
use crate::syntax::{Instruction, ScalarClass, ScalarType};

/// An element that a load or store moves, in a register of its own.
#[derive(Clone, Copy)]
pub(super) struct Element {
    pub(super) slot: Slot,
    pub(super) scalar: ScalarType,
}

impl Lowerer<'_> {
    /// Appends the load of an element at this offset of a vector with this alignment.
    pub(super) fn load_element(
        &mut self,
        instruction: &Instruction,
        target: Target,
        offset: u64,
        align: u64,
        element: Element,
    ) -> Lowered {
        let Element { slot, scalar } = element;
        let (d, double) = row(slot)?;
        let uniform = target.row == NO_ROW;
        let pattern = self.pattern_slot(target, align);
        let is_resolved = self.pattern_slots.mark_resolved(pattern) && target.is_aligned(align);
        let manner = match is_resolved {
            _ if uniform => Manner::Uniform,
            true => Manner::Again,
            false => Manner::Anywhere,
        };
        let run = load_handler(scalar, double, manner)
            .ok_or_else(|| Refusal::scalar(instruction, scalar))?;
        let op = self.access(run, target, offset, align);
        op.d = d;
        op.pattern = pattern;
        let has_pattern = pattern != PatternSlot::None && target.is_aligned(align);
        if scalar.bits() == 32 && !double && target.space == Space::Shared && has_pattern {
            op.role = Role::Step(Operation::Load);
        }
        Ok(())
    }

    /// Appends the store of an element at this offset of a vector with this alignment.
    pub(super) fn store_element(
        &mut self,
        instruction: &Instruction,
        target: Target,
        offset: u64,
        align: u64,
        element: Element,
    ) -> Lowered {
        let Element { slot, scalar } = element;
        let (b, double) = row(slot)?;
        let pattern = self.pattern_slot(target, align);
        let is_resolved = self.pattern_slots.mark_resolved(pattern) && target.is_aligned(align);
        let run = store_handler(scalar, double, is_resolved)
            .ok_or_else(|| Refusal::scalar(instruction, scalar))?;
        let op = self.access(run, target, offset, align);
        op.b = b;
        op.pattern = pattern;
        Ok(())
    }
}

/// The way in which a load computes its addresses.
#[derive(Clone, Copy)]
enum Manner {
    /// From a kernel's parameters, the same in every lane.
    Uniform,
    /// From a cached pattern.
    Again,
    Anywhere,
}

fn load_handler(scalar: ScalarType, double: bool, manner: Manner) -> Option<Handler> {
    macro_rules! pick {
        ($ty:ty) => {
            match (double, manner) {
                (false, Manner::Anywhere) => load::<$ty, u32>(),
                (true, Manner::Anywhere) => load::<$ty, u64>(),
                (false, Manner::Again) => load_again::<$ty, u32>(),
                (true, Manner::Again) => load_again::<$ty, u64>(),
                (false, Manner::Uniform) => load_param::<$ty, u32>(),
                (true, Manner::Uniform) => load_param::<$ty, u64>(),
            }
        };
    }
    let signed = scalar.class() == ScalarClass::Signed;
    Some(match (scalar.bits(), signed) {
        (8, false) => pick!(u8),
        (8, true) => pick!(i8),
        (16, false) => pick!(u16),
        (16, true) => pick!(i16),
        (32, false) => pick!(u32),
        (32, true) => pick!(i32),
        (64, _) => pick!(u64),
        _ => return None,
    })
}

fn store_handler(scalar: ScalarType, double: bool, again: bool) -> Option<Handler> {
    macro_rules! pick {
        ($ty:ty) => {
            match (double, again) {
                (false, false) => store::<$ty, u32>(),
                (true, false) => store::<$ty, u64>(),
                (false, true) => store_again::<$ty, u32>(),
                (true, true) => store_again::<$ty, u64>(),
            }
        };
    }
    Some(match scalar.bits() {
        8 => pick!(u8),
        16 => pick!(u16),
        32 => pick!(u32),
        64 => pick!(u64),
        _ => return None,
    })
}

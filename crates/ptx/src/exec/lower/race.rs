//! Checks of accesses for races.

use super::address::{Target, row};
use super::function::{Lowerer, Slot};
use crate::exec::check::watch::AccessKind;
use crate::exec::machine::op::{Handler, Op, Role};
use crate::exec::ops::launch_race;
use crate::exec::ops::launch_race::MAX_ELEMENTS;
use crate::exec::ops::race::{Reads, Writes, check, run_join, run_order};
use crate::exec::ops::record::{run_exchange, run_record};
use crate::exec::space::Space;
use crate::syntax::{Instruction, Modifier, ScalarType, Semantics};

impl Lowerer<'_> {
    /// Appends checks of the next access, a load or a store of elements, unless the access may
    /// order others.
    pub(super) fn check_race(
        &mut self,
        instruction: &Instruction,
        target: Target,
        bytes: u64,
        stored: Option<(&[Slot], ScalarType)>,
    ) {
        if may_order(instruction) {
            if matches!(target.space, Space::Shared | Space::Generic) {
                self.order();
            }
            return;
        }
        if self.context.checking.races && matches!(target.space, Space::Shared | Space::Generic) {
            let run = if stored.is_none() {
                check::<Reads>()
            } else {
                check::<Writes>()
            };
            let op = self.checking_access(run, target, bytes);
            if stored.is_none() && target.space == Space::Shared {
                op.role = Role::CheckRaces;
            }
        }
        self.note_access(
            target,
            bytes,
            if stored.is_none() {
                AccessKind::Read
            } else {
                AccessKind::Write
            },
        );
        if self.context.checking.races {
            self.record_access(target, bytes, stored);
        }
    }

    /// Appends a record of the next access, with the values of a store.
    fn record_access(&mut self, target: Target, bytes: u64, stored: Option<(&[Slot], ScalarType)>) {
        let Some((elements, scalar)) = stored else {
            if matches!(target.space, Space::Global | Space::Generic) {
                self.access(launch_race::run_load, target, 0, bytes);
            }
            return;
        };
        if !matches!(target.space, Space::Global | Space::Generic | Space::Shared) {
            return;
        }
        for (part, elements) in (0..).zip(elements.chunks(MAX_ELEMENTS)) {
            let rows: Vec<(u32, bool)> =
                elements.iter().filter_map(|slot| row(*slot).ok()).collect();
            let Some(run) = rows
                .first()
                .and_then(|(_, double)| record_handler(scalar, *double))
            else {
                return;
            };
            let rows: [u32; MAX_ELEMENTS] =
                std::array::from_fn(|index| rows.get(index).map_or(0, |(row, _)| *row));
            let begin = part * MAX_ELEMENTS as u64 * scalar.bytes();
            let op = self.access(run, target, begin, elements.len() as u64 * scalar.bytes());
            [op.d, op.b, op.c, op.e] = rows;
        }
    }

    /// Appends the observation of the next access, if it may be to device memory.
    pub(super) fn note_access(&mut self, target: Target, bytes: u64, how: AccessKind) {
        if self.context.checking.races && matches!(target.space, Space::Global | Space::Generic) {
            let run = match how {
                AccessKind::Read => run_record::<{ AccessKind::Read as u8 }>,
                AccessKind::Write => run_record::<{ AccessKind::Write as u8 }>,
                AccessKind::Atomic => run_record::<{ AccessKind::Atomic as u8 }>,
            };
            self.checking_access(run, target, bytes);
        }
    }

    /// Appends the notification that the launch may order its accesses with others through memory.
    pub(super) fn exchange(&mut self, space: Space) {
        if self.context.checking.races && matches!(space, Space::Global | Space::Generic) {
            self.push(Op::new(run_exchange));
        }
    }

    /// Appends a point that may order earlier accesses before later ones.
    pub(super) fn order(&mut self) {
        if self.context.checking.races {
            self.push(Op::new(run_order));
        }
    }

    /// Appends a synchronization of the warp's threads.
    pub(super) fn join_warp(&mut self) {
        if self.context.checking.races {
            self.push(Op::new(run_join));
        }
    }
}

/// Returns `true` if a load or a store may order other accesses, because it is volatile or ordered.
/// Accesses to memory that no other thread can access order nothing.
pub(super) fn may_order(instruction: &Instruction) -> bool {
    let is_local = instruction
        .modifiers
        .contains(&Modifier::Space(crate::syntax::Space::Local));
    !is_local
        && instruction.modifiers.iter().any(|modifier| match modifier {
            Modifier::Semantics(semantics) => *semantics != Semantics::Weak,
            Modifier::Volatile | Modifier::Mmio => true,
            _ => false,
        })
}

/// Returns the handler that records a store.
fn record_handler(scalar: ScalarType, double: bool) -> Option<Handler> {
    Some(match (scalar.bits(), double) {
        (8, false) => launch_race::run_store::<u8, u32>,
        (8, true) => launch_race::run_store::<u8, u64>,
        (16, false) => launch_race::run_store::<u16, u32>,
        (16, true) => launch_race::run_store::<u16, u64>,
        (32, false) => launch_race::run_store::<u32, u32>,
        (32, true) => launch_race::run_store::<u32, u64>,
        (64, false) => launch_race::run_store::<u64, u32>,
        (64, true) => launch_race::run_store::<u64, u64>,
        _ => return None,
    })
}

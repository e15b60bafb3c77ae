//! Member masks: the lanes of a warp that execute a `.sync` instruction together.
//!
//! Lanes at one instruction may name different masks, as tiles of a warp do. Each mask is a group
//! that runs once all of its live lanes have arrived. They may arrive at different instructions of
//! the same kind.

use super::op::{Control, Op};
use super::unit::Unit;
use crate::exec::check::report::{ReportKind, Resume, Trap};
use crate::exec::values::lane::lanes_where;

/// The lanes whose groups are complete, and the fragment's next step.
#[derive(Clone, Copy)]
pub(crate) struct Members {
    pub(crate) complete: u32,
    pub(crate) control: Control,
}

impl Members {
    /// Compares the active lanes with their member masks. Without masks, all lanes are one group.
    #[inline(always)]
    pub(crate) fn new(unit: &mut Unit<'_>, op: &Op) -> Self {
        let Some(members) = op.members() else {
            return Self {
                complete: unit.active,
                control: Control::Next,
            };
        };
        let masks = unit.frame.row::<u32>(members);
        let first = masks[unit.leader()];
        let is_one_group = lanes_where(|lane| masks[lane] == first) & unit.active == unit.active;
        if is_one_group && first & unit.warp.live == unit.active {
            return Self {
                complete: unit.active,
                control: Control::Next,
            };
        }
        Self::with_groups(unit, members)
    }

    /// Compares the active lanes with member masks that need not be equal, in the row `members`.
    #[inline(never)]
    fn with_groups(unit: &mut Unit<'_>, members: u32) -> Self {
        let masks = *unit.frame.row::<u32>(members);
        let outside = lanes_where(|lane| masks[lane] >> lane & 1 == 0) & unit.active;
        if outside != 0 {
            let kind = ReportKind::IllegalInstruction(
                "the member mask does not contain the executing lane",
            );
            let trap = Trap {
                resume: Resume::After,
                ..Trap::new(kind, outside.trailing_zeros() as usize)
            };
            return Self {
                complete: 0,
                control: unit.fault(trap),
            };
        }
        let mut complete = 0;
        let mut remaining = unit.active;
        while remaining != 0 {
            let mask = masks[remaining.trailing_zeros() as usize & 31];
            let group = lanes_where(|lane| masks[lane] == mask) & remaining;
            if mask & unit.warp.live == group {
                complete |= group;
            }
            remaining &= !group;
        }
        let control = match complete {
            0 => Control::Converge,
            all if all == unit.active => Control::Next,
            lanes => Control::ContinueSome { lanes },
        };
        Self { complete, control }
    }
}

/// Runs an instruction for each complete group.
#[inline(always)]
pub(crate) fn by_group(
    unit: &mut Unit<'_>,
    op: &Op,
    run: impl Fn(&mut Unit<'_>, &Op, u32),
) -> Control {
    let Members { complete, control } = Members::new(unit, op);
    let mut remaining = complete;
    while remaining != 0 {
        let group = match op.members() {
            None => remaining,
            // A complete group is the set of all live lanes of its mask.
            Some(members) => {
                let masks = unit.frame.row::<u32>(members);
                masks[remaining.trailing_zeros() as usize & 31] & unit.warp.live
            }
        };
        run(unit, op, group);
        remaining &= !group;
    }
    control
}

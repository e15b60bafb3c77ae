//! Member masks: the lanes of a warp that execute a `.sync` instruction together.
//!
//! Lanes at one instruction may name different masks, as tiles of a warp do. Each mask is a group that runs once all of its live lanes have
//! arrived.

use super::fragment::{Fragment, State};
use super::handler::NO_REGISTER;
use super::lane::lanes_where;
use super::op::{Control, Op};
use super::report::{ReportKind, Resume, Trap};
use super::unit::Unit;
use super::warp::Warp;

/// The lanes whose groups are complete, and the fragment's next step.
#[derive(Clone, Copy)]
pub(crate) struct Members {
    pub(crate) complete: u32,
    pub(crate) control: Control,
}

impl Members {
    /// Compares the active lanes with their member masks in row `imm`. Without masks, all lanes are one group.
    #[inline(always)]
    pub(crate) fn of(unit: &mut Unit<'_>, op: &Op) -> Self {
        if op.imm == u64::from(NO_REGISTER) {
            return Self {
                complete: unit.active,
                control: Control::Next,
            };
        }
        let masks = unit.frame.row::<u32>(op.imm as u32);
        let first = masks[unit.leader()];
        let is_one_group = lanes_where(|lane| masks[lane] == first) & unit.active == unit.active;
        if is_one_group && first & unit.warp.live == unit.active {
            return Self {
                complete: unit.active,
                control: Control::Next,
            };
        }
        Self::of_groups(unit, op)
    }

    /// Compares the active lanes with any member masks.
    #[inline(never)]
    fn of_groups(unit: &mut Unit<'_>, op: &Op) -> Self {
        let masks = *unit.frame.row::<u32>(op.imm as u32);
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
        let (mut complete, mut rest) = (0, unit.active);
        while rest != 0 {
            let mask = masks[rest.trailing_zeros() as usize & 31];
            let group = lanes_where(|lane| masks[lane] == mask) & rest;
            if mask & unit.warp.live == group {
                complete |= group;
            }
            rest &= !group;
        }
        unit.needed = complete;
        let control = match complete {
            0 => Control::Converge,
            all if all == unit.active => Control::Next,
            _ => Control::Part,
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
    let Members { complete, control } = Members::of(unit, op);
    let mut rest = complete;
    while rest != 0 {
        let group = if op.imm == u64::from(NO_REGISTER) {
            rest
        } else {
            // A complete group is the set of all live lanes of its mask.
            unit.frame.row::<u32>(op.imm as u32)[rest.trailing_zeros() as usize & 31]
                & unit.warp.live
        };
        run(unit, op, group);
        rest &= !group;
    }
    control
}

impl Warp {
    /// Returns the lanes that wait for the lanes in `needed`.
    pub(super) fn gathered(&self, needed: u32) -> u32 {
        let same = self
            .fragments
            .iter()
            .filter(|it| it.state == State::Gathering { needed });
        same.fold(0, |lanes, fragment| lanes | fragment.mask)
    }

    /// Makes the lanes of a fragment wait for the lanes of their member masks.
    pub(super) fn gather(&mut self, index: usize, op: &Op) {
        let Fragment {
            frame,
            pc,
            mut mask,
            ..
        } = self.fragments[index];
        let masks = *self.frames[frame as usize].row::<u32>(op.imm as u32);
        loop {
            let needed = masks[mask.trailing_zeros() as usize & 31];
            let group = lanes_where(|lane| masks[lane] == needed) & mask;
            mask &= !group;
            if mask == 0 {
                self.fragments[index].state = State::Gathering { needed };
                return;
            }
            self.split(index, group, pc);
            if let Some(group) = self.fragments.last_mut() {
                group.state = State::Gathering { needed };
            }
        }
    }
}

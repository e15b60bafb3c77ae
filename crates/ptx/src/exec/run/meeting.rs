//! Meetings of lanes at collective instructions.

use super::fragment::{Fragment, State};
use super::warp::Warp;
use super::worker::Worker;
use crate::exec::frame::Frame;
use crate::exec::machine::block_state::BlockState;
use crate::exec::machine::op::{Exchanged, Op, Role};
use crate::exec::values::lane::lanes_where;

impl Warp {
    /// Returns the lanes that wait for the lanes in `members`.
    pub(crate) fn gathered(&self, members: u32) -> u32 {
        self.fragments
            .iter()
            .filter(|fragment| fragment.state == State::Gathering { members })
            .fold(0, |lanes, fragment| lanes | fragment.mask)
    }

    /// Makes the lanes of a fragment wait for the lanes of their member masks.
    pub(crate) fn gather(&mut self, index: usize, op: &Op) {
        let Fragment {
            frame,
            pc,
            mut mask,
            ..
        } = self.fragments[index];
        let masks = *self.frames[frame as usize].row::<u32>(op.imm as u32);
        loop {
            let members = masks[mask.trailing_zeros() as usize & 31];
            let group = lanes_where(|lane| masks[lane] == members) & mask;
            mask &= !group;
            if mask == 0 {
                self.fragments[index].state = State::Gathering { members };
                return;
            }
            self.split(index, group, pc);
            if let Some(group) = self.fragments.last_mut() {
                group.state = State::Gathering { members };
            }
        }
    }

    /// Executes a collective instruction whose lanes wait at several instructions, such as in both
    /// arms of a branch. They meet if the instructions are of one kind with one member mask.
    /// Returns `false` if there is none.
    pub(crate) fn meet(&mut self, block: &mut BlockState, worker: &mut Worker<'_>) -> bool {
        self.separate_groups(worker);
        for first in 0..self.fragments.len() {
            let Some(collective) = self.waits_at(first, worker) else {
                continue;
            };
            let group: Vec<usize> = (first..self.fragments.len())
                .filter(|&index| {
                    self.waits_at(index, worker)
                        .is_some_and(|other| other.meets(&collective))
                })
                .collect();
            let lanes = group
                .iter()
                .fold(0, |lanes, &index| lanes | self.fragments[index].mask);
            if group.len() > 1 && collective.members & self.state.live == lanes {
                self.exchange(&group, lanes, block, worker);
                return true;
            }
        }
        false
    }

    /// Makes a fragment of each group of lanes that wait at a collective instruction.
    fn separate_groups(&mut self, worker: &Worker<'_>) {
        for index in 0..self.fragments.len() {
            while let Some(Collective { members, .. }) = self.waits_at(index, worker) {
                let Fragment {
                    frame, pc, mask, ..
                } = self.fragments[index];
                let frame = &self.frames[frame as usize];
                let op = &worker.code(frame.function)[pc as usize];
                let masks = frame.row::<u32>(op.imm as u32);
                let others = lanes_where(|lane| masks[lane] != members) & mask;
                if others == 0 {
                    break;
                }
                self.split(index, mask & !others, pc);
            }
        }
    }

    /// Returns the collective instruction at which a fragment waits, with the member mask of its
    /// first lane.
    fn waits_at(&self, index: usize, worker: &Worker<'_>) -> Option<Collective> {
        let fragment = &self.fragments[index];
        let State::Converging { .. } = fragment.state else {
            return None;
        };
        let frame = &self.frames[fragment.frame as usize];
        let op = worker.code(frame.function)[fragment.pc as usize];
        let Role::Collective(exchanged) = op.role else {
            return None;
        };
        let masks = frame.row::<u32>(op.members()?);
        let members = masks[fragment.mask.trailing_zeros() as usize & 31];
        Some(Collective {
            op,
            exchanged,
            members,
        })
    }

    /// Executes the collective instructions of several fragments, whose lanes read the registers of
    /// each other.
    fn exchange(
        &mut self,
        group: &[usize],
        lanes: u32,
        block: &mut BlockState,
        worker: &mut Worker<'_>,
    ) {
        let mut results = Vec::with_capacity(group.len());
        for &index in group {
            let Some(collective) = self.waits_at(index, worker) else {
                continue;
            };
            let mask = self.fragments[index].mask;
            let mut frame = self.frames[self.fragments[index].frame as usize].clone();
            for &other in group.iter().filter(|&&other| other != index) {
                let fragment = self.fragments[other];
                if let Some(source) = self.waits_at(other, worker) {
                    let from = &self.frames[fragment.frame as usize];
                    collective.read(&mut frame, &source, from, fragment.mask);
                }
            }
            let mut unit = worker.unit(&mut frame, &mut self.state, block);
            unit.active = lanes;
            // All lanes are here, so that the instruction completes.
            // SAFETY: the functions that make handlers picked this one by the features of the
            // processor.
            unsafe { (collective.op.run)(&mut unit, &collective.op) };
            results.push((index, mask, frame));
        }
        for (index, mask, frame) in results {
            let fragment = &mut self.fragments[index];
            self.frames[fragment.frame as usize].copy_lanes(&frame, mask);
            fragment.pc += 1;
            fragment.state = State::Ready;
        }
    }
}

/// A collective instruction at which lanes wait.
struct Collective {
    op: Op,
    exchanged: Exchanged,
    members: u32,
}

impl Collective {
    /// Returns `true` if the lanes of both exchange values: the kind of the instruction, its
    /// qualifiers and its mask are the same.
    fn meets(&self, other: &Self) -> bool {
        let same_kind = std::ptr::fn_addr_eq(self.op.run, other.op.run)
            && self.exchanged == other.exchanged
            && (self.exchanged != Exchanged::Reduced || self.op.e == other.op.e);
        same_kind && self.members == other.members
    }

    /// Copies what this instruction reads in `lanes` from the registers of the instruction at which
    /// they wait.
    fn read(&self, frame: &mut Frame, source: &Self, from: &Frame, lanes: u32) {
        let rows: &[(u32, u32)] = match self.exchanged {
            Exchanged::Words => &[
                (self.op.a, source.op.a),
                (self.op.b, source.op.b),
                (self.op.c, source.op.c),
            ],
            Exchanged::Reduced => &[(self.op.a, source.op.a)],
            Exchanged::None | Exchanged::Double | Exchanged::Predicate => &[],
        };
        for &(to, other) in rows {
            frame.row_mut::<u32>(to).merge(from.row(other), lanes);
        }
        match self.exchanged {
            Exchanged::Double => {
                frame
                    .row_mut::<u64>(self.op.a)
                    .merge(from.row(source.op.a), lanes);
            }
            Exchanged::Predicate => {
                let value = from.predicate(source.op.a) ^ source.op.b ^ self.op.b;
                frame.set_predicate(self.op.a, value, lanes);
            }
            Exchanged::None | Exchanged::Words | Exchanged::Reduced => {}
        }
        let members = source.op.imm as u32;
        frame
            .row_mut::<u32>(self.op.imm as u32)
            .merge(from.row(members), lanes);
    }
}

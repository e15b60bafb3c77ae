//! Instructions in which the lanes of a warp see one another.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::float::{canonical, max, max_nan, min, min_nan};
use crate::exec::handler::{NO_REGISTER, operation, versions};
use crate::exec::lane::{Lanes, lanes_where};
use crate::exec::members::{Members, by_group};
use crate::exec::op::{Control, Handler, Op};
use crate::exec::unit::Unit;
use crate::ptx::{Instruction, Keyword, Modifier, Opcode, Operand, Operation, ScalarType, ShuffleMode, VoteMode};

impl Lowerer<'_> {
    /// `shfl`, `vote`, `activemask`, `match`, `redux`.
    pub(super) fn warp_wide(&mut self, instruction: &Instruction) -> Lowered {
        match instruction.opcode {
            Opcode::Activemask => {
                let [destination] = &instruction.operands[..] else {
                    return Err(Refusal::form(instruction));
                };
                let d = self.destination(destination, ScalarType::B32)?;
                self.emit(run_active_mask, d, [0; 3]);
                Ok(())
            }
            Opcode::Shfl => self.shuffle(instruction),
            Opcode::Vote => self.vote(instruction),
            Opcode::Redux => self.reduce(instruction),
            _ => self.matching(instruction),
        }
    }

    /// `bar.warp.sync`.
    pub(super) fn warp_barrier(&mut self, instruction: &Instruction) -> Lowered {
        let [mask] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let mask = self.source(mask, ScalarType::B32)?;
        self.diverging(run_warp_barrier).imm = u64::from(mask);
        Ok(())
    }

    /// `elect`: one lane of those named.
    pub(super) fn elect(&mut self, instruction: &Instruction) -> Lowered {
        let [Operand::Pair(register, elected), members] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let register = register.map_or(Operand::Sink, Operand::Register);
        let members = self.members(Some(members))?;
        let d = self.destination(&register, ScalarType::B32)?;
        let e = self.predicate_destination(*elected)?;
        let op = self.diverging(run_elect);
        (op.d, op.e, op.imm) = (d, e, members);
        Ok(())
    }

    fn shuffle(&mut self, instruction: &Instruction) -> Lowered {
        let [destination, value, lane, clamp, members @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let mode = instruction.modifiers.iter().find_map(|modifier| match modifier {
            Modifier::Shuffle(mode) => Some(*mode),
            _ => None,
        });
        let run: Handler = match mode {
            Some(ShuffleMode::Up) => shuffle(|lane, operand, clamp| shuffle_source(0, lane, operand, clamp)),
            Some(ShuffleMode::Down) => shuffle(|lane, operand, clamp| shuffle_source(1, lane, operand, clamp)),
            Some(ShuffleMode::Butterfly) => shuffle(|lane, operand, clamp| shuffle_source(2, lane, operand, clamp)),
            Some(ShuffleMode::Index) => shuffle(|lane, operand, clamp| shuffle_source(3, lane, operand, clamp)),
            _ => return Err(Refusal::form(instruction)),
        };
        let a = self.source(value, ScalarType::B32)?;
        let b = self.source(lane, ScalarType::B32)?;
        let c = self.source(clamp, ScalarType::B32)?;
        let members = self.members(members.first())?;
        let sink = Operand::Sink;
        let (register, valid) = match destination {
            Operand::Pair(register, valid) => (register.map(Operand::Register), *valid),
            other => (Some(other.clone()), None),
        };
        let d = self.destination(register.as_ref().unwrap_or(&sink), ScalarType::B32)?;
        let e = match valid {
            Some(register) => self.predicate_register(register)?,
            None => NO_REGISTER,
        };
        let op = self.diverging(run);
        (op.a, op.b, op.c, op.d, op.e, op.imm) = (a, b, c, d, e, members);
        Ok(())
    }

    fn vote(&mut self, instruction: &Instruction) -> Lowered {
        let [destination, source, members @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let mode = instruction.modifiers.iter().find_map(|modifier| match modifier {
            Modifier::Vote(mode) => Some(*mode),
            _ => None,
        });
        let (a, negate) = self.predicate_source(source)?;
        let members = self.members(members.first())?;
        let (run, d): (Handler, u32) = match (mode, destination) {
            (Some(VoteMode::Ballot), register) => (run_ballot, self.destination(register, ScalarType::B32)?),
            (mode, Operand::Register(register)) => {
                let run: Handler = match mode {
                    Some(VoteMode::All) => run_vote::<0>,
                    Some(VoteMode::Any) => run_vote::<1>,
                    _ => run_vote::<2>,
                };
                (run, self.predicate_register(*register)?)
            }
            _ => return Err(Refusal::operand("a predicate")),
        };
        let op = self.diverging(run);
        (op.a, op.b, op.d, op.imm) = (a, negate, d, members);
        Ok(())
    }

    fn reduce(&mut self, instruction: &Instruction) -> Lowered {
        let ([destination, source, members], Some(scalar)) = (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let operation = instruction.modifiers.iter().find_map(|modifier| match modifier {
            Modifier::Operation(operation) => Some(*operation),
            _ => None,
        });
        let (absolute, nan) = (instruction.has(Modifier::Keyword(Keyword::Abs)), instruction.has(Modifier::Nan));
        if (absolute || nan) && scalar != ScalarType::F32 {
            return Err(Refusal::form(instruction));
        }
        let run: Handler = match (operation, scalar) {
            (Some(Operation::Min), ScalarType::F32) if nan => run_reduce_float::<false, true>,
            (Some(Operation::Min), ScalarType::F32) => run_reduce_float::<false, false>,
            (Some(Operation::Max), ScalarType::F32) if nan => run_reduce_float::<true, true>,
            (Some(Operation::Max), ScalarType::F32) => run_reduce_float::<true, false>,
            (Some(Operation::Add), ScalarType::U32 | ScalarType::S32) => run_reduce::<0>,
            (Some(Operation::Min), ScalarType::U32) => run_reduce::<1>,
            (Some(Operation::Max), ScalarType::U32) => run_reduce::<2>,
            (Some(Operation::Min), ScalarType::S32) => run_reduce::<3>,
            (Some(Operation::Max), ScalarType::S32) => run_reduce::<4>,
            (Some(Operation::And), ScalarType::B32) => run_reduce::<5>,
            (Some(Operation::Or), ScalarType::B32) => run_reduce::<6>,
            (Some(Operation::Xor), ScalarType::B32) => run_reduce::<7>,
            _ => return Err(Refusal::form(instruction)),
        };
        let a = self.source(source, ScalarType::B32)?;
        let members = self.members(Some(members))?;
        let d = self.destination(destination, ScalarType::B32)?;
        let op = self.diverging(run);
        (op.a, op.d, op.imm, op.e) = (a, d, members, u32::from(absolute));
        Ok(())
    }

    fn matching(&mut self, instruction: &Instruction) -> Lowered {
        let ([destination, source, members], Some(scalar)) = (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let wide = scalar == ScalarType::B64;
        let all = instruction.has(Modifier::Vote(VoteMode::All));
        if !(wide || scalar == ScalarType::B32) || !(all || instruction.has(Modifier::Vote(VoteMode::Any))) {
            return Err(Refusal::form(instruction));
        }
        let a = self.source(source, scalar)?;
        let members = self.members(Some(members))?;
        let sink = Operand::Sink;
        let (register, agrees) = match destination {
            Operand::Pair(register, agrees) => (register.map(Operand::Register), *agrees),
            other => (Some(other.clone()), None),
        };
        let d = self.destination(register.as_ref().unwrap_or(&sink), ScalarType::B32)?;
        let e = match agrees {
            Some(register) => self.predicate_register(register)?,
            None => NO_REGISTER,
        };
        let run: Handler = match (all, wide) {
            (false, false) => run_match_any::<false>,
            (false, true) => run_match_any::<true>,
            (true, false) => run_match_all::<false>,
            (true, true) => run_match_all::<true>,
        };
        let op = self.diverging(run);
        (op.a, op.d, op.e, op.imm) = (a, d, e, members);
        Ok(())
    }

    /// The row of a member mask; the lanes at hand if there is none.
    fn members(&mut self, operand: Option<&Operand>) -> Lowered<u64> {
        Ok(match operand {
            Some(operand) => u64::from(self.source(operand, ScalarType::B32)?),
            None => u64::from(NO_REGISTER),
        })
    }
}

fn run_active_mask(unit: &mut Unit<'_>, op: &Op) -> Control {
    let active = unit.active;
    unit.frame.row_mut::<u32>(op.d).merge(&[active; 32], active);
    Control::Next
}

fn run_elect(unit: &mut Unit<'_>, op: &Op) -> Control {
    by_group(unit, op, |unit, op, group| {
        let leader = group.trailing_zeros();
        unit.frame.row_mut::<u32>(op.d).merge(&[leader; 32], group);
        unit.frame.set_predicate(op.e, 1 << leader, group);
    })
}

fn run_warp_barrier(unit: &mut Unit<'_>, op: &Op) -> Control {
    let members = Members::of(unit, op);
    match members.control {
        Control::Next | Control::Fault => members.control,
        _ => Control::Gather,
    }
}

versions! {
    /// `shfl`, whose operation says which lane one takes from, and whether that is one that the clamp allows.
    shuffle(_operation: F) = run_shuffle [F] where F: Fn(u32, u32, u32) -> (u32, bool) + Copy + 'static
}

#[inline(always)]
fn run_shuffle<F: Fn(u32, u32, u32) -> (u32, bool) + Copy + 'static>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let members = Members::of(unit, op);
    if members.complete == 0 {
        return members.control;
    }
    let f = operation::<F>();
    let (operands, clamps) = (unit.frame.row::<u32>(op.b), unit.frame.row::<u32>(op.c));
    let mut sources = [0; 32];
    for lane in 0..32 {
        sources[lane] = f(lane as u32, operands[lane], clamps[lane]).0;
    }
    let valid =
        if op.e == NO_REGISTER { 0 } else { lanes_where(|lane| f(lane as u32, operands[lane], clamps[lane]).1) };
    let values = unit.frame.row::<u32>(op.a);
    let mut result = [0; 32];
    for lane in 0..32 {
        result[lane] = values[sources[lane] as usize & 31];
    }
    unit.frame.row_mut::<u32>(op.d).merge(&result, members.complete);
    if op.e != NO_REGISTER {
        unit.frame.set_predicate(op.e, valid, members.complete);
    }
    members.control
}

/// The lane that a shuffle takes from, and whether it is one that the clamp allows.
#[inline(always)]
pub(crate) fn shuffle_source(mode: u8, lane: u32, operand: u32, clamp: u32) -> (u32, bool) {
    let (operand, segment) = (operand & 31, clamp >> 8 & 31);
    let low = lane & segment;
    let high = low | clamp & 31 & !segment;
    let (source, inside) = match mode {
        0 => (lane.wrapping_sub(operand), lane.wrapping_sub(operand).cast_signed() >= high.cast_signed()),
        1 => (lane + operand, lane + operand <= high),
        2 => (lane ^ operand, lane ^ operand <= high),
        _ => (low | operand & !segment, low | operand & !segment <= high),
    };
    (if inside { source } else { lane }, inside)
}

/// `vote`: all, any, uniform.
fn run_vote<const MODE: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
    by_group(unit, op, |unit, op, group| {
        let votes = (unit.frame.predicate(op.a) ^ op.b) & group;
        let holds = match MODE {
            0 => votes == group,
            1 => votes != 0,
            _ => votes == group || votes == 0,
        };
        let value = if holds { u32::MAX } else { 0 };
        unit.frame.set_predicate(op.d, value, group);
    })
}

fn run_ballot(unit: &mut Unit<'_>, op: &Op) -> Control {
    by_group(unit, op, |unit, op, group| {
        let votes = (unit.frame.predicate(op.a) ^ op.b) & group;
        unit.frame.row_mut::<u32>(op.d).merge(&[votes; 32], group);
    })
}

fn run_reduce<const OPERATION: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
    by_group(unit, op, |unit, op, group| {
        let row = unit.frame.row::<u32>(op.a);
        let values = Lanes(group).map(|lane| row[lane]);
        let result = values.reduce(|a, b| match OPERATION {
            0 => a.wrapping_add(b),
            1 => a.min(b),
            2 => a.max(b),
            3 => a.cast_signed().min(b.cast_signed()).cast_unsigned(),
            4 => a.cast_signed().max(b.cast_signed()).cast_unsigned(),
            5 => a & b,
            6 => a | b,
            _ => a ^ b,
        });
        unit.frame.row_mut::<u32>(op.d).merge(&[result.unwrap_or(0); 32], group);
    })
}

/// The largest or smallest of numbers; NaN if all are or, where that counts, one is.
fn run_reduce_float<const LARGEST: bool, const NAN: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    by_group(unit, op, |unit, op, group| {
        let row = unit.frame.row::<u32>(op.a);
        let number = |lane: usize| {
            let number = f32::from_bits(row[lane]);
            if op.e == 1 { number.abs() } else { number }
        };
        let pick = match (LARGEST, NAN) {
            (false, false) => min::<f32>,
            (false, true) => min_nan::<f32>,
            (true, false) => max::<f32>,
            (true, true) => max_nan::<f32>,
        };
        let result = Lanes(group).map(number).reduce(pick).map_or(0, |value| canonical(value).to_bits());
        unit.frame.row_mut::<u32>(op.d).merge(&[result; 32], group);
    })
}

fn values<const WIDE: bool>(unit: &Unit<'_>, row: u32) -> [u64; 32] {
    if WIDE { *unit.frame.row::<u64>(row) } else { unit.frame.row::<u32>(row).map(u64::from) }
}

fn run_match_any<const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    by_group(unit, op, |unit, op, group| {
        let values = values::<WIDE>(unit, op.a);
        let mut result = [0; 32];
        for lane in Lanes(group) {
            let same = Lanes(group).filter(|&other| values[other] == values[lane]);
            result[lane] = same.fold(0, |mask, other| mask | 1 << other);
        }
        unit.frame.row_mut::<u32>(op.d).merge(&result, group);
    })
}

fn run_match_all<const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    by_group(unit, op, |unit, op, group| {
        let values = values::<WIDE>(unit, op.a);
        let first = values[group.trailing_zeros() as usize];
        let agree = Lanes(group).all(|lane| values[lane] == first);
        let result = if agree { group } else { 0 };
        unit.frame.row_mut::<u32>(op.d).merge(&[result; 32], group);
        if op.e != NO_REGISTER {
            let value = if agree { u32::MAX } else { 0 };
            unit.frame.set_predicate(op.e, value, group);
        }
    })
}

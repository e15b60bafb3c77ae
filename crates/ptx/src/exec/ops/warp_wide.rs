//! Operations of all threads of a warp: `shfl`, `vote`, `match`, `redux`, `elect`.

use super::handler::versions;
use crate::exec::check::undefined::{Cause, Origin, RegisterRow};
use crate::exec::machine::members::{Members, by_group};
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::values::float::{canonical, max, max_nan, min, min_nan};
use crate::exec::values::lane::{Lanes, lanes_where};
use crate::syntax::ShuffleMode;

pub(crate) fn run_active_mask(unit: &mut Unit<'_>, op: &Op) -> Control {
    let active = unit.active;
    unit.frame.row_mut::<u32>(op.d).merge(&[active; 32], active);
    Control::Next
}

pub(crate) fn run_elect(unit: &mut Unit<'_>, op: &Op) -> Control {
    by_group(unit, op, |unit, op, group| {
        let leader = group.trailing_zeros();
        unit.frame.row_mut::<u32>(op.d).merge(&[leader; 32], group);
        unit.frame.set_predicate(op.e, 1 << leader, group);
    })
}

pub(crate) fn run_warp_barrier(unit: &mut Unit<'_>, op: &Op) -> Control {
    let members = Members::new(unit, op);
    match members.control {
        Control::Next | Control::Fault => members.control,
        _ => Control::Gather,
    }
}

versions! {
    /// `shfl`. Its operation returns the source lane, and `true` if the clamp allows that lane.
    shuffle(operation: F) = run_shuffle [F] where F: Fn(u32, u32, u32) -> (u32, bool) + Copy + Send + 'static
}

/// Returns the handler of a mode of `shfl`.
pub(crate) fn shuffle_handler(mode: ShuffleMode) -> Option<Handler> {
    Some(match mode {
        ShuffleMode::Up => shuffle(|lane, operand, clamp| shuffle_source(0, lane, operand, clamp)),
        ShuffleMode::Down => {
            shuffle(|lane, operand, clamp| shuffle_source(1, lane, operand, clamp))
        }
        ShuffleMode::Butterfly => {
            shuffle(|lane, operand, clamp| shuffle_source(2, lane, operand, clamp))
        }
        ShuffleMode::Index => {
            shuffle(|lane, operand, clamp| shuffle_source(3, lane, operand, clamp))
        }
    })
}

/// Returns the source lane of a shuffle, and `true` if the clamp allows it.
#[inline(always)]
pub(crate) fn shuffle_source(mode: u8, lane: u32, operand: u32, clamp: u32) -> (u32, bool) {
    let operand = operand & 31;
    let segment = clamp >> 8 & 31;
    let low = lane & segment;
    let high = low | clamp & 31 & !segment;
    let (source, inside) = match mode {
        0 => (
            lane.wrapping_sub(operand),
            lane.wrapping_sub(operand).cast_signed() >= high.cast_signed(),
        ),
        1 => (lane + operand, lane + operand <= high),
        2 => (lane ^ operand, lane ^ operand <= high),
        _ => (low | operand & !segment, low | operand & !segment <= high),
    };
    (if inside { source } else { lane }, inside)
}

#[inline(always)]
fn run_shuffle<F: Fn(u32, u32, u32) -> (u32, bool) + Copy + Send + 'static>(
    unit: &mut Unit<'_>,
    op: &Op,
    f: F,
) -> Control {
    let members = Members::new(unit, op);
    if members.complete == 0 {
        return members.control;
    }
    let operands = unit.frame.row::<u32>(op.b);
    let clamps = unit.frame.row::<u32>(op.c);
    let mut sources = [0; 32];
    for lane in 0..32 {
        sources[lane] = f(lane as u32, operands[lane], clamps[lane]).0;
    }
    let predicate = op.second_destination();
    let valid = if predicate.is_some() {
        lanes_where(|lane| f(lane as u32, operands[lane], clamps[lane]).1)
    } else {
        0
    };
    let values = unit.frame.row::<u32>(op.a);
    let mut result = [0; 32];
    for lane in 0..32 {
        result[lane] = values[sources[lane] as usize & 31];
    }
    unit.frame
        .row_mut::<u32>(op.d)
        .merge(&result, members.complete);
    if let Some(predicate) = predicate {
        unit.frame.set_predicate(predicate, valid, members.complete);
    }
    if members.complete != u32::MAX {
        check_shuffle_sources(unit, op, &sources, members.complete);
    }
    members.control
}

/// Marks the results of a shuffle as undefined in the lanes whose source lane does not execute it.
#[cold]
#[inline(never)]
fn check_shuffle_sources(unit: &mut Unit<'_>, op: &Op, sources: &[u32; 32], executing: u32) {
    if !unit.launch.program.checking.uninitialized {
        return;
    }
    let mut lanes = Lanes(executing).filter(|lane| executing >> (sources[*lane] & 31) & 1 == 0);
    let Some(first) = lanes.next() else {
        return;
    };
    let undefined_lanes = lanes.fold(1 << first, |mask, lane| mask | 1 << lane);
    let undefined = unit.frame.undefined.get_or_insert_default();
    let origin = undefined.add_origin(Origin {
        line: op.line,
        cause: Cause::Shuffle {
            source: sources[first],
        },
    });
    undefined.set(
        RegisterRow::Word(op.d),
        &[0b1111; 32],
        undefined_lanes,
        origin,
    );
}

/// `vote`: all, any, uniform.
pub(crate) fn run_vote<const MODE: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
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

pub(crate) fn run_ballot(unit: &mut Unit<'_>, op: &Op) -> Control {
    by_group(unit, op, |unit, op, group| {
        let votes = (unit.frame.predicate(op.a) ^ op.b) & group;
        unit.frame.row_mut::<u32>(op.d).merge(&[votes; 32], group);
    })
}

pub(crate) fn run_reduce<const OPERATION: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
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
        unit.frame
            .row_mut::<u32>(op.d)
            .merge(&[result.unwrap_or(0); 32], group);
    })
}

/// Returns the largest or smallest number. The result is NaN if all are NaN or, with `.NaN`, if one
/// is.
pub(crate) fn run_reduce_float<const MAX: bool, const NAN: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
) -> Control {
    by_group(unit, op, |unit, op, group| {
        let row = unit.frame.row::<u32>(op.a);
        let numbers = Lanes(group).map(|lane| {
            let number = f32::from_bits(row[lane]);
            if op.e == 1 { number.abs() } else { number }
        });
        let pick = match (MAX, NAN) {
            (false, false) => min::<f32>,
            (false, true) => min_nan::<f32>,
            (true, false) => max::<f32>,
            (true, true) => max_nan::<f32>,
        };
        let result = numbers
            .reduce(pick)
            .map_or(0, |value| canonical(value).to_bits());
        unit.frame.row_mut::<u32>(op.d).merge(&[result; 32], group);
    })
}

fn values<const WIDE: bool>(unit: &Unit<'_>, row: u32) -> [u64; 32] {
    if WIDE {
        *unit.frame.row::<u64>(row)
    } else {
        unit.frame.row::<u32>(row).map(u64::from)
    }
}

pub(crate) fn run_match_any<const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
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

pub(crate) fn run_match_all<const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    by_group(unit, op, |unit, op, group| {
        let values = values::<WIDE>(unit, op.a);
        let first = values[group.trailing_zeros() as usize];
        let are_equal = Lanes(group).all(|lane| values[lane] == first);
        let result = if are_equal { group } else { 0 };
        unit.frame.row_mut::<u32>(op.d).merge(&[result; 32], group);
        if let Some(predicate) = op.second_destination() {
            let value = if are_equal { u32::MAX } else { 0 };
            unit.frame.set_predicate(predicate, value, group);
        }
    })
}

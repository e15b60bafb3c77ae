//! `clusterlaunchcontrol`: a cluster takes over the work of one that has not begun.
//!
//! An answer has 128 bits whose layout PTX keeps to itself. Here the lower 64 have the first block's index in x and y, and the upper ones
//! that in z, and above it whether there is one.

use super::address::state;
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::access::{check_alignment, update_at, write_at};
use crate::exec::cluster::address_in;
use crate::exec::handler::unary;
use crate::exec::lane::Lanes;
use crate::exec::mbarrier::Mbarrier;
use crate::exec::op::{Control, Handler, Op, Space};
use crate::exec::report::Trap;
use crate::exec::unit::Unit;
use crate::exec::window::SHARED_WINDOW;
use crate::ptx::{Instruction, Keyword, Modifier, Operand, ScalarType};

/// Bytes of an answer.
const ANSWER: u32 = 16;
/// The bit of the upper 64 that says that a cluster was taken over.
const IS_TAKEN: u64 = 1 << 32;

impl Lowerer<'_> {
    /// `clusterlaunchcontrol`.
    pub(super) fn control_launch(&mut self, instruction: &Instruction) -> Lowered {
        let has = |keyword| instruction.has(Modifier::Keyword(keyword));
        if has(Keyword::TryCancel) { self.take_over(instruction) } else { self.ask_answer(instruction) }
    }

    /// `.try_cancel`
    fn take_over(&mut self, instruction: &Instruction) -> Lowered {
        let has = |keyword| instruction.has(Modifier::Keyword(keyword));
        let is_complete = has(Keyword::Async) && has(Keyword::MbarrierCompleteTxBytes);
        let ([Operand::Address(answer), Operand::Address(barrier)], true) = (&instruction.operands[..], is_complete)
        else {
            return Err(Refusal::form(instruction));
        };
        if instruction.types().ne([ScalarType::B128]) {
            return Err(Refusal::form(instruction));
        }
        let (a, b) = (self.address_row(*answer)?, self.address_row(*barrier)?);
        let run: Handler =
            if has(Keyword::MulticastClusterAll) { run_take_over::<true> } else { run_take_over::<false> };
        self.fence();
        // Addresses are relative to the window of shared memory, unless they are generic.
        let window = if state(instruction).is_none() { SHARED_WINDOW } else { 0 };
        self.push(Op { a, b, ..Op::new(run) }).imm = window;
        Ok(())
    }

    /// `.query_cancel`
    fn ask_answer(&mut self, instruction: &Instruction) -> Lowered {
        let has = |keyword| instruction.has(Modifier::Keyword(keyword));
        let refusal = || Refusal::form(instruction);
        let [destination, answer] = &instruction.operands[..] else {
            return Err(refusal());
        };
        if !has(Keyword::QueryCancel) || instruction.types().last() != Some(ScalarType::B128) {
            return Err(refusal());
        }
        let [low, high] = self.quad(answer)?;
        match destination {
            Operand::Register(register) if has(Keyword::IsCanceled) => {
                let d = self.predicate_register(*register)?;
                self.push(Op { a: high, d, ..Op::new(run_is_taken) });
                Ok(())
            }
            Operand::Vector(parts) if has(Keyword::GetFirstCtaid) && parts.len() == 4 => {
                for (part, axis) in parts.iter().zip(0..3) {
                    self.index(part, axis, [low, high])?;
                }
                Ok(())
            }
            single => {
                let words = [Keyword::GetFirstCtaidX, Keyword::GetFirstCtaidY, Keyword::GetFirstCtaidZ];
                let axis = words.into_iter().position(has).ok_or_else(refusal)?;
                self.index(single, axis, [low, high])
            }
        }
    }

    /// The index of the first block in one direction.
    fn index(&mut self, destination: &Operand, axis: usize, [low, high]: [u32; 2]) -> Lowered {
        let d = self.destination(destination, ScalarType::B32)?;
        let upper = unary(|part: u64| (part >> 32) as u32);
        let lower = unary(|part: u64| part as u32);
        let (run, a) = [(lower, low), (upper, low), (lower, high)][axis];
        self.emit(run, d, [a, 0, 0]);
        Ok(())
    }
}

fn run_is_taken(unit: &mut Unit<'_>, op: &Op) -> Control {
    let row = unit.frame.row::<u64>(op.a);
    let taken = row.iter().enumerate().fold(0, |taken, (lane, part)| taken | u32::from(part & IS_TAKEN != 0) << lane);
    unit.frame.set_predicate(op.d, taken, unit.active);
    Control::Next
}

/// Each thread asks for a cluster of its own. The answer is there at once.
fn run_take_over<const TO_ALL: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let place = |row: u32| unit.frame.row::<u64>(row)[lane].wrapping_sub(op.imm);
        let places = [place(op.a), place(op.b)];
        let answer = match unit.launch.take_over_cluster() {
            Some([x, y, z]) => [u64::from(y) << 32 | u64::from(x), IS_TAKEN | u64::from(z)],
            None => [0; 2],
        };
        let ranks = if TO_ALL { 0..unit.launch.cluster_size() as u32 } else { 0..1 };
        for rank in ranks {
            let [to, barrier] = if TO_ALL { places.map(|place| address_in(place, rank)) } else { places };
            if let Err(trap) = leave(unit, lane, to, barrier, answer) {
                return unit.fault(trap);
            }
        }
    }
    Control::Next
}

/// Writes an answer, and counts its bytes in at the barrier object.
fn leave(unit: &mut Unit<'_>, lane: usize, to: u64, barrier: u64, [low, high]: [u64; 2]) -> Result<(), Trap> {
    check_alignment(to, ANSWER.into(), lane, true)?;
    write_at(unit, Space::Shared, lane, to, low)?;
    write_at(unit, Space::Shared, lane, to.wrapping_add(8), high)?;
    let complete = |bits: u64| Mbarrier::from_bits(bits).complete(ANSWER).bits();
    update_at::<u64>(unit, Space::Shared, lane, barrier, complete).map(|_| ())
}

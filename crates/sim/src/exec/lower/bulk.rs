//! Bulk copies, reductions and prefetches of bytes that lie together.

use super::asynchronous::{space_of, state};
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::access::{check_alignment, check_reach, read_at, trap, update_at, write_at};
use crate::exec::cluster::address_in;
use crate::exec::handler::NO_REGISTER;
use crate::exec::lane::Lanes;
use crate::exec::mbarrier::Mbarrier;
use crate::exec::op::{Control, Op, Space};
use crate::exec::report::{ReportKind, Trap};
use crate::exec::tensor::{self, Change};
use crate::exec::unit::Unit;
use crate::ptx::{CacheLevel, Instruction, Keyword, Modifier, Operand, Operation, ScalarType, Space as State};

/// What addresses and sizes are multiples of, in bytes.
const ALIGNMENT: u64 = 16;

/// A reduction: what an instruction does to each element, and its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkReduction {
    change: Change,
    bytes: u64,
}

impl Lowerer<'_> {
    /// `cp.async.bulk` and `cp.reduce.async.bulk`.
    pub(super) fn copy_bulk(&mut self, instruction: &Instruction) -> Lowered {
        let has = |keyword| instruction.has(Modifier::Keyword(keyword));
        if has(Keyword::Tensor) {
            return self.copy_tensor(instruction);
        }
        // Copies are done at once, so groups have nothing to wait for.
        if has(Keyword::CommitGroup) || has(Keyword::WaitGroup) {
            return Ok(());
        }
        if has(Keyword::Prefetch) {
            return self.prefetch_bulk(instruction);
        }
        let [Operand::Address(to), Operand::Address(from), size, rest @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let reduction = if has(Keyword::Reduce) { Some(reduction(instruction)?) } else { None };
        let a = self.address_row(*to)?;
        let b = self.address_row(*from)?;
        let c = self.source(size, ScalarType::U32)?;
        let spaces = [space_of(state(instruction, 0)), space_of(state(instruction, 1))];
        let barrier = match rest.first() {
            Some(Operand::Address(barrier)) => self.address_row(*barrier)?,
            _ => NO_REGISTER,
        };
        let mask = self.mask(instruction, rest)?;
        let to_shared = u64::from(spaces[0] == Space::Shared);
        let from_shared = u64::from(spaces[1] == Space::Shared);
        let run = match reduction {
            Some(_) => run_reduction,
            None if has(Keyword::CpMask) => run_masked,
            None => run_bulk,
        };
        let number = self.out.reductions.len() as u64;
        self.out.reductions.extend(reduction);
        let op = self.push(Op { a, b, c, d: mask, e: barrier, ..Op::new(run) });
        op.imm = to_shared | from_shared << 1 | number << 2;
        Ok(())
    }

    /// The mask of the blocks that get a copy, or of the bytes that are copied.
    fn mask(&mut self, instruction: &Instruction, rest: &[Operand]) -> Lowered<u32> {
        let has = |keyword| instruction.has(Modifier::Keyword(keyword));
        match rest {
            [_, mask, ..] if has(Keyword::MulticastCluster) => self.source(mask, ScalarType::B16),
            [.., mask] if has(Keyword::CpMask) => self.byte_mask(instruction, mask),
            _ if has(Keyword::CpMask) => Err(Refusal::form(instruction)),
            _ => Ok(NO_REGISTER),
        }
    }

    /// The mask of the bytes of each 16 that are copied, which copies to the device may have.
    fn byte_mask(&mut self, instruction: &Instruction, mask: &Operand) -> Lowered<u32> {
        let keywords = [Keyword::Async, Keyword::Bulk, Keyword::BulkGroup, Keyword::CpMask].map(Modifier::Keyword);
        let spaces = [State::Global, State::SharedCta].map(Modifier::Space);
        let hint = usize::from(instruction.has(Modifier::CacheHint));
        let is_known = |modifier: &Modifier| {
            keywords.contains(modifier) || spaces.contains(modifier) || *modifier == Modifier::CacheHint
        };
        if !instruction.modifiers.iter().all(is_known) || instruction.operands.len() != 4 + hint {
            return Err(Refusal::form(instruction));
        }
        self.source(mask, ScalarType::B16)
    }

    fn prefetch_bulk(&mut self, instruction: &Instruction) -> Lowered {
        let hint = usize::from(instruction.has(Modifier::CacheHint));
        let is_known = instruction.has(Modifier::Level(CacheLevel::L2)) && state(instruction, 0) == Some(State::Global);
        match &instruction.operands[..] {
            [Operand::Address(from), size, rest @ ..] if is_known && rest.len() == hint => {
                let (a, c) = (self.address_row(*from)?, self.source(size, ScalarType::U32)?);
                self.push(Op { a, c, ..Op::new(run_prefetch) });
                Ok(())
            }
            _ => Err(Refusal::form(instruction)),
        }
    }
}

/// What `cp.reduce.async.bulk` does, if it is a form that there is.
fn reduction(instruction: &Instruction) -> Lowered<BulkReduction> {
    let has = |keyword| instruction.has(Modifier::Keyword(keyword));
    let refusal = || Refusal::form(instruction);
    let (operation, scalar) = (operation(instruction), instruction.types().next());
    let (Some(operation), Some(scalar)) = (operation, scalar) else { return Err(refusal()) };
    let spaces = [state(instruction, 0), state(instruction, 1)];
    let is_device = spaces[0] == Some(State::Global);
    let is_half = matches!(scalar, ScalarType::F16 | ScalarType::Bf16);
    // Sums of halves are spelled as what they are.
    let is_spelled = has(Keyword::Noftz) == (is_half && operation == Operation::Add);
    let is_whole = matches!(scalar, ScalarType::B32 | ScalarType::U32 | ScalarType::S32)
        || scalar == ScalarType::U64 && operation == Operation::Add;
    let (destination, completion, operands) = if is_device {
        (State::Global, Keyword::BulkGroup, 3 + usize::from(instruction.has(Modifier::CacheHint)))
    } else {
        (State::SharedCluster, Keyword::MbarrierCompleteTxBytes, 4)
    };
    let is_placed = spaces == [Some(destination), Some(State::SharedCta)] && has(completion);
    let known = 7 + usize::from(has(Keyword::Noftz)) + usize::from(instruction.has(Modifier::CacheHint));
    let is_whole = (is_device || is_whole) && instruction.modifiers.len() == known + 1;
    if !is_spelled || !is_placed || !is_whole || instruction.operands.len() != operands {
        return Err(refusal());
    }
    let change = tensor::change(operation, scalar).ok_or_else(refusal)?;
    Ok(BulkReduction { change, bytes: scalar.bytes() })
}

/// The operation that a reduction spells.
pub(super) fn operation(instruction: &Instruction) -> Option<Operation> {
    instruction.modifiers.iter().find_map(|modifier| match modifier {
        Modifier::Operation(operation) => Some(*operation),
        _ => None,
    })
}

/// What one thread copies, and between which spaces.
struct Block {
    lane: usize,
    from: u64,
    size: u64,
    spaces: [Space; 2],
}

impl Block {
    /// What a lane copies, checked against what every copy must be.
    fn of(unit: &Unit<'_>, op: &Op, lane: usize) -> Result<Self, Trap> {
        let space = |bit: u64| if op.imm >> bit & 1 == 1 { Space::Shared } else { Space::Global };
        let from = unit.frame.row::<u64>(op.b)[lane];
        let size = u64::from(unit.frame.row::<u32>(op.c)[lane]);
        check_alignment(from, ALIGNMENT, lane, false)?;
        check_alignment(size, ALIGNMENT, lane, false)?;
        Ok(Self { lane, from, size, spaces: [space(0), space(1)] })
    }

    fn copy(&self, unit: &mut Unit<'_>, to: u64) -> Result<(), Trap> {
        check_alignment(to, ALIGNMENT, self.lane, true)?;
        for offset in (0..self.size).step_by(8) {
            let word: u64 = read_at(unit, self.spaces[1], self.lane, self.from.wrapping_add(offset))?;
            write_at(unit, self.spaces[0], self.lane, to.wrapping_add(offset), word)?;
        }
        Ok(())
    }

    fn complete(&self, unit: &mut Unit<'_>, barrier: u64) -> Result<(), Trap> {
        let complete = |bits: u64| Mbarrier::from_bits(bits).complete(self.size as u32).bits();
        update_at::<u64>(unit, Space::Shared, self.lane, barrier, complete).map(|_| ())
    }
}

fn each_lane(
    unit: &mut Unit<'_>,
    op: &Op,
    act: impl Fn(&mut Unit<'_>, Block, u64, Option<u64>) -> Result<(), Trap>,
) -> Control {
    for lane in Lanes(unit.active) {
        let to = unit.frame.row::<u64>(op.a)[lane];
        let barrier = if op.e == NO_REGISTER { None } else { Some(unit.frame.row::<u64>(op.e)[lane]) };
        if let Err(trap) = Block::of(unit, op, lane).and_then(|block| act(unit, block, to, barrier)) {
            return unit.fault(trap);
        }
    }
    Control::Next
}

fn run_bulk(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, block, to, barrier| {
        let targets = if op.d == NO_REGISTER {
            vec![(to, barrier)]
        } else {
            let ranks = Lanes(unit.frame.row::<u32>(op.d)[block.lane] & 0xffff);
            let address = |address: u64, rank: usize| address_in(address, rank as u32);
            ranks.map(|rank| (address(to, rank), barrier.map(|barrier| address(barrier, rank)))).collect()
        };
        for (to, barrier) in targets {
            block.copy(unit, to)?;
            barrier.map_or(Ok(()), |barrier| block.complete(unit, barrier))?;
        }
        Ok(())
    })
}

/// Copies the bytes of each 16 that a mask names.
fn run_masked(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, Block { lane, from, size, .. }, to, _| {
        check_alignment(to, ALIGNMENT, lane, true)?;
        let mask = unit.frame.row::<u32>(op.d)[lane];
        for offset in (0..size).filter(|offset| mask >> (offset % ALIGNMENT) & 1 == 1) {
            let byte: u8 = read_at(unit, Space::Shared, lane, from.wrapping_add(offset))?;
            write_at(unit, Space::Global, lane, to.wrapping_add(offset), byte)?;
        }
        Ok(())
    })
}

fn run_reduction(unit: &mut Unit<'_>, op: &Op) -> Control {
    let program = unit.launch.program;
    let function = &program.functions[unit.frame.function as usize];
    let BulkReduction { change, bytes } = function.reductions[(op.imm >> 2) as usize];
    each_lane(unit, op, |unit, block, to, barrier| {
        check_alignment(to, ALIGNMENT, block.lane, true)?;
        for offset in (0..block.size).step_by(bytes as usize) {
            let from = block.from.wrapping_add(offset);
            let new = tensor::read_bytes(unit, Space::Shared, block.lane, from, bytes)?;
            let place = (to.wrapping_add(offset), bytes);
            tensor::update(unit, block.spaces[0], block.lane, place, (change, new))?;
        }
        barrier.map_or(Ok(()), |barrier| block.complete(unit, barrier))
    })
}

/// A prefetch changes nothing, but what it asks for must be there.
fn run_prefetch(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let from = unit.frame.row::<u64>(op.a)[lane];
        let size = u64::from(unit.frame.row::<u32>(op.c)[lane]);
        let checked = check_alignment(from, ALIGNMENT, lane, false)
            .and_then(|()| check_alignment(size, ALIGNMENT, lane, false))
            .and_then(|()| match (size, from.checked_add(size)) {
                (0, _) => Ok(()),
                (_, Some(end)) => check_reach(unit, Space::Global, lane, from, false)
                    .and_then(|()| check_reach(unit, Space::Global, lane, end - 1, false)),
                (_, None) => Err(trap(ReportKind::IllegalAddress, lane, from, size, false)),
            });
        if let Err(trap) = checked {
            return unit.fault(trap);
        }
    }
    Control::Next
}

//! `mov`: registers, immediates, addresses, special registers, and vectors packed and unpacked.

use std::time::{SystemTime, UNIX_EPOCH};

use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot, copy};
use crate::exec::handler::{NO_REGISTER, binary, compare};
use crate::exec::op::{Control, Handler, Op};
use crate::exec::unit::Unit;
use crate::ptx::{Instruction, Operand, ScalarType, SpecialRegister};

impl Lowerer<'_> {
    /// `mov`.
    pub(super) fn mov(&mut self, instruction: &Instruction) -> Lowered {
        let ([destination, source], Some(scalar)) = (&instruction.operands[..], instruction.types().next()) else {
            return Err(Refusal::form(instruction));
        };
        match (destination, source) {
            _ if scalar == ScalarType::Pred => {
                let Operand::Register(register) = destination else {
                    return Err(Refusal::form(instruction));
                };
                let d = self.predicate_register(*register)?;
                if let Operand::Special(special) = source {
                    let value = self.special(*special);
                    return self.predicate_of(d, value);
                }
                let (a, negate) = self.predicate_source(source)?;
                self.emit(run_predicate_copy, d, [a, 0, 0]).e = negate;
                Ok(())
            }
            _ if scalar == ScalarType::B128 => self.move_quad(destination, source),
            (Operand::Vector(parts), Operand::Vector(sources)) if parts.len() == sources.len() => {
                // Copies, because a part may be another's source.
                let double = scalar.bits() == 64;
                let mut rows = Vec::new();
                for source in sources {
                    let (from, row) = (self.source(source, scalar)?, self.new_slot(scalar));
                    let (Slot::Word(row) | Slot::Double(row)) = row else { return Err(Refusal::form(instruction)) };
                    self.emit(if double { copy::<u64>() } else { copy::<u32>() }, row, [from, 0, 0]);
                    rows.push(row);
                }
                for (part, row) in parts.iter().zip(rows) {
                    let d = self.destination(part, scalar)?;
                    self.emit(if double { copy::<u64>() } else { copy::<u32>() }, d, [row, 0, 0]);
                }
                Ok(())
            }
            (Operand::Vector(parts), _) => self.unpack(instruction, parts, source, scalar),
            (_, Operand::Vector(parts)) => self.pack(instruction, destination, parts, scalar),
            _ => self.move_scalar(destination, source, scalar),
        }
    }

    /// Appends the move of a row to a predicate: true where it is not zero.
    pub(super) fn predicate_of(&mut self, d: u32, slot: Slot) -> Lowered {
        let (a, zero) = (self.source_slot(slot, false)?, self.word(0));
        self.emit(compare(|a: u32, b: u32| a != b), d, [a, zero, 0]).e = NO_REGISTER;
        Ok(())
    }

    fn move_scalar(&mut self, destination: &Operand, source: &Operand, scalar: ScalarType) -> Lowered {
        let a = self.source(source, scalar)?;
        let d = self.destination(destination, scalar)?;
        let run = if scalar.bits() == 64 { copy::<u64>() } else { copy::<u32>() };
        self.emit(run, d, [a, 0, 0]);
        Ok(())
    }

    /// 128 bits: between registers of this width and pairs of 64 bits.
    fn move_quad(&mut self, destination: &Operand, source: &Operand) -> Lowered {
        let from = self.quad(source)?;
        // A copy, because a destination may be a source.
        let copies = [self.new_double(), self.new_double()];
        for (copied, row) in copies.into_iter().zip(from) {
            self.emit(copy::<u64>(), copied, [row, 0, 0]);
        }
        let to = match destination {
            Operand::Vector(parts) if parts.len() == 2 => {
                [self.destination(&parts[0], ScalarType::B64)?, self.destination(&parts[1], ScalarType::B64)?]
            }
            other => self.quad(other)?,
        };
        for (d, row) in to.into_iter().zip(copies) {
            self.emit(copy::<u64>(), d, [row, 0, 0]);
        }
        Ok(())
    }

    /// A register from its parts, the first lowest.
    fn pack(
        &mut self,
        instruction: &Instruction,
        destination: &Operand,
        parts: &[Operand],
        scalar: ScalarType,
    ) -> Lowered {
        let d = self.destination(destination, scalar)?;
        let mut rows = Vec::new();
        let part_type = part_type(instruction, scalar, parts.len())?;
        for part in parts {
            rows.push(self.source(part, part_type)?);
        }
        match (scalar.bits(), &rows[..]) {
            (64, &[low, high]) => {
                self.emit(binary(pack_words), d, [low, high, 0]);
            }
            (32, &[low, high]) => {
                self.emit(binary(pack_halves), d, [low, high, 0]);
            }
            (64, &[a, b, c, e]) => {
                let (low, high) = (self.new_word(), self.new_word());
                self.emit(binary(pack_halves), low, [a, b, 0]);
                self.emit(binary(pack_halves), high, [c, e, 0]);
                self.emit(binary(pack_words), d, [low, high, 0]);
            }
            (16, &[low, high]) => {
                self.emit(binary(|a: u8, b: u8| u16::from_le_bytes([a, b])), d, [low, high, 0]);
            }
            (32, &[a, b, c, e]) => {
                let run =
                    crate::exec::handler::quaternary(|a: u8, b: u8, c: u8, e: u8| u32::from_le_bytes([a, b, c, e]));
                self.emit(run, d, [a, b, c]).e = e;
            }
            _ => return Err(Refusal::form(instruction)),
        }
        Ok(())
    }

    /// The parts of a register, the first lowest.
    fn unpack(
        &mut self,
        instruction: &Instruction,
        parts: &[Operand],
        source: &Operand,
        scalar: ScalarType,
    ) -> Lowered {
        // A copy, because a part may be the source's own register.
        let from = self.source(source, scalar)?;
        let bits = scalar.bits() / parts.len() as u32;
        let part_type = part_type(instruction, scalar, parts.len())?;
        let (a, wide) = if scalar.bits() == 64 {
            let a = self.new_double();
            self.emit(copy::<u64>(), a, [from, 0, 0]);
            (a, true)
        } else {
            let a = self.new_word();
            self.emit(copy::<u32>(), a, [from, 0, 0]);
            (a, false)
        };
        for (index, part) in parts.iter().enumerate() {
            if *part == Operand::Sink {
                continue;
            }
            let shift = self.word(bits * index as u32);
            let d = self.destination(part, part_type)?;
            let run: Handler = match (wide, bits) {
                (true, 32) => binary(|a: u64, shift: u32| (a >> shift) as u32),
                (true, 16) => binary(|a: u64, shift: u32| (a >> shift) as u16),
                (false, 16) => binary(|a: u32, shift: u32| (a >> shift) as u16),
                (false, 8) => binary(|a: u32, shift: u32| (a >> shift) as u8),
                _ => return Err(Refusal::form(instruction)),
            };
            self.emit(run, d, [a, shift, 0]);
        }
        Ok(())
    }

    /// A slot that holds a special register's value at this point.
    pub(super) fn special(&mut self, register: SpecialRegister) -> Slot {
        let narrow = register.bits() <= 32;
        let run: Handler = if narrow { run_special } else { run_wide_special };
        let d = if narrow { self.new_word() } else { self.new_double() };
        // The number is a position in the tables below.
        self.emit(run, d, [0; 3]).imm = encode(register);
        if narrow { Slot::Word(d) } else { Slot::Double(d) }
    }
}

fn part_type(instruction: &Instruction, scalar: ScalarType, parts: usize) -> Lowered<ScalarType> {
    match scalar.bits() / parts as u32 {
        8 => Ok(ScalarType::B8),
        16 => Ok(ScalarType::B16),
        32 => Ok(ScalarType::B32),
        _ => Err(Refusal::form(instruction)),
    }
}

#[inline(always)]
fn pack_words(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[inline(always)]
fn pack_halves(low: u16, high: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

fn run_predicate_copy(unit: &mut Unit<'_>, op: &Op) -> Control {
    let value = unit.frame.predicate(op.a) ^ op.e;
    unit.frame.set_predicate(op.d, value, unit.active);
    Control::Next
}

/// The special registers, in the order of their numbers.
const REGISTERS: [SpecialRegister; 55] = {
    use SpecialRegister as S;
    [
        S::TidX,
        S::TidY,
        S::TidZ,
        S::NtidX,
        S::NtidY,
        S::NtidZ,
        S::CtaidX,
        S::CtaidY,
        S::CtaidZ,
        S::NctaidX,
        S::NctaidY,
        S::NctaidZ,
        S::Laneid,
        S::Warpid,
        S::Nwarpid,
        S::Smid,
        S::Nsmid,
        S::LanemaskEq,
        S::LanemaskLe,
        S::LanemaskLt,
        S::LanemaskGe,
        S::LanemaskGt,
        S::Clock,
        S::ClockHi,
        S::GlobaltimerLo,
        S::GlobaltimerHi,
        S::TotalSmemSize,
        S::DynamicSmemSize,
        S::AggrSmemSize,
        S::ClusteridX,
        S::ClusteridY,
        S::ClusteridZ,
        S::NclusteridX,
        S::NclusteridY,
        S::NclusteridZ,
        S::ClusterCtaidX,
        S::ClusterCtaidY,
        S::ClusterCtaidZ,
        S::ClusterNctaidX,
        S::ClusterNctaidY,
        S::ClusterNctaidZ,
        S::ClusterCtarank,
        S::ClusterNctarank,
        S::IsExplicitCluster,
        S::ReservedSmemOffsetBegin,
        S::ReservedSmemOffsetEnd,
        S::ReservedSmemOffsetCap,
        S::Gridid,
        S::Clock64,
        S::Globaltimer,
        S::CurrentGraphExec,
        S::Environment(0),
        S::Environment(1),
        S::Environment(2),
        S::PerformanceCounter(0),
    ]
};

/// The number of a register; those without a value of their own share one that reads zero.
fn encode(register: SpecialRegister) -> u64 {
    let position = REGISTERS.iter().position(|&other| other == register);
    position.unwrap_or(REGISTERS.len() - 1) as u64
}

fn run_special(unit: &mut Unit<'_>, op: &Op) -> Control {
    use SpecialRegister as S;
    let register = REGISTERS[op.imm as usize];
    let [tid_x, tid_y, tid_z] = &unit.warp.thread;
    let launch = unit.launch;
    let each = |f: fn(u32) -> u32| std::array::from_fn(|lane| f(lane as u32));
    let all = |value: u32| [value; 32];
    let row = match register {
        S::TidX => *tid_x,
        S::TidY => *tid_y,
        S::TidZ => *tid_z,
        S::NtidX => all(launch.block[0]),
        S::NtidY => all(launch.block[1]),
        S::NtidZ => all(launch.block[2]),
        S::CtaidX => all(unit.block.index[0]),
        S::CtaidY => all(unit.block.index[1]),
        S::CtaidZ => all(unit.block.index[2]),
        S::NctaidX => all(launch.grid[0]),
        S::NctaidY => all(launch.grid[1]),
        S::NctaidZ => all(launch.grid[2]),
        // Without clusters, each block is a cluster of one.
        S::ClusteridX => all(unit.block.index[0] / launch.cluster[0]),
        S::ClusteridY => all(unit.block.index[1] / launch.cluster[1]),
        S::ClusteridZ => all(unit.block.index[2] / launch.cluster[2]),
        S::NclusteridX => all(launch.grid[0] / launch.cluster[0]),
        S::NclusteridY => all(launch.grid[1] / launch.cluster[1]),
        S::NclusteridZ => all(launch.grid[2] / launch.cluster[2]),
        S::ClusterCtaidX => all(unit.block.index[0] % launch.cluster[0]),
        S::ClusterCtaidY => all(unit.block.index[1] % launch.cluster[1]),
        S::ClusterCtaidZ => all(unit.block.index[2] % launch.cluster[2]),
        S::ClusterNctaidX => all(launch.cluster[0]),
        S::ClusterNctaidY => all(launch.cluster[1]),
        S::ClusterNctaidZ => all(launch.cluster[2]),
        S::ClusterCtarank => all(unit.block.rank),
        S::ClusterNctarank => all(launch.cluster_size() as u32),
        S::IsExplicitCluster => all(u32::from(launch.cluster != [1; 3])),
        S::Laneid => each(|lane| lane),
        S::Warpid => all(unit.warp.index),
        S::Nwarpid => all(launch.device.max_threads_per_block.div_ceil(32)),
        S::Smid => all((unit.block.number % u64::from(launch.device.multiprocessors.max(1))) as u32),
        S::Nsmid => all(launch.device.multiprocessors),
        S::LanemaskEq => each(|lane| 1 << lane),
        S::LanemaskLt => each(|lane| (1 << lane) - 1),
        S::LanemaskLe => each(|lane| u32::MAX >> (31 - lane)),
        S::LanemaskGe => each(|lane| u32::MAX << lane),
        S::LanemaskGt => each(|lane| !(u32::MAX >> (31 - lane))),
        S::Clock => all(clock(unit) as u32),
        S::ClockHi => all((clock(unit) >> 32) as u32),
        S::GlobaltimerLo => all(nanoseconds() as u32),
        S::GlobaltimerHi => all((nanoseconds() >> 32) as u32),
        S::TotalSmemSize | S::AggrSmemSize => all(launch.shared_size),
        S::DynamicSmemSize => all(launch.dynamic_shared),
        // Compilers' headers know these two as the halves of the address, the high one first.
        S::Environment(1) => all((launch.workspace >> 32) as u32),
        S::Environment(2) => all(launch.workspace as u32),
        _ => all(0),
    };
    unit.frame.row_mut::<u32>(op.d).merge(&row, unit.active);
    Control::Next
}

fn run_wide_special(unit: &mut Unit<'_>, op: &Op) -> Control {
    let value = match REGISTERS[op.imm as usize] {
        SpecialRegister::Clock64 => clock(unit),
        SpecialRegister::Globaltimer => nanoseconds(),
        SpecialRegister::Gridid => 1,
        _ => 0,
    };
    unit.frame.row_mut::<u64>(op.d).merge(&[value; 32], unit.active);
    Control::Next
}

/// Ticks of the device's clock since the launch began.
fn clock(unit: &Unit<'_>) -> u64 {
    let elapsed = unit.launch.started.elapsed().as_nanos();
    (elapsed * u128::from(unit.launch.device.clock_khz) / 1_000_000) as u64
}

/// Nanoseconds of the host's clock.
fn nanoseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |elapsed| elapsed.as_nanos() as u64)
}

/// `not` of a predicate, as a copy.
pub(super) fn predicate_copy() -> Handler {
    run_predicate_copy
}

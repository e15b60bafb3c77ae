//! Loads, stores, reductions and prefetches of parts of tensors.

use super::map::{Map, Part};
use super::reduction::{Location, read_bytes, tensor_change, update};
use super::walk::{Coordinates, GRANULE, Granule, Rows};
use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::machine::cluster::{address_in, block_rank};
use crate::exec::machine::op::{Control, NO_REGISTER, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::operands::tensor::{Direction, Mode, TensorAccess};
use crate::exec::ops::access::{check_alignment, check_reach, read_at, update_at, write_at};
use crate::exec::ops::mbarrier::Mbarrier;
use crate::exec::space::Space;
use crate::exec::values::lane::Lanes;

/// The alignment of shared memory and of a map, in bytes.
const ALIGNMENT: u64 = 128;
const MAP_ALIGNMENT: u64 = 64;

/// A part of a tensor, and its address in shared memory.
struct Transfer<'m> {
    map: &'m Map,
    starts: Vec<Rows>,
    lane: usize,
    shared: u64,
}

/// Performs an access: the map is in `a`, shared memory in `b`, the mbarrier object in `e`, and the
/// destination blocks in `d`.
pub(crate) fn run(unit: &mut Unit<'_>, op: &Op) -> Control {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].tensors[op.table_index()];
    for lane in Lanes(unit.active) {
        if let Err(trap) = perform(unit, op, access, lane) {
            return unit.fault(trap);
        }
    }
    Control::Next
}

fn illegal_instruction(reason: &'static str, lane: usize) -> Trap {
    Trap::new(ReportKind::IllegalInstruction(reason), lane)
}

fn perform(unit: &mut Unit<'_>, op: &Op, access: &TensorAccess, lane: usize) -> Result<(), Trap> {
    let words = read_map(unit, op, lane)?;
    let map = Map::read(&words).map_err(|reason| illegal_instruction(reason, lane))?;
    let starts =
        starts(unit, access, &map, lane).map_err(|reason| illegal_instruction(reason, lane))?;
    // A prefetch has no shared memory.
    if access.direction == Direction::Prefetch {
        return Ok(());
    }
    let shared = unit.frame.row::<u64>(op.b)[lane];
    let bytes = map.element.bytes();
    let transfer = Transfer {
        map: &map,
        starts,
        lane,
        shared,
    };
    match access.direction {
        Direction::Prefetch => Ok(()),
        Direction::Load => load(unit, op, access, &transfer),
        Direction::Reduce(operation) => {
            let Some(change) = tensor_change(operation, map.element) else {
                let reason = "a reduction that the tensor's type does not support";
                return Err(illegal_instruction(reason, lane));
            };
            transfer.for_each_element(unit, |unit, location, source| {
                let new = read_bytes(unit, Space::Shared, lane, source, bytes)?;
                update(unit, location, change, new)
            })
        }
        Direction::Store => transfer.for_each_element(unit, |unit, location, source| {
            let value = read_bytes(unit, Space::Shared, lane, source, bytes)?;
            write_bytes(unit, location, value)
        }),
    }
}

fn read_map(unit: &mut Unit<'_>, op: &Op, lane: usize) -> Result<[u64; 16], Trap> {
    let address = unit.frame.row::<u64>(op.a)[lane];
    check_alignment(address, MAP_ALIGNMENT, lane, AccessMode::Read)?;
    let mut words = [0; 16];
    for (word, offset) in words.iter_mut().zip((0..).step_by(8)) {
        *word = read_at(unit, Space::Generic, lane, address.wrapping_add(offset))?;
    }
    Ok(words)
}

/// Returns the parts that a lane's access transfers: one, or four of one row each.
fn starts(
    unit: &Unit<'_>,
    access: &TensorAccess,
    map: &Map,
    lane: usize,
) -> Result<Vec<Rows>, &'static str> {
    let are_pixels = matches!(map.part, Part::Pixels { .. });
    if map.rank != access.rank {
        return Err("the rank of the tensor map differs from that of the instruction");
    }
    if are_pixels != (access.mode == Mode::Pixels) {
        return Err(
            "the mode of the tensor map differs from that of the instruction (tiled, im2col)",
        );
    }
    let coordinates: Vec<i64> = access
        .coordinates
        .iter()
        .map(|row| unit.frame.row::<u32>(*row)[lane].cast_signed().into())
        .collect();
    // Shared memory takes whole granules, and those of the tensor are aligned.
    let first_byte = coordinates[0] * map.element.bytes().cast_signed();
    if map.slice.is_none() && first_byte % GRANULE.cast_signed() != 0 {
        return Err("the first coordinate is not a multiple of 16 bytes");
    }
    let writes = matches!(access.direction, Direction::Store | Direction::Reduce(_));
    if writes && coordinates.iter().any(|coordinate| *coordinate < 0) {
        return Err("a write to a tensor has a negative coordinate");
    }
    let offsets: Vec<i64> = access
        .offsets
        .iter()
        .map(|row| i64::from(unit.frame.row::<u32>(*row)[lane] & 0xffff))
        .collect();
    if access.mode == Mode::FourRows {
        return Ok(coordinates[1..]
            .iter()
            .map(|row| Rows::new(map, padded(&[coordinates[0], *row]), &offsets))
            .collect());
    }
    let rows = Rows::new(map, padded(&coordinates), &offsets);
    if are_pixels && !rows.begins_inside() {
        return Err("the first pixel is outside the corners of the tensor map");
    }
    if writes && map.has_corners_outside() {
        return Err("a write to a tensor has corners outside the tensor");
    }
    Ok(vec![rows])
}

/// Returns coordinates with zeros for the missing dimensions.
fn padded(coordinates: &[i64]) -> Coordinates {
    std::array::from_fn(|dimension| coordinates.get(dimension).copied().unwrap_or(0))
}

/// Writes a part to each destination block, and completes its bytes on the mbarrier objects.
fn load(
    unit: &mut Unit<'_>,
    op: &Op,
    access: &TensorAccess,
    transfer: &Transfer<'_>,
) -> Result<(), Trap> {
    let lane = transfer.lane;
    let to = transfer.shared;
    let barrier = unit.frame.row::<u64>(op.e)[lane];
    let targets: Vec<(u64, u64)> = if op.d == NO_REGISTER {
        vec![(to, barrier)]
    } else {
        let parity = block_rank(barrier, unit.block.rank) & 1;
        Lanes(unit.frame.row::<u32>(op.d)[lane] & 0xffff)
            .map(|rank| {
                let rank = rank as u32;
                let barrier_rank = if access.is_paired {
                    rank & !1 | parity
                } else {
                    rank
                };
                (address_in(to, rank), address_in(barrier, barrier_rank))
            })
            .collect()
    };
    for (to, barrier) in targets {
        Transfer {
            starts: transfer.starts.clone(),
            shared: to,
            ..*transfer
        }
        .load(unit)?;
        let bytes = transfer.rows() * transfer.map.row();
        update_at(unit, Space::Shared, lane, barrier, |bits| {
            Mbarrier::from_bits(bits).complete(bytes as u32).bits()
        })?;
    }
    Ok(())
}

impl Transfer<'_> {
    fn rows(&self) -> u64 {
        self.starts.iter().map(Rows::remaining).sum()
    }

    fn load(&self, unit: &mut Unit<'_>) -> Result<(), Trap> {
        self.for_each_granule(unit, AccessMode::Write, |unit, granule, shared| {
            for offset in [0, 8] {
                let inside = granule.inside.saturating_sub(offset).min(8);
                let value = self.fetch(unit, granule.address.wrapping_add(offset), inside)?;
                let target = self.map.swizzle.apply(shared + offset);
                write_at(unit, Space::Shared, self.lane, target, value)?;
            }
            Ok(())
        })
    }

    /// Reads eight bytes of the tensor, of which the first `inside` are in bounds.
    fn fetch(&self, unit: &mut Unit<'_>, address: u64, inside: u64) -> Result<u64, Trap> {
        if inside == 8 {
            return Ok(self
                .map
                .element
                .loaded(read_at(unit, Space::Global, self.lane, address)?));
        }
        let size = self.map.element.bytes();
        let mut value = 0;
        for offset in (0..inside).step_by(size as usize) {
            let element = read_bytes(
                unit,
                Space::Global,
                self.lane,
                address.wrapping_add(offset),
                size,
            )?;
            value |= element << (8 * offset);
        }
        let beyond = u64::MAX << (8 * inside);
        Ok(self.map.element.loaded(value) & !beyond | self.map.fill & beyond)
    }

    /// Calls `act` for each element to write, with its location in the tensor and its address in
    /// shared memory. All elements of a granule that begins inside the tensor are written, even
    /// those beyond the edge.
    fn for_each_element(
        &self,
        unit: &mut Unit<'_>,
        mut act: impl FnMut(&mut Unit<'_>, Location, u64) -> Result<(), Trap>,
    ) -> Result<(), Trap> {
        let bytes = self.map.element.bytes();
        self.for_each_granule(unit, AccessMode::Read, |unit, granule, shared| {
            let written = if granule.inside == 0 { 0 } else { GRANULE };
            for offset in (0..written).step_by(bytes as usize) {
                let location = Location {
                    space: Space::Global,
                    lane: self.lane,
                    address: granule.address.wrapping_add(offset),
                    bytes,
                };
                let source = self.map.swizzle.apply((shared + offset) & !7) + offset % 8;
                act(unit, location, source)?;
            }
            Ok(())
        })
    }

    /// Calls `act` for each granule, with its address in shared memory before swizzling.
    fn for_each_granule(
        &self,
        unit: &mut Unit<'_>,
        mode: AccessMode,
        mut act: impl FnMut(&mut Unit<'_>, Granule, u64) -> Result<(), Trap>,
    ) -> Result<(), Trap> {
        let pitch = self.map.pitch();
        let granules = self.map.row() / GRANULE;
        check_alignment(self.shared, ALIGNMENT, self.lane, mode)?;
        // The check precedes all transfers, and the walk through a part of any size.
        let bytes = (self.rows().saturating_sub(1))
            .saturating_mul(pitch)
            .saturating_add(self.map.row());
        check_reach(
            unit,
            Space::Shared,
            self.lane,
            self.shared.saturating_add(bytes.max(1) - 1),
            mode,
        )?;
        let rows = self.starts.iter().flat_map(Rows::clone);
        for (row, first) in rows.zip((self.shared..).step_by(pitch as usize)) {
            for number in 0..granules {
                act(
                    unit,
                    self.map.granule(row, number),
                    first + GRANULE * number,
                )?;
            }
        }
        Ok(())
    }
}

fn write_bytes(unit: &mut Unit<'_>, location: Location, value: u64) -> Result<(), Trap> {
    let Location {
        space,
        lane,
        address,
        bytes,
    } = location;
    match bytes {
        1 => write_at(unit, space, lane, address, value as u8),
        2 => write_at(unit, space, lane, address, value as u16),
        4 => write_at(unit, space, lane, address, value as u32),
        _ => write_at(unit, space, lane, address, value),
    }
}

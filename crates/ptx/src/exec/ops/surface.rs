//! Loads, stores and reductions of surfaces.

use std::sync::Arc;

use super::handler::versions;
use super::texture::read_bytes;
use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::frame::InFile;
use crate::exec::image::{Coordinates, Element, OutOfBounds, Surface, SurfaceAccess};
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::lane_addresses::LaneAddresses;
use crate::exec::memory::{AccessMode, Segment, Word};
use crate::exec::ops::access::{update_at, write_at};
use crate::exec::space::Space;
use crate::exec::values::lane::{LANES, Lanes, lanes_where};

versions! {
    /// The handler of `suld`.
    load() = run_load []
}

#[inline(always)]
fn run_load(unit: &mut Unit<'_>, op: &Op) -> Control {
    if load_warp(unit, op).is_some() {
        Control::Next
    } else {
        load_lanes(unit, op)
    }
}

/// Reads a surface for all lanes. Returns `None`, with nothing read, if it is not the same for all,
/// or if a lane's access traps.
#[inline(always)]
fn load_warp(unit: &mut Unit<'_>, op: &Op) -> Option<()> {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].surfaces[op.table_index()];
    let handles = unit.frame.row::<u64>(op.a);
    let handle = handles[unit.leader()];
    let others = lanes_where(|lane| handles[lane] != handle) & unit.active;
    if others != 0 || program.checking.uninitialized {
        return None;
    }
    let surface = unit.objects.surface(unit.launch.runtime, handle)?;
    let Coordinates {
        geometry,
        layer,
        axes,
    } = access.coordinates;
    let bytes = access.bytes * access.registers.len() as u64;
    let (mut addresses, inside) = surface.warp_addresses(
        geometry,
        unit.frame.row(layer),
        axes.map(|row| unit.frame.row(row)),
        bytes,
        access.out_of_bounds,
    );
    if access.out_of_bounds == OutOfBounds::Trap && unit.active & !inside != 0 {
        return None;
    }
    let segment = unit
        .cache
        .segment(unit.launch.memory, surface.image.base, AccessMode::Read)?;
    // If the last byte and the first part are in the segment, all parts are. They are checked
    // before anything is read.
    LaneAddresses::<u8>::new(&segment, &addresses.map(|address| address + bytes - 1))?;
    for (part, &row) in access.registers.iter().enumerate() {
        if part > 0 {
            for address in &mut addresses {
                *address += access.bytes;
            }
        }
        match access.bytes {
            1 => load_part::<u8, u32>(unit, &segment, &addresses, inside, row)?,
            2 => load_part::<u16, u32>(unit, &segment, &addresses, inside, row)?,
            4 => load_part::<u32, u32>(unit, &segment, &addresses, inside, row)?,
            _ => load_part::<u64, u64>(unit, &segment, &addresses, inside, row)?,
        }
    }
    Some(())
}

/// Loads one register of all active lanes; zeros for those that are not `inside`.
#[inline(always)]
fn load_part<T: Word, R: InFile>(
    unit: &mut Unit<'_>,
    segment: &Segment,
    addresses: &[u64; LANES],
    inside: u32,
    row: u32,
) -> Option<()> {
    let lanes = LaneAddresses::<T>::new(segment, addresses)?;
    let mut values = [R::default(); LANES];
    for (lane, value) in values.iter_mut().enumerate() {
        *value = R::truncate(lanes.load(lane).extend());
    }
    let target = unit.frame.row_mut::<R>(row);
    target.merge(&values, unit.active & inside);
    target.merge(&[R::default(); LANES], unit.active & !inside);
    Some(())
}

/// Reads surfaces lane by lane.
#[inline(never)]
fn load_lanes(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, location| {
        for (index, row) in (0..).zip(&access.registers) {
            let value = match &location {
                Some(location) => {
                    let address = location.address + index * access.bytes;
                    read_bytes(unit, lane, address, access.bytes)?
                }
                None => 0,
            };
            if access.bytes == 8 {
                unit.frame.row_mut::<u64>(*row).0[lane] = value;
            } else {
                unit.frame.row_mut::<u32>(*row).0[lane] = value as u32;
            }
        }
        Ok(())
    })
}

pub(crate) fn run_store(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, location| {
        let Some(location) = location else {
            return Ok(());
        };
        for (index, row) in (0..).zip(&access.registers) {
            let value = value(unit, access, lane, *row);
            let address = location.address + index * access.bytes;
            write_bytes(unit, lane, address, access.bytes, value)?;
        }
        Ok(())
    })
}

/// Converts the registers to the element's format, and writes them. Channels without a register are
/// undefined in PTX; here they keep their values.
pub(crate) fn run_store_formatted(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, location| {
        let Some(Location { address, element }) = location else {
            return Ok(());
        };
        let bytes = element.channel.bytes();
        for (index, row) in (0..u64::from(element.channels)).zip(&access.registers) {
            let bits = element.channel.stored(unit.frame.row::<u32>(*row)[lane]);
            write_bytes(unit, lane, address + index * bytes, bytes, bits.into())?;
        }
        Ok(())
    })
}

/// Writes 1, 2, 4 or 8 bytes of device memory.
fn write_bytes(
    unit: &mut Unit<'_>,
    lane: usize,
    address: u64,
    bytes: u64,
    value: u64,
) -> Result<(), Trap> {
    match bytes {
        1 => write_at(unit, Space::Global, lane, address, value as u8),
        2 => write_at(unit, Space::Global, lane, address, value as u16),
        4 => write_at(unit, Space::Global, lane, address, value as u32),
        _ => write_at(unit, Space::Global, lane, address, value),
    }
}

pub(crate) fn run_reduce(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, location| {
        let (Some(location), Some(change), [row]) =
            (location, access.change, &access.registers[..])
        else {
            return Ok(());
        };
        let Location { address, element } = location;
        let new = value(unit, access, lane, *row);
        let change = change[usize::from(element.channel.is_signed())];
        if access.bytes == 8 {
            update_at::<u64>(unit, Space::Global, lane, address, |old| change(old, new))?;
        } else {
            update_at::<u32>(unit, Space::Global, lane, address, |old| {
                change(old.into(), new) as u32
            })?;
        }
        Ok(())
    })
}

/// Returns a lane's value in a row of an access.
#[inline]
fn value(unit: &Unit<'_>, access: &SurfaceAccess, lane: usize, row: u32) -> u64 {
    if access.bytes == 8 {
        unit.frame.row::<u64>(row)[lane]
    } else {
        unit.frame.row::<u32>(row)[lane].into()
    }
}

/// Performs a surface access for each active lane. Lanes with coordinates beyond the edges are
/// skipped.
#[inline]
fn each_lane(
    unit: &mut Unit<'_>,
    op: &Op,
    mut act: impl FnMut(&mut Unit<'_>, &SurfaceAccess, usize, Option<Location>) -> Result<(), Trap>,
) -> Control {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].surfaces[op.table_index()];
    let mut object: Option<(u64, Arc<Surface>)> = None;
    for lane in Lanes(unit.active) {
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let surface = match &object {
            Some((last, surface)) if *last == handle => surface,
            _ => match unit.objects.surface(unit.launch.runtime, handle) {
                Some(surface) => &object.insert((handle, surface)).1,
                None => return unit.fault(Trap::new(ReportKind::IllegalAddress, lane)),
            },
        };
        let result = locate(unit, access, lane, surface)
            .and_then(|location| act(unit, access, lane, location));
        if let Err(trap) = result {
            return unit.fault(trap);
        }
    }
    Control::Next
}

/// The address of an access, and the format of the element there.
struct Location {
    address: u64,
    element: Element,
}

/// Resolves a lane's access. Returns `None` if it is skipped.
#[inline]
fn locate(
    unit: &Unit<'_>,
    access: &SurfaceAccess,
    lane: usize,
    surface: &Surface,
) -> Result<Option<Location>, Trap> {
    let Coordinates {
        geometry,
        layer,
        axes,
    } = access.coordinates;
    let layer = unit.frame.row::<u32>(layer)[lane];
    let mut coordinates = axes.map(|row| unit.frame.row::<u32>(row)[lane]);
    let element = surface.element;
    let mut bytes = access.bytes * access.registers.len() as u64;
    if access.formatted {
        bytes = element.bytes();
        coordinates[0] = coordinates[0]
            .cast_signed()
            .saturating_mul(bytes as i32)
            .cast_unsigned();
    }
    let address = surface.address(geometry, layer, coordinates, bytes, access.out_of_bounds);
    if address.is_none() && access.out_of_bounds == OutOfBounds::Trap {
        return Err(Trap::new(ReportKind::Trap, lane));
    }
    Ok(address.map(|address| Location { address, element }))
}

//! Loads, stores and reductions of surfaces.

use std::sync::Arc;

use super::access::{update_at, write_at};
use super::frame::InFile;
use super::handler::versions;
use super::image::{Beyond, Element, Surface, SurfaceAccess};
use super::lane::{LANES, Lanes, lanes_where};
use super::lane_addresses::LaneAddresses;
use super::memory::{Segment, Word};
use super::op::{Control, Handler, Op, Space};
use super::report::{ReportKind, Trap};
use super::texture::read_bytes;
use super::unit::Unit;

versions! {
    /// The handler of `suld`.
    load() = run_load []
}

#[inline(always)]
fn run_load(unit: &mut Unit<'_>, op: &Op) -> Control {
    if load_together(unit, op).is_some() {
        Control::Next
    } else {
        load_one_by_one(unit, op)
    }
}

/// Reads a surface for all lanes. Returns `None`, with nothing read, if it is not the same for all, or if a lane's access traps.
#[inline(always)]
fn load_together(unit: &mut Unit<'_>, op: &Op) -> Option<()> {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].surfaces[op.imm as usize];
    let handles = unit.frame.row::<u64>(op.a);
    let handle = handles[unit.leader()];
    let others = lanes_where(|lane| handles[lane] != handle) & unit.active;
    if others != 0 || program.checking.uninitialized {
        return None;
    }
    let surface = unit.objects.surface(unit.launch.runtime, handle)?;
    let words = |row: u32| unit.frame.row::<u32>(row);
    let (layers, at) = (words(access.spot.layer), access.spot.at.map(words));
    let bytes = access.bytes * access.registers.len() as u64;
    let clamps = access.beyond == Beyond::Clamp;
    let (mut addresses, inside) = surface.places(access.spot.geometry, layers, at, bytes, clamps);
    if access.beyond == Beyond::Trap && unit.active & !inside != 0 {
        return None;
    }
    let segment = unit
        .cache
        .segment(unit.launch.memory, surface.image.base, false)?;
    // If the last byte and the first part are in the segment, all parts are. They are checked before anything is read.
    LaneAddresses::<u8>::new(&segment, &addresses.map(|address| address + bytes - 1))?;
    for (part, &row) in access.registers.iter().enumerate() {
        if part > 0 {
            addresses
                .iter_mut()
                .for_each(|address| *address += access.bytes);
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
    let places = LaneAddresses::<T>::new(segment, addresses)?;
    let mut values = [R::default(); LANES];
    for (lane, value) in values.iter_mut().enumerate() {
        *value = R::truncate(places.load(lane).extend());
    }
    let target = unit.frame.row_mut::<R>(row);
    target.merge(&values, unit.active & inside);
    target.merge(&[R::default(); LANES], unit.active & !inside);
    Some(())
}

/// Reads surfaces lane by lane.
#[inline(never)]
fn load_one_by_one(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, place| {
        let place = place.map(|place| place.address);
        for (index, row) in (0..).zip(&access.registers) {
            let value = match place {
                Some(place) => read_bytes(unit, lane, place + index * access.bytes, access.bytes)?,
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
    each_lane(unit, op, |unit, access, lane, place| {
        let Some(place) = place else { return Ok(()) };
        for (index, row) in (0..).zip(&access.registers) {
            let value = value(unit, access, lane, *row);
            write_bytes(
                unit,
                lane,
                place.address + index * access.bytes,
                access.bytes,
                value,
            )?;
        }
        Ok(())
    })
}

/// Converts the registers to the element's format, and writes them. Channels without a register are undefined in PTX; here they keep their
/// values.
pub(crate) fn run_store_formatted(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, place| {
        let Some(Place { address, element }) = place else {
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
    each_lane(unit, op, |unit, access, lane, place| {
        let (Some(place), Some(change), [row]) = (place, access.change, &access.registers[..])
        else {
            return Ok(());
        };
        let new = value(unit, access, lane, *row);
        let change = change[usize::from(place.element.channel.is_signed())];
        if access.bytes == 8 {
            return update_at::<u64>(unit, Space::Global, lane, place.address, |old| {
                change(old, new)
            })
            .map(|_| ());
        }
        update_at::<u32>(unit, Space::Global, lane, place.address, |old| {
            change(old.into(), new) as u32
        })
        .map(|_| ())
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

/// Performs a surface access for each active lane. Lanes with coordinates beyond the edges are skipped.
#[inline]
fn each_lane(
    unit: &mut Unit<'_>,
    op: &Op,
    mut act: impl FnMut(&mut Unit<'_>, &SurfaceAccess, usize, Option<Place>) -> Result<(), Trap>,
) -> Control {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].surfaces[op.imm as usize];
    let mut object: Option<(u64, Arc<Surface>)> = None;
    for lane in Lanes(unit.active) {
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let surface = match &object {
            Some((of, surface)) if *of == handle => surface,
            _ => match unit.objects.surface(unit.launch.runtime, handle) {
                Some(surface) => &object.insert((handle, surface)).1,
                None => return unit.fault(Trap::new(ReportKind::IllegalAddress, lane)),
            },
        };
        let done =
            place(unit, access, lane, surface).and_then(|place| act(unit, access, lane, place));
        if let Err(trap) = done {
            return unit.fault(trap);
        }
    }
    Control::Next
}

/// The address of an access, and the value in memory.
struct Place {
    address: u64,
    element: Element,
}

#[inline]
fn place(
    unit: &Unit<'_>,
    access: &SurfaceAccess,
    lane: usize,
    surface: &Surface,
) -> Result<Option<Place>, Trap> {
    let word = |row: u32| unit.frame.row::<u32>(row)[lane];
    let (layer, mut at, element) = (
        word(access.spot.layer),
        access.spot.at.map(word),
        surface.element,
    );
    let mut bytes = access.bytes * access.registers.len() as u64;
    if access.formatted {
        bytes = element.bytes();
        at[0] = at[0]
            .cast_signed()
            .saturating_mul(bytes as i32)
            .cast_unsigned();
    }
    match surface.place(access.spot.geometry, (layer, at), bytes, access.beyond) {
        None if access.beyond == Beyond::Trap => Err(Trap::new(ReportKind::Trap, lane)),
        place => Ok(place.map(|address| Place { address, element })),
    }
}

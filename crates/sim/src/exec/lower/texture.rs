//! `tex` and `tld4`: reading textures.

mod operands;
mod query;

use std::sync::Arc;

use self::operands::{Operands, has_samples};
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::access::read_at;
use crate::exec::handler::versions;
use crate::exec::image::{Channels, Detail, Geometry, Offset, Places, Point, Texel, Texture, TextureAccess, Together};
use crate::exec::lane::{Lanes, lanes_where};
use crate::exec::memory::HostBytes;
use crate::exec::op::{Control, Handler, Op, Space};
use crate::exec::report::{ReportKind, Trap};
use crate::exec::unit::Unit;
use crate::ptx::{Instruction, Keyword, Modifier, ScalarType, Tensor, Texturing};

/// The bits of an offset that `tex` looks at.
const OFFSET_BITS: u32 = 4;
/// The bits of an offset that `tld4` looks at.
const GATHERED_OFFSET_BITS: u32 = 6;

impl Lowerer<'_> {
    /// `tex`.
    pub(super) fn texture(&mut self, instruction: &Instruction) -> Lowered {
        let operands = Operands::of(instruction)?;
        let kind = instruction.types().nth(1).ok_or_else(|| Refusal::form(instruction))?;
        let geometry = geometry(instruction)?;
        let (detail, rest) = self.detail(instruction, operands.rest, kind)?;
        let offset = self.trailing(instruction, rest, kind)?;
        let places = match (kind, detail) {
            _ if has_samples(instruction) && (kind, geometry.is_cube()) != (ScalarType::S32, false) => {
                return Err(Refusal::scalar(instruction, kind));
            }
            (ScalarType::F32, _) => Places::Between,
            (ScalarType::S32, _) if geometry.is_cube() => return Err(Refusal::scalar(instruction, kind)),
            (ScalarType::S32, Detail::Level(_)) => Places::NearestElements,
            (ScalarType::S32, Detail::Gradient(_)) if geometry == Geometry::Line => Places::Nowhere,
            // Hardware takes the bits of the whole numbers for those of numbers with fractions.
            (ScalarType::S32, Detail::Gradient(_)) => Places::Between,
            (ScalarType::S32, _) => Places::Elements,
            _ => return Err(Refusal::scalar(instruction, kind)),
        };
        let offset = offset.map(|steps| Offset { steps, bits: OFFSET_BITS });
        self.access_texture(instruction, &operands, (places, detail), offset)
    }

    /// `tld4`.
    pub(super) fn gather_texture(&mut self, instruction: &Instruction) -> Lowered {
        let operands = Operands::of(instruction)?;
        let channels = [Keyword::R, Keyword::G, Keyword::B, Keyword::A];
        let channel = channels.into_iter().position(|channel| instruction.has(Modifier::Keyword(channel)));
        let channel = channel.ok_or_else(|| Refusal::form(instruction))?;
        let types: Vec<ScalarType> = instruction.types().collect();
        let is_gathered = match geometry(instruction)? {
            Geometry::Plane | Geometry::PlaneOfLayer | Geometry::Cube | Geometry::CubeOfLayer => true,
            Geometry::Line | Geometry::LineOfLayer | Geometry::Volume => false,
        };
        let [ScalarType::U32 | ScalarType::S32 | ScalarType::F32, ScalarType::F32] = types[..] else {
            return Err(Refusal::form(instruction));
        };
        if !is_gathered || has_samples(instruction) {
            return Err(Refusal::form(instruction));
        }
        let offset = self.trailing(instruction, operands.rest, ScalarType::F32)?;
        let offset = offset.map(|steps| Offset { steps, bits: GATHERED_OFFSET_BITS });
        self.access_texture(instruction, &operands, (Places::Between, Detail::Gather(channel)), offset)
    }

    /// Hardware reads a texture as its own object says where another one is named as its sampler, unless the module has texturing modes
    /// apart.
    fn ignore_sampler(&mut self, tensor: &Tensor) -> Lowered {
        match tensor.sampler {
            Some(_) if self.context.module.target.texturing == Texturing::Independent => {
                Err(Refusal("samplers apart from their textures are not supported".into()))
            }
            Some(sampler) => self.address_row(sampler).map(|_| ()),
            None => Ok(()),
        }
    }

    fn access_texture(
        &mut self,
        instruction: &Instruction,
        operands: &Operands<'_>,
        (places, detail): (Places, Detail),
        offset: Option<Offset>,
    ) -> Lowered {
        let scalar = instruction.types().next().ok_or_else(|| Refusal::form(instruction))?;
        let sample = match operands.tensor.coordinates.first() {
            Some(sample) if has_samples(instruction) => Some(self.source(sample, ScalarType::B32)?),
            _ => None,
        };
        let spot = self.coordinates(instruction, operands.tensor)?;
        let a = self.address_row(operands.tensor.handle)?;
        self.ignore_sampler(operands.tensor)?;
        let slots = self.slots_of(operands.elements, scalar)?;
        let result = match (scalar, slots.len()) {
            (ScalarType::U32 | ScalarType::S32 | ScalarType::F32, 4) => Channels::Words,
            (ScalarType::F16, 4) => Channels::Halves,
            (ScalarType::F16x2, 2) => Channels::Pairs,
            _ => return Err(Refusal::form(instruction)),
        };
        let destinations = slots.into_iter().map(|slot| self.destination_slot(slot, scalar)).collect::<Lowered<_>>()?;
        let resident = operands.resident.map(|register| self.predicate_register(register)).transpose()?;
        let access = TextureAccess { spot, destinations, result, places, detail, offset, sample, resident };
        self.out.textures.push(access);
        let number = self.out.textures.len() as u64 - 1;
        self.push(Op { a, ..Op::new(texture_handler()) }).imm = number;
        Ok(())
    }
}

pub(super) fn geometry(instruction: &Instruction) -> Lowered<Geometry> {
    let geometries = [
        (Keyword::Dimension1d, Geometry::Line),
        (Keyword::Dimension2d, Geometry::Plane),
        (Keyword::Dimension2dms, Geometry::Plane),
        (Keyword::Dimension3d, Geometry::Volume),
        (Keyword::A1d, Geometry::LineOfLayer),
        (Keyword::A2d, Geometry::PlaneOfLayer),
        (Keyword::A2dms, Geometry::PlaneOfLayer),
        (Keyword::Cube, Geometry::Cube),
        (Keyword::Acube, Geometry::CubeOfLayer),
    ];
    let found = geometries.into_iter().find(|(keyword, _)| instruction.has(Modifier::Keyword(*keyword)));
    found.map(|(_, geometry)| geometry).ok_or_else(|| Refusal::form(instruction))
}

versions! {
    /// The handler of `tex` and `tld4`.
    texture_handler() = run_texture []
}

#[inline(always)]
fn run_texture(unit: &mut Unit<'_>, op: &Op) -> Control {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].textures[op.imm as usize];
    match read_together(unit, access, op) {
        Some(Ok(())) => Control::Next,
        Some(Err(trap)) => unit.fault(trap),
        None => read_one_by_one(unit, access, op),
    }
}

/// Reads a texture for all lanes, if it is one and can be read so.
#[inline(always)]
fn read_together(unit: &mut Unit<'_>, access: &TextureAccess, op: &Op) -> Option<Result<(), Trap>> {
    let TextureAccess { spot, places: Places::Between, detail: Detail::Base, offset: None, sample: None, .. } = access
    else {
        return None;
    };
    let handles = unit.frame.row::<u64>(op.a);
    let handle = handles[unit.leader()];
    let others = lanes_where(|lane| handles[lane] != handle) & unit.active;
    if others != 0 || access.result != Channels::Words || unit.launch.program.checking.unwritten {
        return None;
    }
    let texture = unit.objects.texture(unit.launch.runtime, handle)?;
    if !texture.can_be_read_together(spot.geometry) {
        return None;
    }
    let segment = unit.cache.segment(unit.launch.memory, texture.levels[0].base, false)?;
    let [across, down] = [spot.at[0], spot.at[1]].map(|row| *unit.frame.row::<u32>(row));
    let (active, coordinates) = (unit.active, [&across, &down]);
    let read = |lane, address: u64, bytes: u64| match segment.place(address, bytes) {
        Some(place) if address & (bytes - 1) == 0 => Ok(load(place, bytes)),
        _ => read_bytes(unit, lane, address, bytes),
    };
    let texels = match texture.sample_together(spot.geometry, Together { coordinates, active, read }) {
        Ok(texels) => texels,
        Err(trap) => return Some(Err(trap)),
    };
    for (row, values) in access.destinations.iter().zip(&texels) {
        unit.frame.row_mut::<u32>(*row).merge(values, active);
    }
    if let Some(predicate) = access.resident {
        unit.frame.set_predicate(predicate, active, active);
    }
    Some(Ok(()))
}

/// 1, 2, 4 or 8 bytes, which are aligned.
#[inline(always)]
fn load(place: HostBytes, bytes: u64) -> u64 {
    match bytes {
        1 => place.load::<u8>(0).into(),
        2 => place.load::<u16>(0).into(),
        4 => place.load::<u32>(0).into(),
        _ => place.load::<u64>(0),
    }
}

/// Reads textures lane by lane.
#[inline(never)]
fn read_one_by_one(unit: &mut Unit<'_>, access: &TextureAccess, op: &Op) -> Control {
    let mut residents = 0;
    let mut object: Option<(u64, Arc<Texture>)> = None;
    for lane in Lanes(unit.active) {
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let texture = match &object {
            Some((of, texture)) if *of == handle => texture,
            _ => match unit.objects.texture(unit.launch.runtime, handle) {
                Some(texture) => &object.insert((handle, texture)).1,
                None => return unit.fault(Trap::new(ReportKind::IllegalAddress, lane)),
            },
        };
        match read_texture(unit, access, lane, texture) {
            Ok((texel, is_resident)) => {
                residents |= u32::from(is_resident) << lane;
                for (row, value) in access.destinations.iter().zip(access.result.of(texel)) {
                    unit.frame.row_mut::<u32>(*row).0[lane] = value;
                }
            }
            Err(trap) => return unit.fault(trap),
        }
    }
    if let Some(predicate) = access.resident {
        unit.frame.set_predicate(predicate, residents, unit.active);
    }
    Control::Next
}

/// What a lane reads, and whether all of it has memory.
#[inline]
fn read_texture(
    unit: &mut Unit<'_>,
    access: &TextureAccess,
    lane: usize,
    texture: &Texture,
) -> Result<(Texel, bool), Trap> {
    let word = |row: u32| unit.frame.row::<u32>(row)[lane];
    if access.sample.is_some_and(|row| word(row) != 0) {
        return Ok(([0; 4], true));
    }
    let spot = &access.spot;
    let point = Point {
        layer: word(spot.layer),
        coordinates: spot.at.map(word),
        places: access.places,
        level: level(texture, access, &word),
        offset: access.offset.map_or([0; 3], |offset| offset.steps.map(|row| offset.step(word(row)))),
    };
    let mut is_resident = true;
    let mut read = |address, bytes| {
        if texture.has_memory(address) {
            return read_bytes(unit, lane, address, bytes);
        }
        is_resident = false;
        Ok(0)
    };
    let texel = match access.detail {
        Detail::Gather(channel) => texture.gather(spot.geometry, &point, channel, &mut read),
        _ => texture.sample(spot.geometry, &point, &mut read),
    }?;
    Ok((texel, is_resident))
}

/// The level of detail that an instruction asks for.
#[inline]
fn level(texture: &Texture, access: &TextureAccess, word: &impl Fn(u32) -> u32) -> f32 {
    match access.detail {
        Detail::Base | Detail::Gather(_) => 0.0,
        Detail::Level(row) if access.places == Places::NearestElements => word(row).cast_signed() as f32,
        Detail::Level(row) => f32::from_bits(word(row)),
        Detail::Gradient(steps) => texture.level_of(steps.map(|step| step.map(|row| f32::from_bits(word(row))))),
    }
}

/// Reads 1, 2, 4 or 8 bytes of device memory.
#[inline]
pub(super) fn read_bytes(unit: &mut Unit<'_>, lane: usize, address: u64, bytes: u64) -> Result<u64, Trap> {
    match bytes {
        1 => read_at::<u8>(unit, Space::Global, lane, address).map(u64::from),
        2 => read_at::<u16>(unit, Space::Global, lane, address).map(u64::from),
        4 => read_at::<u32>(unit, Space::Global, lane, address).map(u64::from),
        _ => read_at::<u64>(unit, Space::Global, lane, address),
    }
}

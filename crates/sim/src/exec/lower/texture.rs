//! `tex`, `tld4`, `txq` and `suq`: reading textures, and asking textures and surfaces.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::access::read_at;
use crate::exec::fault::{FaultKind, Trap};
use crate::exec::image::{Channels, Coordinates, Detail, Geometry, Places, Point, Query, Texture, TextureAccess};
use crate::exec::lane::Lanes;
use crate::exec::op::{Control, Op, Space};
use crate::exec::unit::Unit;
use crate::ptx::{Instruction, Keyword, Modifier, Opcode, Operand, ScalarType, Tensor};

/// The row of a level that is not named.
const NO_LEVEL: u32 = u32::MAX;

impl Lowerer<'_> {
    /// `tex`.
    pub(super) fn texture(&mut self, instruction: &Instruction) -> Lowered {
        let has = |keyword| instruction.has(Modifier::Keyword(keyword));
        let (destination, tensor, rest) = texture_operands(instruction)?;
        let kind = instruction.types().nth(1).ok_or_else(|| Refusal::form(instruction))?;
        let geometry = geometry(instruction)?;
        let detail = match rest {
            [level] if has(Keyword::Level) => Detail::Level(self.source(level, kind)?),
            [across, down] if has(Keyword::Grad) => {
                Detail::Gradient([self.steps(across, geometry)?, self.steps(down, geometry)?])
            }
            [] if !has(Keyword::Level) && !has(Keyword::Grad) => Detail::Base,
            _ => return Err(Refusal::form(instruction)),
        };
        let places = match (kind, detail) {
            (ScalarType::F32, _) => Places::Between,
            (ScalarType::S32, _) if geometry.is_cube() => return Err(Refusal::scalar(instruction, kind)),
            (ScalarType::S32, Detail::Level(_)) => Places::NearestElements,
            (ScalarType::S32, Detail::Gradient(_)) if geometry == Geometry::Line => Places::Nowhere,
            // Hardware takes the bits of the whole numbers for those of numbers with fractions.
            (ScalarType::S32, Detail::Gradient(_)) => Places::Between,
            (ScalarType::S32, _) => Places::Elements,
            _ => return Err(Refusal::scalar(instruction, kind)),
        };
        self.access_texture(instruction, destination, tensor, (places, detail))
    }

    /// `tld4`.
    pub(super) fn gather_texture(&mut self, instruction: &Instruction) -> Lowered {
        let (destination, tensor, rest) = texture_operands(instruction)?;
        let channels = [Keyword::R, Keyword::G, Keyword::B, Keyword::A];
        let channel = channels.into_iter().position(|channel| instruction.has(Modifier::Keyword(channel)));
        let channel = channel.filter(|_| rest.is_empty()).ok_or_else(|| Refusal::form(instruction))?;
        let types: Vec<ScalarType> = instruction.types().collect();
        let is_gathered = match geometry(instruction)? {
            Geometry::Plane | Geometry::PlaneOfLayer | Geometry::Cube | Geometry::CubeOfLayer => true,
            Geometry::Line | Geometry::LineOfLayer | Geometry::Volume => false,
        };
        let [ScalarType::U32 | ScalarType::S32 | ScalarType::F32, ScalarType::F32] = types[..] else {
            return Err(Refusal::form(instruction));
        };
        if !is_gathered {
            return Err(Refusal::form(instruction));
        }
        self.access_texture(instruction, destination, tensor, (Places::Between, Detail::Gather(channel)))
    }

    /// `txq`, `suq`.
    pub(super) fn query_image(&mut self, instruction: &Instruction) -> Lowered {
        let [destination, Operand::Address(handle), level @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let query = query(instruction).ok_or_else(|| Refusal::form(instruction))?;
        let is_extent = matches!(query, Query::Width | Query::Height | Query::Depth);
        let a = self.address_row(*handle)?;
        let d = self.destination(destination, ScalarType::B32)?;
        let b = match level {
            [] => NO_LEVEL,
            [level] if is_extent => self.source(level, ScalarType::U32)?,
            _ => return Err(Refusal::form(instruction)),
        };
        let is_texture = instruction.opcode == Opcode::Txq;
        if !is_texture && !is_extent && query != Query::ArraySize {
            return Err(Refusal::form(instruction));
        }
        let run = if is_texture { run_texture_query } else { run_surface_query };
        self.push(Op { a, b, d, ..Op::new(run) }).imm = query as u64;
        Ok(())
    }

    fn access_texture(
        &mut self,
        instruction: &Instruction,
        destination: &Operand,
        tensor: &Tensor,
        (places, detail): (Places, Detail),
    ) -> Lowered {
        let scalar = instruction.types().next().ok_or_else(|| Refusal::form(instruction))?;
        let spot = self.coordinates(instruction, tensor)?;
        let a = self.address_row(tensor.handle)?;
        let (slots, ..) = self.elements(destination, scalar)?;
        let result = match (scalar, slots.len()) {
            (ScalarType::U32 | ScalarType::S32 | ScalarType::F32, 4) => Channels::Words,
            (ScalarType::F16, 4) => Channels::Halves,
            (ScalarType::F16x2, 2) => Channels::Pairs,
            _ => return Err(Refusal::form(instruction)),
        };
        let destinations = slots.into_iter().map(|slot| self.destination_slot(slot, scalar)).collect::<Lowered<_>>()?;
        self.out.textures.push(TextureAccess { spot, destinations, result, places, detail });
        let number = self.out.textures.len() as u64 - 1;
        self.push(Op { a, ..Op::new(run_texture) }).imm = number;
        Ok(())
    }

    /// The rows of the coordinates of an access, which the layer may come before.
    pub(super) fn coordinates(&mut self, instruction: &Instruction, tensor: &Tensor) -> Lowered<Coordinates> {
        if tensor.sampler.is_some() {
            return Err(Refusal("samplers apart from their textures are not supported".into()));
        }
        let geometry = geometry(instruction)?;
        let (layers, dimensions) = (usize::from(geometry.has_layers()), geometry.dimensions());
        let zero = self.word(0);
        let mut rows = tensor.coordinates.iter().map(|coordinate| self.source(coordinate, ScalarType::B32));
        let rows = rows.by_ref().take(layers + dimensions).collect::<Lowered<Vec<_>>>()?;
        if rows.len() != layers + dimensions {
            return Err(Refusal::operand("a coordinate for each direction"));
        }
        let layer = if layers == 1 { rows[0] } else { zero };
        let at = std::array::from_fn(|direction| rows.get(layers + direction).copied().unwrap_or(zero));
        Ok(Coordinates { geometry, layer, at })
    }

    /// The rows of a step in each direction.
    fn steps(&mut self, operand: &Operand, geometry: Geometry) -> Lowered<[u32; 3]> {
        let all = match operand {
            Operand::Vector(elements) => elements,
            single => std::slice::from_ref(single),
        };
        let mut steps = [self.word(0); 3];
        for (step, element) in steps.iter_mut().zip(all).take(geometry.dimensions()) {
            *step = self.source(element, ScalarType::F32)?;
        }
        Ok(steps)
    }
}

/// The destination, what is read, and what follows.
fn texture_operands(instruction: &Instruction) -> Lowered<(&Operand, &Tensor, &[Operand])> {
    match &instruction.operands[..] {
        [destination, Operand::Tensor(tensor), rest @ ..] => Ok((destination, tensor, rest)),
        _ => Err(Refusal::form(instruction)),
    }
}

pub(super) fn geometry(instruction: &Instruction) -> Lowered<Geometry> {
    let geometries = [
        (Keyword::Dimension1d, Geometry::Line),
        (Keyword::Dimension2d, Geometry::Plane),
        (Keyword::Dimension3d, Geometry::Volume),
        (Keyword::A1d, Geometry::LineOfLayer),
        (Keyword::A2d, Geometry::PlaneOfLayer),
        (Keyword::Cube, Geometry::Cube),
        (Keyword::Acube, Geometry::CubeOfLayer),
    ];
    let found = geometries.into_iter().find(|(keyword, _)| instruction.has(Modifier::Keyword(*keyword)));
    found.map(|(_, geometry)| geometry).ok_or_else(|| Refusal::form(instruction))
}

fn query(instruction: &Instruction) -> Option<Query> {
    let queries = [
        (Keyword::Width, Query::Width),
        (Keyword::Height, Query::Height),
        (Keyword::Depth, Query::Depth),
        (Keyword::ArraySize, Query::ArraySize),
        (Keyword::NumMipmapLevels, Query::Levels),
        (Keyword::NormalizedCoords, Query::NormalizedCoordinates),
    ];
    queries.into_iter().find(|(keyword, _)| instruction.has(Modifier::Keyword(*keyword))).map(|(_, query)| query)
}

fn run_texture(unit: &mut Unit<'_>, op: &Op) -> Control {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].textures[op.imm as usize];
    for lane in Lanes(unit.active) {
        match read_texture(unit, access, lane, unit.frame.row::<u64>(op.a)[lane]) {
            Ok(texel) => {
                for (row, value) in access.destinations.iter().zip(access.result.of(texel)) {
                    unit.frame.row_mut::<u32>(*row).0[lane] = value;
                }
            }
            Err(trap) => return unit.fault(trap),
        }
    }
    Control::Next
}

fn read_texture(unit: &mut Unit<'_>, access: &TextureAccess, lane: usize, handle: u64) -> Result<[u32; 4], Trap> {
    let missing = Trap::new(FaultKind::IllegalAddress, lane);
    let texture = unit.launch.runtime.texture(handle).ok_or(missing)?;
    let word = |row: u32| unit.frame.row::<u32>(row)[lane];
    let spot = &access.spot;
    let point = Point {
        layer: word(spot.layer),
        coordinates: spot.at.map(word),
        places: access.places,
        level: level(&texture, access, &word),
    };
    let mut read = |address, bytes| read_bytes(unit, lane, address, bytes);
    match access.detail {
        Detail::Gather(channel) => texture.gather(spot.geometry, &point, channel, &mut read),
        _ => texture.sample(spot.geometry, &point, &mut read),
    }
}

/// The level of detail that an instruction asks for.
fn level(texture: &Texture, access: &TextureAccess, word: &impl Fn(u32) -> u32) -> f32 {
    match access.detail {
        Detail::Base | Detail::Gather(_) => 0.0,
        Detail::Level(row) if access.places == Places::NearestElements => word(row).cast_signed() as f32,
        Detail::Level(row) => f32::from_bits(word(row)),
        Detail::Gradient(steps) => texture.level_of(steps.map(|step| step.map(|row| f32::from_bits(word(row))))),
    }
}

/// Reads 1, 2, 4 or 8 bytes of device memory.
pub(super) fn read_bytes(unit: &mut Unit<'_>, lane: usize, address: u64, bytes: u64) -> Result<u64, Trap> {
    match bytes {
        1 => read_at::<u8>(unit, Space::Global, lane, address).map(u64::from),
        2 => read_at::<u16>(unit, Space::Global, lane, address).map(u64::from),
        4 => read_at::<u32>(unit, Space::Global, lane, address).map(u64::from),
        _ => read_at::<u64>(unit, Space::Global, lane, address),
    }
}

fn run_texture_query(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let level = if op.b == NO_LEVEL { 0 } else { unit.frame.row::<u32>(op.b)[lane] };
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let Some(texture) = unit.launch.runtime.texture(handle) else {
            return unit.fault(Trap::new(FaultKind::IllegalAddress, lane));
        };
        unit.frame.row_mut::<u32>(op.d).0[lane] = texture.query(Query::from_number(op.imm), level);
    }
    Control::Next
}

fn run_surface_query(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let Some(surface) = unit.launch.runtime.surface(handle) else {
            return unit.fault(Trap::new(FaultKind::IllegalAddress, lane));
        };
        unit.frame.row_mut::<u32>(op.d).0[lane] = surface.query(Query::from_number(op.imm));
    }
    Control::Next
}

//! `tex` and `tld4`: texture fetches.

mod operands;
mod query;

use self::operands::{Operands, has_samples};
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::image::{Channels, CoordinateMode, Detail, Geometry, Offset, TextureAccess};
use crate::exec::machine::op::Op;
use crate::exec::ops::texture::texture_handler;
use crate::syntax::{Instruction, Keyword, ScalarType, Tensor, Texturing};

/// The number of bits of an offset that `tex` uses.
const OFFSET_BITS: u32 = 4;

/// The number of bits of an offset that `tld4` uses.
const GATHERED_OFFSET_BITS: u32 = 6;

impl Lowerer<'_> {
    /// `tex`.
    pub(super) fn texture(&mut self, instruction: &Instruction) -> Lowered {
        let operands = Operands::new(instruction)?;
        let kind = instruction
            .types()
            .nth(1)
            .ok_or_else(|| Refusal::form(instruction))?;
        let geometry = geometry(instruction)?;
        let (detail, rest) = self.detail(instruction, operands.rest, kind)?;
        let offset = self.trailing(instruction, rest, kind)?;
        let mode = match (kind, detail) {
            _ if has_samples(instruction)
                && (kind, geometry.is_cube()) != (ScalarType::S32, false) =>
            {
                return Err(Refusal::scalar(instruction, kind));
            }
            (ScalarType::F32, _) => CoordinateMode::Positions,
            (ScalarType::S32, _) if geometry.is_cube() => {
                return Err(Refusal::scalar(instruction, kind));
            }
            (ScalarType::S32, Detail::Level(_)) => CoordinateMode::NearestElements,
            (ScalarType::S32, Detail::Gradient(_)) if geometry == Geometry::Line => {
                CoordinateMode::Ignored
            }
            // Hardware reinterprets the bits of the integers as floating-point numbers.
            (ScalarType::S32, Detail::Gradient(_)) => CoordinateMode::Positions,
            (ScalarType::S32, _) => CoordinateMode::Elements,
            _ => return Err(Refusal::scalar(instruction, kind)),
        };
        let offset = offset.map(|steps| Offset {
            steps,
            bits: OFFSET_BITS,
        });
        self.access_texture(instruction, &operands, mode, detail, offset)
    }

    /// `tld4`.
    pub(super) fn gather_texture(&mut self, instruction: &Instruction) -> Lowered {
        let operands = Operands::new(instruction)?;
        let channels = [Keyword::R, Keyword::G, Keyword::B, Keyword::A];
        let channel = channels
            .into_iter()
            .position(|channel| instruction.has_keyword(channel));
        let channel = channel.ok_or_else(|| Refusal::form(instruction))?;
        let types: Vec<ScalarType> = instruction.types().collect();
        let is_gathered = match geometry(instruction)? {
            Geometry::Plane | Geometry::PlaneOfLayer | Geometry::Cube | Geometry::CubeOfLayer => {
                true
            }
            Geometry::Line | Geometry::LineOfLayer | Geometry::Volume => false,
        };
        let [
            ScalarType::U32 | ScalarType::S32 | ScalarType::F32,
            ScalarType::F32,
        ] = types[..]
        else {
            return Err(Refusal::form(instruction));
        };
        if !is_gathered || has_samples(instruction) {
            return Err(Refusal::form(instruction));
        }
        let offset = self.trailing(instruction, operands.rest, ScalarType::F32)?;
        let offset = offset.map(|steps| Offset {
            steps,
            bits: GATHERED_OFFSET_BITS,
        });
        self.access_texture(
            instruction,
            &operands,
            CoordinateMode::Positions,
            Detail::Gather(channel),
            offset,
        )
    }

    /// Accepts a sampler operand. As on hardware, the texture's own sampler is used, unless the
    /// module has independent texturing mode.
    fn ignore_sampler(&mut self, tensor: &Tensor) -> Lowered {
        match tensor.sampler {
            Some(_) if self.context.module.target_options.texturing == Texturing::Independent => {
                Err(Refusal("separate samplers are not supported".into()))
            }
            Some(sampler) => self.address_row(sampler).map(|_| ()),
            None => Ok(()),
        }
    }

    fn access_texture(
        &mut self,
        instruction: &Instruction,
        operands: &Operands<'_>,
        mode: CoordinateMode,
        detail: Detail,
        offset: Option<Offset>,
    ) -> Lowered {
        let scalar = instruction
            .types()
            .next()
            .ok_or_else(|| Refusal::form(instruction))?;
        let sample = match operands.tensor.coordinates.first() {
            Some(sample) if has_samples(instruction) => Some(self.source(sample, ScalarType::B32)?),
            _ => None,
        };
        let spot = self.coordinates(instruction, operands.tensor)?;
        let a = self.address_row(operands.tensor.handle)?;
        self.ignore_sampler(operands.tensor)?;
        let slots = self.result_slots(operands.elements, scalar)?;
        let result = match (scalar, slots.len()) {
            (ScalarType::U32 | ScalarType::S32 | ScalarType::F32, 4) => Channels::Words,
            (ScalarType::F16, 4) => Channels::Halves,
            (ScalarType::F16x2, 2) => Channels::Pairs,
            _ => return Err(Refusal::form(instruction)),
        };
        let destinations = slots
            .into_iter()
            .map(|slot| self.destination_slot(slot, scalar))
            .collect::<Lowered<_>>()?;
        let resident = operands
            .resident
            .map(|register| self.predicate_register(register))
            .transpose()?;
        let access = TextureAccess {
            coordinates: spot,
            destinations,
            result,
            mode,
            detail,
            offset,
            sample,
            resident,
        };
        self.out.textures.push(access);
        let number = self.out.textures.len() as u64 - 1;
        self.push(Op {
            a,
            ..Op::new(texture_handler())
        })
        .imm = number;
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
    geometries
        .into_iter()
        .find(|(keyword, _)| instruction.has_keyword(*keyword))
        .map(|(_, geometry)| geometry)
        .ok_or_else(|| Refusal::form(instruction))
}

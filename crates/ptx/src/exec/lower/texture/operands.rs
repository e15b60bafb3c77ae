//! The operands of `tex` and `tld4`: the results, the texture and coordinates, and optional
//! operands.

use super::geometry;
use crate::exec::image::{Coordinates, Detail, Geometry};
use crate::exec::lower::error::{Lowered, Refusal};
use crate::exec::lower::function::{Lowerer, Slot};
use crate::syntax::{Instruction, Keyword, Operand, RegisterId, ScalarType, Tensor};

/// The operands of a texture instruction.
pub(super) struct Operands<'i> {
    /// The results.
    pub(super) elements: &'i Operand,
    /// The predicate that is true if the elements have physical memory.
    pub(super) resident: Option<RegisterId>,
    pub(super) tensor: &'i Tensor,
    /// The level or gradients, the offset, and the depth comparison, if present.
    pub(super) rest: &'i [Operand],
}

impl<'i> Operands<'i> {
    pub(super) fn new(instruction: &'i Instruction) -> Lowered<Self> {
        let [elements, Operand::Tensor(tensor), rest @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let resident = if let Operand::VectorPair(_, predicate) = elements {
            Some(*predicate)
        } else {
            None
        };
        Ok(Self {
            elements,
            resident,
            tensor,
            rest,
        })
    }
}

/// Returns `true` if an instruction reads one of several samples of an element. CUDA arrays have
/// one.
pub(super) fn has_samples(instruction: &Instruction) -> bool {
    [Keyword::Dimension2dms, Keyword::A2dms]
        .into_iter()
        .any(|keyword| instruction.has_keyword(keyword))
}

impl Lowerer<'_> {
    /// Returns the level of detail of an instruction, and the remaining operands.
    pub(super) fn detail<'i>(
        &mut self,
        instruction: &Instruction,
        operands: &'i [Operand],
        kind: ScalarType,
    ) -> Lowered<(Detail, &'i [Operand])> {
        match operands {
            _ if (instruction.has_keyword(Keyword::Level)
                || instruction.has_keyword(Keyword::Grad))
                && has_samples(instruction) =>
            {
                Err(Refusal::form(instruction))
            }
            [level, rest @ ..] if instruction.has_keyword(Keyword::Level) => {
                Ok((Detail::Level(self.source(level, kind)?), rest))
            }
            [across, down, rest @ ..] if instruction.has_keyword(Keyword::Grad) => {
                let geometry = geometry(instruction)?;
                Ok((
                    Detail::Gradient([self.steps(across, geometry)?, self.steps(down, geometry)?]),
                    rest,
                ))
            }
            rest if !instruction.has_keyword(Keyword::Level)
                && !instruction.has_keyword(Keyword::Grad) =>
            {
                Ok((Detail::Base, rest))
            }
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// Returns the rows of the offset in each direction, if there is one. A depth comparison has no
    /// effect: no CUDA texture compares, and hardware ignores the operand too.
    pub(super) fn trailing(
        &mut self,
        instruction: &Instruction,
        operands: &[Operand],
        kind: ScalarType,
    ) -> Lowered<Option<[u32; 3]>> {
        let geometry = geometry(instruction)?;
        let compares = kind == ScalarType::F32 && geometry != Geometry::Volume;
        let is_line = matches!(geometry, Geometry::Line | Geometry::LineOfLayer);
        let (offset, compared) = match operands {
            [] => return Ok(None),
            [offset @ Operand::Vector(_)] => (Some(offset), None),
            [offset] if !compares && is_line => (Some(offset), None),
            [compared] if compares => (None, Some(compared)),
            [offset, compared] if compares => (Some(offset), Some(compared)),
            _ => return Err(Refusal::form(instruction)),
        };
        if matches!(compared, Some(Operand::Vector(_))) || offset.is_some() && geometry.is_cube() {
            return Err(Refusal::form(instruction));
        }
        compared
            .map(|compared| self.source(compared, ScalarType::F32))
            .transpose()?;
        offset
            .map(|offset| {
                self.offset(offset, geometry)
                    .unwrap_or_else(|| Err(Refusal::form(instruction)))
            })
            .transpose()
    }

    /// Returns the rows of an offset, or `None` if its elements are too few or not 32-bit integers.
    fn offset(&mut self, operand: &Operand, geometry: Geometry) -> Option<Lowered<[u32; 3]>> {
        let elements = match operand {
            Operand::Vector(elements) => elements,
            single if geometry.dimensions() == 1 => std::slice::from_ref(single),
            _ => return None,
        };
        let are_integers = elements.iter().all(|element| match element {
            Operand::Register(register) => {
                let scalar = self.function.registers[register.0 as usize].scalar;
                scalar.is_integer_like() && scalar.bits() == 32
            }
            Operand::Integer(_) | Operand::Element(..) => true,
            _ => false,
        });
        if !matches!(elements.len(), 1 | 2 | 4)
            || elements.len() < geometry.dimensions()
            || !are_integers
        {
            return None;
        }
        let mut steps = [self.word(0); 3];
        for (step, element) in steps.iter_mut().zip(elements).take(geometry.dimensions()) {
            match self.source(element, ScalarType::S32) {
                Ok(row) => *step = row,
                Err(refusal) => return Some(Err(refusal)),
            }
        }
        Some(Ok(steps))
    }

    /// Returns the slots of the results.
    pub(super) fn result_slots(
        &mut self,
        operand: &Operand,
        scalar: ScalarType,
    ) -> Lowered<Vec<Slot>> {
        if let Operand::VectorPair(elements, _) = operand {
            return Ok(self.elements(&Operand::Vector(elements.clone()), scalar)?.0);
        }
        Ok(self.elements(operand, scalar)?.0)
    }

    /// Returns the rows of the coordinates of an access. They may be preceded by the layer, and
    /// that by the sample number.
    pub(in crate::exec::lower) fn coordinates(
        &mut self,
        instruction: &Instruction,
        tensor: &Tensor,
    ) -> Lowered<Coordinates> {
        let geometry = geometry(instruction)?;
        let samples = usize::from(has_samples(instruction));
        let layers = usize::from(geometry.has_layers());
        let dimensions = geometry.dimensions();
        let zero = self.word(0);
        let coordinates = tensor
            .coordinates
            .iter()
            .skip(samples)
            .take(layers + dimensions);
        let rows = coordinates
            .map(|coordinate| self.source(coordinate, ScalarType::B32))
            .collect::<Lowered<Vec<_>>>()?;
        if rows.len() != layers + dimensions {
            return Err(Refusal::operand("a coordinate for each direction"));
        }
        let layer = if layers == 1 { rows[0] } else { zero };
        let axes =
            std::array::from_fn(|direction| rows.get(layers + direction).copied().unwrap_or(zero));
        Ok(Coordinates {
            geometry,
            layer,
            axes,
        })
    }

    /// Returns the rows of a gradient in each direction.
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

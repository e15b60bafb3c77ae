//! `txq` and `suq`: queries of textures and surfaces. `istypep`: tests if a handle is a reference.

use crate::exec::image::Query;
use crate::exec::lower::error::{Lowered, Refusal};
use crate::exec::lower::function::Lowerer;
use crate::exec::machine::op::Op;
use crate::exec::ops::image_query::{NO_LEVEL, run_false, run_surface_query, run_texture_query};
use crate::syntax::{Instruction, Keyword, Opcode, Operand, ScalarType};

impl Lowerer<'_> {
    /// `txq`, `suq`.
    pub(in crate::exec::lower) fn query_image(&mut self, instruction: &Instruction) -> Lowered {
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
        let run = if is_texture {
            run_texture_query
        } else {
            run_surface_query
        };
        self.push(Op {
            a,
            b,
            d,
            ..Op::new(run)
        })
        .imm = query as u64;
        Ok(())
    }

    /// `istypep`. As on hardware, the handle of an object is never a reference.
    pub(in crate::exec::lower) fn is_reference(&mut self, instruction: &Instruction) -> Lowered {
        use ScalarType::{SamplerReference, SurfaceReference, TextureReference};
        let [Operand::Register(destination), handle] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let Some(TextureReference | SamplerReference | SurfaceReference) =
            instruction.types().next()
        else {
            return Err(Refusal::form(instruction));
        };
        self.source(handle, ScalarType::B64)?;
        let d = self.predicate_register(*destination)?;
        self.push(Op {
            d,
            ..Op::new(run_false)
        });
        Ok(())
    }
}

/// Returns the quantity that an instruction queries.
fn query(instruction: &Instruction) -> Option<Query> {
    let queries = [
        (Keyword::Width, Query::Width),
        (Keyword::Height, Query::Height),
        (Keyword::Depth, Query::Depth),
        (Keyword::ArraySize, Query::ArraySize),
        (Keyword::NumMipmapLevels, Query::Levels),
        (Keyword::NormalizedCoords, Query::NormalizedCoordinates),
    ];
    queries
        .into_iter()
        .find(|(keyword, _)| instruction.has_keyword(*keyword))
        .map(|(_, query)| query)
}

//! `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor` and `cp.async.bulk.prefetch.tensor`.

use super::asynchronous::state;
use super::bulk::operation;
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::{NO_REGISTER, Op};
use crate::exec::operands::tensor::{Direction, Mode, TensorAccess};
use crate::exec::ops::tensor;
use crate::syntax::{
    Base, CacheLevel, Instruction, Keyword, Modifier, Operand, ScalarClass, ScalarType,
    Space as State, Symbol, Tensor,
};

/// The number of coordinates of a gather of four rows: the first along a row, and the row indices.
const FOUR_ROWS: usize = 5;

/// The operands of an access.
struct Operands<'i> {
    tensor: &'i Tensor,
    shared: Option<&'i Operand>,
    barrier: Option<&'i Operand>,
    /// Offsets, the mask of blocks, and the cache policy, as the suffixes require.
    rest: &'i [Operand],
}

impl Lowerer<'_> {
    /// Lowers an access to a tensor.
    pub(super) fn copy_tensor(&mut self, instruction: &Instruction) -> Lowered {
        let direction = direction(instruction).ok_or_else(|| Refusal::form(instruction))?;
        let rank = rank(instruction).ok_or_else(|| Refusal::form(instruction))?;
        let mode = mode(instruction, direction, rank).ok_or_else(|| Refusal::form(instruction))?;
        let are_suffixes_valid = has_no_other_suffix(instruction, direction);
        let Operands {
            tensor,
            shared,
            barrier,
            rest,
        } = operands(instruction, direction)
            .filter(|_| are_suffixes_valid)
            .ok_or_else(|| Refusal::form(instruction))?;
        let has_offsets =
            mode == Mode::Pixels && matches!(direction, Direction::Load | Direction::Prefetch);
        let (offsets, d) =
            self.offsets_and_mask(instruction, rest, if has_offsets { rank - 2 } else { 0 })?;
        let count = if mode == Mode::FourRows {
            FOUR_ROWS
        } else {
            rank
        };
        let coordinates = self
            .integer_rows(&tensor.coordinates, count, 32)
            .ok_or_else(|| Refusal::form(instruction))?;
        let is_named = !matches!(tensor.handle.base, Base::Symbol(Symbol::Local(_)));
        if tensor.sampler.is_some() || tensor.handle.offset != 0 || !is_named {
            return Err(Refusal::form(instruction));
        }
        let a = self.address_row(tensor.handle)?;
        let [b, e] = [shared, barrier].map(|operand| match operand {
            Some(Operand::Address(address)) => self.address_row(*address),
            _ => Ok(NO_REGISTER),
        });
        let is_paired = instruction.has_keyword(Keyword::CtaGroup2);
        self.out.tensors.push(TensorAccess {
            direction,
            mode,
            rank,
            coordinates,
            offsets,
            is_paired,
        });
        let number = self.out.tensors.len() as u64 - 1;
        self.push(Op {
            a,
            b: b?,
            d,
            e: e?,
            ..Op::new(tensor::run)
        })
        .imm = number;
        Ok(())
    }

    /// Returns the rows of the offsets and of the mask of blocks. The cache policy, if any, is
    /// skipped.
    fn offsets_and_mask(
        &mut self,
        instruction: &Instruction,
        rest: &[Operand],
        count: usize,
    ) -> Lowered<(Vec<u32>, u32)> {
        let is_multicast = instruction.has_keyword(Keyword::MulticastCluster);
        let (offsets, rest) = match rest {
            [Operand::Vector(offsets), rest @ ..] if count > 0 => {
                (self.integer_rows(offsets, count, 16), rest)
            }
            _ => ((count == 0).then(Vec::new), rest),
        };
        let offsets = offsets.ok_or_else(|| Refusal::form(instruction))?;
        if rest.len()
            != usize::from(is_multicast) + usize::from(instruction.has(Modifier::CacheHint))
        {
            return Err(Refusal::form(instruction));
        }
        match rest.first().filter(|_| is_multicast) {
            None => Ok((offsets, NO_REGISTER)),
            Some(mask) if self.is_integer(mask, 16) => {
                Ok((offsets, self.source(mask, ScalarType::B16)?))
            }
            Some(_) => Err(Refusal::form(instruction)),
        }
    }

    /// Returns the rows of a vector of `count` integers of a width, or `None` for another vector.
    fn integer_rows(&mut self, vector: &[Operand], count: usize, bits: u32) -> Option<Vec<u32>> {
        let scalar = if bits == 16 {
            ScalarType::B16
        } else {
            ScalarType::B32
        };
        if vector.len() != count || !vector.iter().all(|operand| self.is_integer(operand, bits)) {
            return None;
        }
        vector
            .iter()
            .map(|operand| self.source(operand, scalar).ok())
            .collect()
    }

    /// Returns `true` if an operand is a number, or an integer register of a width.
    fn is_integer(&self, operand: &Operand, bits: u32) -> bool {
        match operand {
            Operand::Integer(_) => true,
            Operand::Register(id) => {
                let register = &self.function.registers[id.0 as usize];
                register.scalar.bits() == bits
                    && register.scalar.class() != ScalarClass::Float
                    && register.vector == 1
            }
            _ => false,
        }
    }
}

fn direction(instruction: &Instruction) -> Option<Direction> {
    if instruction.has_keyword(Keyword::Prefetch) {
        return (state(instruction, 0) == Some(State::Global)).then_some(Direction::Prefetch);
    }
    match [state(instruction, 0)?, state(instruction, 1)?] {
        [State::SharedCta | State::SharedCluster, State::Global] => Some(Direction::Load),
        [State::Global, State::SharedCta] if instruction.has_keyword(Keyword::Reduce) => {
            operation(instruction).map(Direction::Reduce)
        }
        [State::Global, State::SharedCta] => Some(Direction::Store),
        _ => None,
    }
}

fn rank(instruction: &Instruction) -> Option<usize> {
    let dimensions = [
        Keyword::Dimension1d,
        Keyword::Dimension2d,
        Keyword::Dimension3d,
        Keyword::Dimension4d,
        Keyword::Dimension5d,
    ];
    dimensions
        .iter()
        .position(|keyword| instruction.has_keyword(*keyword))
        .map(|index| index + 1)
}

fn mode(instruction: &Instruction, direction: Direction, rank: usize) -> Option<Mode> {
    let reads = matches!(direction, Direction::Load | Direction::Prefetch);
    let (pixels, rows) = if reads {
        (Keyword::Im2col, Keyword::TileGather4)
    } else {
        (Keyword::Im2colNoOffs, Keyword::TileScatter4)
    };
    match rank {
        3.. if instruction.has_keyword(pixels) => Some(Mode::Pixels),
        2 if instruction.has_keyword(rows) => Some(Mode::FourRows),
        _ if instruction.has_keyword(pixels) || instruction.has_keyword(rows) => None,
        _ => Some(Mode::Tile),
    }
}

/// Returns `true` if each suffix is valid for the direction and unique, and all required ones are
/// present.
fn has_no_other_suffix(instruction: &Instruction, direction: Direction) -> bool {
    use Keyword as K;
    let (required, modes) = suffixes(direction);
    let is_load = direction == Direction::Load;
    let goes_to_cluster = is_load && state(instruction, 0) == Some(State::SharedCluster);
    let modes = count_present(instruction, &modes.map(Modifier::Keyword));
    let groups = if is_load {
        let groups = [K::CtaGroup1, K::CtaGroup2].map(Modifier::Keyword);
        count_present(instruction, &groups)
    } else {
        0
    };
    let has_mask = goes_to_cluster && instruction.has_keyword(K::MulticastCluster);
    let has_hint = instruction.has(Modifier::CacheHint);
    let optional = modes + groups + usize::from(has_mask) + usize::from(has_hint);
    let spaces = instruction
        .modifiers
        .iter()
        .filter(|modifier| matches!(modifier, Modifier::Space(_)))
        .count();
    let expected = if direction == Direction::Prefetch {
        1
    } else {
        2
    };
    // The rank is the one other suffix.
    let is_whole = instruction.modifiers.len() == required.len() + spaces + optional + 1;
    count_present(instruction, &required) == required.len()
        && modes <= 1
        && groups <= 1
        && spaces == expected
        && is_whole
}

/// Returns the number of these suffixes that the instruction has.
fn count_present(instruction: &Instruction, modifiers: &[Modifier]) -> usize {
    modifiers
        .iter()
        .filter(|modifier| instruction.has(**modifier))
        .count()
}

/// Returns the suffixes that a direction requires besides the rank and the spaces, and those of
/// which it may have one.
fn suffixes(direction: Direction) -> (Vec<Modifier>, [Keyword; 3]) {
    use Keyword as K;
    let keyword = Modifier::Keyword;
    let (own, is_read) = match direction {
        Direction::Load => (vec![keyword(K::MbarrierCompleteTxBytes)], true),
        Direction::Prefetch => (
            vec![keyword(K::Prefetch), Modifier::Level(CacheLevel::L2)],
            true,
        ),
        Direction::Store => (vec![keyword(K::BulkGroup)], false),
        Direction::Reduce(operation) => (
            vec![
                keyword(K::BulkGroup),
                keyword(K::Reduce),
                Modifier::Operation(operation),
            ],
            false,
        ),
    };
    let modes = if is_read {
        [K::Tile, K::Im2col, K::TileGather4]
    } else {
        [K::Tile, K::Im2colNoOffs, K::TileScatter4]
    };
    (
        [K::Async, K::Bulk, K::Tensor]
            .map(keyword)
            .into_iter()
            .chain(own)
            .collect(),
        modes,
    )
}

fn operands(instruction: &Instruction, direction: Direction) -> Option<Operands<'_>> {
    match (direction, &instruction.operands[..]) {
        (
            Direction::Load,
            [
                shared @ Operand::Address(_),
                Operand::Tensor(tensor),
                barrier @ Operand::Address(_),
                rest @ ..,
            ],
        ) => Some(Operands {
            tensor,
            shared: Some(shared),
            barrier: Some(barrier),
            rest,
        }),
        (
            Direction::Store | Direction::Reduce(_),
            [
                Operand::Tensor(tensor),
                shared @ Operand::Address(_),
                rest @ ..,
            ],
        ) => Some(Operands {
            tensor,
            shared: Some(shared),
            barrier: None,
            rest,
        }),
        (Direction::Prefetch, [Operand::Tensor(tensor), rest @ ..]) => Some(Operands {
            tensor,
            shared: None,
            barrier: None,
            rest,
        }),
        _ => None,
    }
}

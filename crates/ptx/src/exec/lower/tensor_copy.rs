//! `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor` and `cp.async.bulk.prefetch.tensor`.

use super::asynchronous::state;
use super::bulk::operation;
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::handler::NO_REGISTER;
use crate::exec::op::Op;
use crate::exec::tensor::{self, Direction, Mode, TensorAccess};
use crate::syntax::{
    Base, CacheLevel, Instruction, Keyword, Modifier, Operand, RegisterId, ScalarClass, ScalarType,
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
        let refusal = || Refusal::form(instruction);
        let (way, rank) = (
            way(instruction).ok_or_else(refusal)?,
            rank(instruction).ok_or_else(refusal)?,
        );
        let mode = mode(instruction, way, rank).ok_or_else(refusal)?;
        let is_known = has_no_other_suffix(instruction, way);
        let Operands {
            tensor,
            shared,
            barrier,
            rest,
        } = operands(instruction, way)
            .filter(|_| is_known)
            .ok_or_else(refusal)?;
        let has_offsets =
            mode == Mode::Pixels && matches!(way, Direction::Load | Direction::Prefetch);
        let (offsets, d) =
            self.offsets_and_mask(instruction, rest, if has_offsets { rank - 2 } else { 0 })?;
        let given = if mode == Mode::FourRows {
            FOUR_ROWS
        } else {
            rank
        };
        let coordinates = self
            .words_of(&tensor.coordinates, given, 32)
            .ok_or_else(refusal)?;
        let is_named = !matches!(tensor.handle.base, Base::Symbol(Symbol::Local(_)));
        if tensor.sampler.is_some() || tensor.handle.offset != 0 || !is_named {
            return Err(refusal());
        }
        let a = self.address_row(tensor.handle)?;
        let [b, e] = [shared, barrier].map(|operand| match operand {
            Some(Operand::Address(address)) => self.address_row(*address),
            _ => Ok(NO_REGISTER),
        });
        let is_paired = instruction.has(Modifier::Keyword(Keyword::CtaGroup2));
        self.out.tensors.push(TensorAccess {
            direction: way,
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

    /// Returns the rows of the offsets and of the mask of blocks. The cache policy, if any, is skipped.
    fn offsets_and_mask(
        &mut self,
        instruction: &Instruction,
        rest: &[Operand],
        count: usize,
    ) -> Lowered<(Vec<u32>, u32)> {
        let refusal = || Refusal::form(instruction);
        let is_multicast = instruction.has(Modifier::Keyword(Keyword::MulticastCluster));
        let (offsets, rest) = match rest {
            [Operand::Vector(offsets), rest @ ..] if count > 0 => {
                (self.words_of(offsets, count, 16), rest)
            }
            _ => ((count == 0).then(Vec::new), rest),
        };
        let offsets = offsets.ok_or_else(refusal)?;
        if rest.len()
            != usize::from(is_multicast) + usize::from(instruction.has(Modifier::CacheHint))
        {
            return Err(refusal());
        }
        match rest.first().filter(|_| is_multicast) {
            None => Ok((offsets, NO_REGISTER)),
            Some(mask) if self.is_integer(mask, 16) => {
                Ok((offsets, self.source(mask, ScalarType::B16)?))
            }
            Some(_) => Err(refusal()),
        }
    }

    /// Returns the rows of a vector of `count` integers of a width, or `None` for another vector.
    fn words_of(&mut self, vector: &[Operand], count: usize, bits: u32) -> Option<Vec<u32>> {
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
        let fits = |id: &RegisterId| {
            let register = &self.function.registers[id.0 as usize];
            register.scalar.bits() == bits
                && register.scalar.class() != ScalarClass::Float
                && register.vector == 1
        };
        matches!(operand, Operand::Integer(_))
            || matches!(operand, Operand::Register(id) if fits(id))
    }
}

fn way(instruction: &Instruction) -> Option<Direction> {
    let has = |keyword| instruction.has(Modifier::Keyword(keyword));
    if has(Keyword::Prefetch) {
        return (state(instruction, 0) == Some(State::Global)).then_some(Direction::Prefetch);
    }
    match [state(instruction, 0)?, state(instruction, 1)?] {
        [State::SharedCta | State::SharedCluster, State::Global] => Some(Direction::Load),
        [State::Global, State::SharedCta] if has(Keyword::Reduce) => {
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
        .position(|keyword| instruction.has(Modifier::Keyword(*keyword)))
        .map(|index| index + 1)
}

fn mode(instruction: &Instruction, way: Direction, rank: usize) -> Option<Mode> {
    let has = |keyword| instruction.has(Modifier::Keyword(keyword));
    let reads = matches!(way, Direction::Load | Direction::Prefetch);
    let (pixels, rows) = if reads {
        (Keyword::Im2col, Keyword::TileGather4)
    } else {
        (Keyword::Im2colNoOffs, Keyword::TileScatter4)
    };
    match rank {
        3.. if has(pixels) => Some(Mode::Pixels),
        2 if has(rows) => Some(Mode::FourRows),
        _ if has(pixels) || has(rows) => None,
        _ => Some(Mode::Tile),
    }
}

/// Returns `true` if each suffix is valid for the direction and unique, and all required ones are present.
fn has_no_other_suffix(instruction: &Instruction, way: Direction) -> bool {
    use Keyword as K;
    let (required, modes) = suffixes(way);
    let has = |modifier: &&Modifier| instruction.has(**modifier);
    let count_of = |all: &[Modifier]| all.iter().filter(has).count();
    let is_load = way == Direction::Load;
    let goes_to_cluster = is_load && state(instruction, 0) == Some(State::SharedCluster);
    let modes = count_of(&modes.map(Modifier::Keyword));
    let groups = if is_load {
        count_of(&[K::CtaGroup1, K::CtaGroup2].map(Modifier::Keyword))
    } else {
        0
    };
    let masks = if goes_to_cluster {
        count_of(&[Modifier::Keyword(K::MulticastCluster)])
    } else {
        0
    };
    let optional = modes + groups + masks + count_of(&[Modifier::CacheHint]);
    let spaces = instruction
        .modifiers
        .iter()
        .filter(|modifier| matches!(modifier, Modifier::Space(_)))
        .count();
    let expected = if way == Direction::Prefetch { 1 } else { 2 };
    // The rank is the one other suffix.
    let is_whole = instruction.modifiers.len() == required.len() + spaces + optional + 1;
    count_of(&required) == required.len()
        && modes <= 1
        && groups <= 1
        && spaces == expected
        && is_whole
}

/// Returns the suffixes that a direction requires besides the rank and the spaces, and those of which it may have one.
fn suffixes(way: Direction) -> (Vec<Modifier>, [Keyword; 3]) {
    use Keyword as K;
    let keyword = Modifier::Keyword;
    let (own, is_read) = match way {
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

fn operands(instruction: &Instruction, way: Direction) -> Option<Operands<'_>> {
    match (way, &instruction.operands[..]) {
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

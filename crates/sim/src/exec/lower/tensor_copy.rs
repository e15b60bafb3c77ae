//! `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor` and `cp.async.bulk.prefetch.tensor`.

use super::asynchronous::state;
use super::bulk::operation;
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::handler::NO_REGISTER;
use crate::exec::op::Op;
use crate::exec::tensor::{self, Mode, TensorAccess, Way};
use crate::ptx::{
    Base, CacheLevel, Instruction, Keyword, Modifier, Operand, RegisterId, ScalarClass, ScalarType, Space as State,
    Symbol, Tensor,
};

/// The operands of an access, by what they are.
struct Operands<'i> {
    tensor: &'i Tensor,
    shared: Option<&'i Operand>,
    barrier: Option<&'i Operand>,
    /// Offsets, a mask of blocks, a cache policy: those that the suffixes ask for.
    rest: &'i [Operand],
}

impl Lowerer<'_> {
    /// An access of a tensor.
    pub(super) fn copy_tensor(&mut self, instruction: &Instruction) -> Lowered {
        let refusal = || Refusal::form(instruction);
        let (way, rank) = (way(instruction).ok_or_else(refusal)?, rank(instruction).ok_or_else(refusal)?);
        let mode = mode(instruction, way, rank).ok_or_else(refusal)?;
        let is_known = has_no_other_suffix(instruction, way);
        let operands = operands(instruction, way).filter(|_| is_known).ok_or_else(refusal)?;
        let has = |keyword| instruction.has(Modifier::Keyword(keyword));
        let mut rest = operands.rest.iter();
        let offsets = if mode == Mode::Pixels && matches!(way, Way::Load | Way::Prefetch) {
            let Some(Operand::Vector(offsets)) = rest.next() else { return Err(refusal()) };
            self.words_of(offsets, rank - 2, 16).ok_or_else(refusal)?
        } else {
            Vec::new()
        };
        let d = match rest.next().filter(|_| has(Keyword::MulticastCluster)) {
            Some(mask) if self.is_integer(mask, 16) => self.source(mask, ScalarType::B16)?,
            None if !has(Keyword::MulticastCluster) => NO_REGISTER,
            _ => return Err(refusal()),
        };
        let count = operands.rest.len() - usize::from(mode == Mode::Pixels && !offsets.is_empty());
        let expected = usize::from(has(Keyword::MulticastCluster)) + usize::from(instruction.has(Modifier::CacheHint));
        if count != expected {
            return Err(refusal());
        }
        let given = if mode == Mode::FourRows { 5 } else { rank };
        let coordinates = self.words_of(&operands.tensor.coordinates, given, 32).ok_or_else(refusal)?;
        let handle = operands.tensor.handle;
        let is_named = !matches!(handle.base, Base::Symbol(Symbol::Local(_)));
        if operands.tensor.sampler.is_some() || handle.offset != 0 || !is_named {
            return Err(refusal());
        }
        let a = self.address_row(handle)?;
        let [b, e] = [operands.shared, operands.barrier].map(|operand| match operand {
            Some(Operand::Address(address)) => self.address_row(*address),
            _ => Ok(NO_REGISTER),
        });
        let is_paired = has(Keyword::CtaGroup2);
        self.out.tensors.push(TensorAccess { way, mode, rank, coordinates, offsets, is_paired });
        let number = self.out.tensors.len() as u64 - 1;
        self.push(Op { a, b: b?, d, e: e?, ..Op::new(tensor::run) }).imm = number;
        Ok(())
    }

    /// The rows of a vector of so many integers of a width; `None` if it is another vector.
    fn words_of(&mut self, vector: &[Operand], count: usize, bits: u32) -> Option<Vec<u32>> {
        let scalar = if bits == 16 { ScalarType::B16 } else { ScalarType::B32 };
        if vector.len() != count || !vector.iter().all(|operand| self.is_integer(operand, bits)) {
            return None;
        }
        vector.iter().map(|operand| self.source(operand, scalar).ok()).collect()
    }

    /// Whether an operand is a number, or a register of integers of a width.
    fn is_integer(&self, operand: &Operand, bits: u32) -> bool {
        let fits = |id: &RegisterId| {
            let register = &self.function.registers[id.0 as usize];
            register.scalar.bits() == bits && register.scalar.class() != ScalarClass::Float && register.vector == 1
        };
        matches!(operand, Operand::Integer(_)) || matches!(operand, Operand::Register(id) if fits(id))
    }
}

fn way(instruction: &Instruction) -> Option<Way> {
    let has = |keyword| instruction.has(Modifier::Keyword(keyword));
    if has(Keyword::Prefetch) {
        return (state(instruction, 0) == Some(State::Global)).then_some(Way::Prefetch);
    }
    match [state(instruction, 0)?, state(instruction, 1)?] {
        [State::SharedCta | State::SharedCluster, State::Global] => Some(Way::Load),
        [State::Global, State::SharedCta] if has(Keyword::Reduce) => operation(instruction).map(Way::Reduce),
        [State::Global, State::SharedCta] => Some(Way::Store),
        _ => None,
    }
}

fn rank(instruction: &Instruction) -> Option<usize> {
    let dimensions =
        [Keyword::Dimension1d, Keyword::Dimension2d, Keyword::Dimension3d, Keyword::Dimension4d, Keyword::Dimension5d];
    dimensions.iter().position(|keyword| instruction.has(Modifier::Keyword(*keyword))).map(|index| index + 1)
}

fn mode(instruction: &Instruction, way: Way, rank: usize) -> Option<Mode> {
    let has = |keyword| instruction.has(Modifier::Keyword(keyword));
    let reads = matches!(way, Way::Load | Way::Prefetch);
    let (pixels, rows) =
        if reads { (Keyword::Im2col, Keyword::TileGather4) } else { (Keyword::Im2colNoOffs, Keyword::TileScatter4) };
    match rank {
        3.. if has(pixels) => Some(Mode::Pixels),
        2 if has(rows) => Some(Mode::FourRows),
        _ if has(pixels) || has(rows) => None,
        _ => Some(Mode::Tile),
    }
}

/// Whether each suffix is one that the way has, and stands once, and whether those are there that must be.
fn has_no_other_suffix(instruction: &Instruction, way: Way) -> bool {
    use Keyword as K;
    let mut known = vec![Modifier::Keyword(K::Async), Modifier::Keyword(K::Bulk), Modifier::Keyword(K::Tensor)];
    let required = known.len() + 1;
    let is_of_cluster = state(instruction, 0) == Some(State::SharedCluster);
    let (own, modes): (Vec<Modifier>, &[K]) = match way {
        Way::Load => (vec![Modifier::Keyword(K::MbarrierCompleteTxBytes)], &[K::Tile, K::Im2col, K::TileGather4]),
        Way::Store => (vec![Modifier::Keyword(K::BulkGroup)], &[K::Tile, K::Im2colNoOffs, K::TileScatter4]),
        Way::Reduce(operation) => (
            vec![Modifier::Keyword(K::BulkGroup), Modifier::Keyword(K::Reduce), Modifier::Operation(operation)],
            &[K::Tile, K::Im2colNoOffs, K::TileScatter4],
        ),
        Way::Prefetch => (
            vec![Modifier::Keyword(K::Prefetch), Modifier::Level(CacheLevel::L2)],
            &[K::Tile, K::Im2col, K::TileGather4],
        ),
    };
    let required = required + own.len();
    known.extend(own);
    if !known.iter().all(|modifier| instruction.has(*modifier)) {
        return false;
    }
    let spaces = instruction.modifiers.iter().filter(|modifier| matches!(modifier, Modifier::Space(_))).count();
    let mut optional: Vec<Modifier> = modes.iter().map(|mode| Modifier::Keyword(*mode)).collect();
    optional.push(Modifier::CacheHint);
    if way == Way::Load {
        optional.extend([K::CtaGroup1, K::CtaGroup2].map(Modifier::Keyword));
        optional.extend(is_of_cluster.then_some(Modifier::Keyword(K::MulticastCluster)));
    }
    let count_of = |all: &[Modifier]| all.iter().filter(|modifier| instruction.has(**modifier)).count();
    let groups = count_of(&[K::CtaGroup1, K::CtaGroup2].map(Modifier::Keyword));
    let kinds = count_of(&optional[..modes.len()]);
    let expected_spaces = if way == Way::Prefetch { 1 } else { 2 };
    kinds <= 1
        && groups <= 1
        && spaces == expected_spaces
        && instruction.modifiers.len() == required + spaces + count_of(&optional)
}

fn operands(instruction: &Instruction, way: Way) -> Option<Operands<'_>> {
    match (way, &instruction.operands[..]) {
        (
            Way::Load,
            [shared @ Operand::Address(_), Operand::Tensor(tensor), barrier @ Operand::Address(_), rest @ ..],
        ) => Some(Operands { tensor, shared: Some(shared), barrier: Some(barrier), rest }),
        (Way::Store | Way::Reduce(_), [Operand::Tensor(tensor), shared @ Operand::Address(_), rest @ ..]) => {
            Some(Operands { tensor, shared: Some(shared), barrier: None, rest })
        }
        (Way::Prefetch, [Operand::Tensor(tensor), rest @ ..]) => {
            Some(Operands { tensor, shared: None, barrier: None, rest })
        }
        _ => None,
    }
}

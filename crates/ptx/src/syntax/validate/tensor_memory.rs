//! Tensor memory (`tcgen05`): the suffixes and operands of each operation.

use super::{Context, Width};
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Modifier, Space};
use crate::syntax::operand::{Address, Base, Operand};
use crate::syntax::scalar::{ScalarClass, ScalarType};
use curium_format::{Target, TargetVariant};

/// The shapes of loads and stores, each with the number of registers of a thread.
const TRANSFER_SHAPES: [(Keyword, usize); 5] = [
    (Keyword::Tile32x32b, 1),
    (Keyword::Tile16x64b, 1),
    (Keyword::Tile16x128b, 2),
    (Keyword::Tile16x256b, 4),
    (Keyword::Tile16x32bx2, 1),
];

/// The numbers of repetitions of loads and stores.
const REPETITIONS: [(Keyword, usize); 8] = [
    (Keyword::X1, 1),
    (Keyword::X2, 2),
    (Keyword::X4, 4),
    (Keyword::X8, 8),
    (Keyword::X16, 16),
    (Keyword::X32, 32),
    (Keyword::X64, 64),
    (Keyword::X128, 128),
];

/// The largest number of registers of a load or a store.
const MAX_REGISTERS: usize = 128;

/// The blocks that take part in an operation.
const GROUPS: [Keyword; 2] = [Keyword::CtaGroup1, Keyword::CtaGroup2];

/// The kinds of products, without and with block scaling.
const KINDS: [Keyword; 4] = [
    Keyword::KindF16,
    Keyword::KindTf32,
    Keyword::KindF8f6f4,
    Keyword::KindI8,
];
const SCALED_KINDS: [Keyword; 3] = [
    Keyword::KindMxf8f6f4,
    Keyword::KindMxf4,
    Keyword::KindMxf4nvf4,
];

/// The uses of the buffer of A.
const COLLECTORS: [Keyword; 4] = [
    Keyword::CollectorADiscard,
    Keyword::CollectorAFill,
    Keyword::CollectorALastuse,
    Keyword::CollectorAUse,
];

/// The shapes of copies that need no distribution over warps.
const COPY_SHAPES: [Keyword; 3] = [
    Keyword::Tile128x256b,
    Keyword::Tile4x256b,
    Keyword::Tile128x128b,
];

impl Context<'_> {
    /// `tcgen05`
    pub(super) fn tensor_memory(&self) -> Result<(), Error> {
        match self.instruction.modifiers.first() {
            Some(Modifier::Keyword(Keyword::Alloc)) => self.allocation(),
            Some(Modifier::Keyword(Keyword::Dealloc)) => self.deallocation(),
            Some(Modifier::Keyword(Keyword::RelinquishAllocPermit)) => {
                self.tensor_suffixes(&[&[Keyword::RelinquishAllocPermit], &GROUPS], &[], true)?;
                self.tensor_type(None)?;
                self.count(0..=0)
            }
            Some(Modifier::Keyword(Keyword::Ld)) => self.tensor_load(),
            Some(Modifier::Keyword(Keyword::St)) => self.tensor_store(),
            Some(Modifier::Keyword(wait @ (Keyword::WaitLd | Keyword::WaitSt))) => {
                self.tensor_suffixes(&[&[*wait]], &[], true)?;
                self.tensor_type(None)?;
                self.count(0..=0)
            }
            Some(Modifier::Keyword(
                fence @ (Keyword::FenceBeforeThreadSync | Keyword::FenceAfterThreadSync),
            )) => {
                self.tensor_suffixes(&[&[*fence]], &[], false)?;
                self.tensor_type(None)?;
                self.count(0..=0)
            }
            Some(Modifier::Keyword(Keyword::Mma)) => self.tensor_product(),
            Some(Modifier::Keyword(Keyword::Commit)) => self.tensor_commit(),
            Some(Modifier::Keyword(Keyword::Cp)) => self.tensor_copy(),
            Some(Modifier::Keyword(Keyword::Shift)) => {
                self.tensor_suffixes(&[&[Keyword::Shift], &GROUPS], &[], false)?;
                self.tensor_type(None)?;
                if !self.has(Modifier::Shuffle(crate::syntax::ShuffleMode::Down)) {
                    return Err(self.error("'.down' is required"));
                }
                if self.module.target.variant == TargetVariant::Family {
                    return Err(self.error("'.shift' requires an architecture-specific target"));
                }
                self.count(1..=1)?;
                self.tensor_address(0)
            }
            _ => Err(self.error("missing operation, such as '.alloc'")),
        }
    }

    /// Checks that the instruction has one suffix of each required group, at most one of each
    /// optional group, and no others that restrict it. Collective operations have `.sync` and
    /// `.aligned`.
    fn tensor_suffixes(
        &self,
        required: &[&[Keyword]],
        optional: &[&[Keyword]],
        is_collective: bool,
    ) -> Result<(), Error> {
        let collective = [Keyword::Sync, Keyword::Aligned];
        for group in required {
            if self.count_present(group) != 1 {
                return Err(self.error(format!("exactly one of {} is required", list(group))));
            }
        }
        for group in optional {
            if self.count_present(group) > 1 {
                return Err(self.error(format!("at most one of {} is allowed", list(group))));
            }
        }
        for keyword in collective {
            let count = self.count_present(&[keyword]);
            if count != usize::from(is_collective) {
                let problem = if is_collective {
                    "is required once"
                } else {
                    "is not allowed"
                };
                return Err(self.error(format!("'.{}' {problem}", keyword.name())));
            }
        }
        for modifier in &self.instruction.modifiers {
            if let Modifier::Keyword(keyword) = modifier {
                let is_allowed = collective.contains(keyword)
                    || required.iter().any(|group| group.contains(keyword))
                    || optional.iter().any(|group| group.contains(keyword));
                if !is_allowed {
                    return Err(self.error(format!("unsupported suffix '.{}'", keyword.name())));
                }
            }
        }
        Ok(())
    }

    /// Returns the number of suffixes from a group.
    fn count_present(&self, group: &[Keyword]) -> usize {
        let modifiers = self.instruction.modifiers.iter();
        modifiers
            .filter(|modifier| matches!(modifier, Modifier::Keyword(keyword) if group.contains(keyword)))
            .count()
    }

    /// Checks the type of the instruction, and that it has no other suffix with a meaning of its
    /// own.
    fn tensor_type(&self, expected: Option<ScalarType>) -> Result<(), Error> {
        let mut types = self.instruction.types();
        if types.next() != expected || types.next().is_some() {
            let name = expected.map_or("none".into(), |scalar| format!(".{}", scalar.name()));
            return Err(self.error(format!("unsupported type (expected {name})")));
        }
        Ok(())
    }

    fn tensor_space(&self, allowed: Space) -> Result<(), Error> {
        match self.space() {
            Some(space) if space != allowed => {
                Err(self.error(format!("the state space must be '.{}'", allowed.name())))
            }
            _ => Ok(()),
        }
    }

    fn allocation(&self) -> Result<(), Error> {
        self.tensor_suffixes(&[&[Keyword::Alloc], &GROUPS], &[], true)?;
        self.tensor_type(Some(ScalarType::B32))?;
        self.tensor_space(Space::SharedCta)?;
        self.count(2..=2)?;
        self.shared_address(0)?;
        self.column_count(1)
    }

    /// Checks an address in shared memory. Without a state space, it is generic, also in a 32-bit
    /// register.
    fn shared_address(&self, index: usize) -> Result<(), Error> {
        if self.tensor_address(index).is_ok() {
            return Ok(());
        }
        self.address(index)
    }

    fn deallocation(&self) -> Result<(), Error> {
        self.tensor_suffixes(&[&[Keyword::Dealloc], &GROUPS], &[], true)?;
        self.tensor_type(Some(ScalarType::B32))?;
        self.count(2..=2)?;
        self.word(0)?;
        self.column_count(1)
    }

    /// Checks a number of columns: a register, or a power of two from 32 to 512.
    fn column_count(&self, index: usize) -> Result<(), Error> {
        match self.operand(index) {
            Operand::Integer(integer)
                if !(32..=512).contains(&integer.value())
                    || !integer.value().cast_unsigned().is_power_of_two() =>
            {
                Err(self.operand_error(index, "a power of two from 32 to 512"))
            }
            _ => self.word(index),
        }
    }

    /// Checks a 32-bit integer: a register that is not of a floating-point type, or an immediate.
    fn word(&self, index: usize) -> Result<(), Error> {
        match self.operand(index) {
            Operand::Integer(_) => Ok(()),
            Operand::Register(register)
                if self.register(*register).class() == ScalarClass::Float =>
            {
                Err(self.operand_error(index, "a 32-bit register for integers"))
            }
            Operand::Register(_) | Operand::Element(..) => {
                self.source(index, ScalarType::B32, Width::Exact)
            }
            _ => Err(self.operand_error(index, "a 32-bit register or an immediate")),
        }
    }

    /// Checks an address in tensor memory: a 32-bit register, with or without an offset.
    fn tensor_address(&self, index: usize) -> Result<(), Error> {
        if let Operand::Address(Address {
            base: Base::Register(register),
            ..
        }) = self.operand(index)
        {
            let scalar = self.register(*register);
            if scalar.bits() == 32 && scalar.class() != ScalarClass::Float {
                return Ok(());
            }
        }
        Err(self.operand_error(index, "a 32-bit register in brackets"))
    }

    fn tensor_load(&self) -> Result<(), Error> {
        if self.has_keyword(Keyword::Red) {
            // Loads with reductions are refused by the lowering.
            return Ok(());
        }
        let distances = self.transfer(Keyword::Ld, Keyword::Pack16b)?;
        self.count(2 + distances..=2 + distances)?;
        self.transfer_registers(0)?;
        self.tensor_address(1)?;
        self.distance(2, distances)
    }

    fn tensor_store(&self) -> Result<(), Error> {
        let distances = self.transfer(Keyword::St, Keyword::Unpack16b)?;
        self.count(2 + distances..=2 + distances)?;
        self.tensor_address(0)?;
        self.distance(1, distances)?;
        self.transfer_registers(1 + distances)
    }

    /// Checks the suffixes of a load or a store. Returns the number of distances among the
    /// operands: one for two halves of a warp.
    fn transfer(&self, operation: Keyword, packing: Keyword) -> Result<usize, Error> {
        let shapes = TRANSFER_SHAPES.map(|(keyword, _)| keyword);
        let repetitions = REPETITIONS.map(|(keyword, _)| keyword);
        self.tensor_suffixes(&[&[operation], &shapes, &repetitions], &[&[packing]], true)?;
        self.tensor_type(Some(ScalarType::B32))?;
        Ok(usize::from(self.has_keyword(Keyword::Tile16x32bx2)))
    }

    fn distance(&self, index: usize, count: usize) -> Result<(), Error> {
        if count == 1 && !matches!(self.operand(index), Operand::Integer(_)) {
            return Err(self.operand_error(index, "an immediate"));
        }
        Ok(())
    }

    /// Checks the registers of a load or a store.
    fn transfer_registers(&self, index: usize) -> Result<(), Error> {
        let per_thread = present_value(self, &TRANSFER_SHAPES) * present_value(self, &REPETITIONS);
        if per_thread > MAX_REGISTERS {
            return Err(self.error("the shape has fewer repetitions"));
        }
        let is_load = index == 0;
        let expected = format!("a vector of {per_thread} registers of 32 bits");
        let Operand::Vector(registers) = self.operand(index) else {
            return Err(self.operand_error(index, expected));
        };
        let is_valid = registers.len() == per_thread
            && registers.iter().all(|register| match register {
                Operand::Register(id) => self.register(*id).bits() == 32,
                Operand::Element(id, _) => self.register(*id).bits() == 32,
                Operand::Integer(_) | Operand::Single(_) => !is_load,
                _ => false,
            })
            && registers
                .iter()
                .any(|register| matches!(register, Operand::Register(_) | Operand::Element(..)));
        if is_valid {
            Ok(())
        } else {
            Err(self.operand_error(index, expected))
        }
    }

    fn tensor_product(&self) -> Result<(), Error> {
        let is_special = [Keyword::Sp, Keyword::Ws, Keyword::BlockScale]
            .into_iter()
            .any(|keyword| self.has_keyword(keyword));
        if is_special {
            // Sparse, weight-stationary and block-scaled products are refused by the lowering.
            return Ok(());
        }
        if SCALED_KINDS
            .into_iter()
            .any(|keyword| self.has_keyword(keyword))
        {
            return Err(self.error("the kind requires '.block_scale'"));
        }
        self.tensor_suffixes(
            &[&[Keyword::Mma], &GROUPS, &KINDS],
            &[&COLLECTORS, &[Keyword::Ashift]],
            false,
        )?;
        self.tensor_type(None)?;
        let has_mask = matches!(self.instruction.operands.get(4), Some(Operand::Vector(_)));
        let first = 4 + usize::from(has_mask);
        self.count(first + 1..=first + 2)?;
        self.tensor_address(0)?;
        match self.operand(1) {
            Operand::Address(_) => self.tensor_address(1)?,
            _ => self.matrix_descriptor(1)?,
        }
        self.matrix_descriptor(2)?;
        self.word(3)?;
        if has_mask {
            self.lane_mask(4)?;
        }
        self.source(first, ScalarType::Pred, Width::Exact)?;
        if self.spans.len() == first + 2 {
            self.scale(first + 1)?;
        }
        self.product_target()?;
        self.left_shift(matches!(self.operand(1), Operand::Address(_)))
    }

    /// Checks a descriptor of a matrix: a 64-bit register that is not of a floating-point type, or
    /// an immediate.
    fn matrix_descriptor(&self, index: usize) -> Result<(), Error> {
        match self.operand(index) {
            Operand::Integer(_) => Ok(()),
            Operand::Register(register) | Operand::Element(register, _)
                if self.register(*register).bits() == 64
                    && self.register(*register).class() != ScalarClass::Float =>
            {
                Ok(())
            }
            _ => Err(self.operand_error(index, "a 64-bit register or an immediate")),
        }
    }

    /// Checks the mask of lanes that keep their values.
    fn lane_mask(&self, index: usize) -> Result<(), Error> {
        let words = if self.has_keyword(Keyword::CtaGroup2) {
            8
        } else {
            4
        };
        let Operand::Vector(mask) = self.operand(index) else {
            return Ok(());
        };
        let is_valid = mask.len() == words
            && mask.iter().all(|word| match word {
                Operand::Register(id) | Operand::Element(id, _) => self.register(*id).bits() == 32,
                Operand::Integer(_) => true,
                _ => false,
            })
            && !mask.iter().all(|word| matches!(word, Operand::Integer(_)));
        if is_valid {
            Ok(())
        } else {
            Err(self.operand_error(index, format!("a vector of {words} registers of 32 bits")))
        }
    }

    /// Checks the power of two by which D is divided.
    fn scale(&self, index: usize) -> Result<(), Error> {
        if self.has_keyword(Keyword::KindF8f6f4) {
            return Err(self.error("'.kind::f8f6f4' has no scale of D"));
        }
        let is_integer = self.has_keyword(Keyword::KindI8);
        if self.module.target.architecture / 10 != 10 && !is_integer {
            return Err(self.error("a scale of D requires a target of the generation sm_100"));
        }
        match self.operand(index) {
            Operand::Integer(integer) if (0..=15).contains(&integer.value()) => Ok(()),
            _ => Err(self.operand_error(index, "an immediate from 0 to 15")),
        }
    }

    fn product_target(&self) -> Result<(), Error> {
        let Target {
            architecture,
            variant,
            ..
        } = self.module.target;
        let has_integers =
            variant == TargetVariant::Architecture && matches!(architecture, 100 | 101 | 110);
        if self.has_keyword(Keyword::KindI8) && !has_integers {
            return Err(self.error("'.kind::i8' requires target sm_100a, sm_101a or sm_110a"));
        }
        Ok(())
    }

    fn left_shift(&self, is_left_in_tensor_memory: bool) -> Result<(), Error> {
        if !self.has_keyword(Keyword::Ashift) {
            return Ok(());
        }
        let is_buffered =
            self.has_keyword(Keyword::CollectorAFill) || self.has_keyword(Keyword::CollectorAUse);
        if is_buffered || !is_left_in_tensor_memory {
            return Err(self.error(
                "'.ashift' requires A in tensor memory, without '.collector::a::fill' or '.collector::a::use'",
            ));
        }
        Ok(())
    }

    fn tensor_commit(&self) -> Result<(), Error> {
        self.tensor_suffixes(
            &[&[Keyword::Commit], &GROUPS, &[Keyword::MbarrierArriveOne]],
            &[&[Keyword::MulticastCluster]],
            false,
        )?;
        self.tensor_type(Some(ScalarType::B64))?;
        self.tensor_space(Space::SharedCluster)?;
        let has_mask = self.has_keyword(Keyword::MulticastCluster);
        let count = 1 + usize::from(has_mask);
        self.count(count..=count)?;
        self.shared_address(0)?;
        if !has_mask {
            return Ok(());
        }
        match self.operand(1) {
            Operand::Register(register)
                if self.register(*register).class() == ScalarClass::Float =>
            {
                Err(self.operand_error(1, "a 16-bit register for integers"))
            }
            _ => self.source(1, ScalarType::B16, Width::Exact),
        }
    }

    fn tensor_copy(&self) -> Result<(), Error> {
        let formats = [Keyword::B4x16P64, Keyword::B6x16P32];
        let has_formats = self.has_keyword(Keyword::B8x16);
        if has_formats != (self.count_present(&formats) == 1) {
            return Err(self.error("a conversion requires two formats"));
        }
        let shape: &[&[Keyword]] = if self.has_keyword(Keyword::Tile64x128b) {
            &[
                &[Keyword::Tile64x128b],
                &[Keyword::Warpx20123, Keyword::Warpx20213],
            ]
        } else if self.has_keyword(Keyword::Tile32x128b) {
            &[&[Keyword::Tile32x128b], &[Keyword::Warpx4]]
        } else {
            &[&COPY_SHAPES]
        };
        let operation: &[&[Keyword]] = &[&[Keyword::Cp], &GROUPS];
        self.tensor_suffixes(
            &[operation, shape].concat(),
            &[&[Keyword::B8x16], &formats],
            false,
        )?;
        self.tensor_type(None)?;
        self.count(2..=2)?;
        self.tensor_address(0)?;
        self.matrix_descriptor(1)
    }
}

/// Returns the value of the suffix that an instruction has of a table; 0 without one.
fn present_value(context: &Context<'_>, table: &[(Keyword, usize)]) -> usize {
    table
        .iter()
        .find(|(keyword, _)| context.has_keyword(*keyword))
        .map_or(0, |(_, value)| *value)
}

/// Lists suffixes for an error message.
fn list(keywords: &[Keyword]) -> String {
    super::alternatives(
        keywords
            .iter()
            .map(|keyword| format!("'.{}'", keyword.name())),
    )
}

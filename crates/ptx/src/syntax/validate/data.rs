//! Moves, conversions and shuffles.

use super::{Context, Width, fits, sets};
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Modifier, Space};
use crate::syntax::operand::{Operand, Symbol};
use crate::syntax::scalar::{ScalarClass, ScalarType};
use crate::syntax::special::SpecialRegister;

/// The first architecture whose shuffles require a member mask.
const SYNC_ARCHITECTURE: u32 = 70;

impl Context<'_> {
    /// `mov`: between registers, from immediates, special registers and addresses, and packing.
    pub(super) fn mov(&self) -> Result<(), Error> {
        let scalar = self.scalar(sets::MOVED)?;
        self.count(2..=2)?;
        if self.vector() > 1 {
            return self.move_vector(scalar);
        }
        match (self.operand(0), self.operand(1)) {
            (Operand::Vector(_), _) => {
                self.pack(0, scalar)?;
                self.moved_source(scalar)
            }
            (_, Operand::Vector(_)) => {
                self.destination(0, scalar, Width::Exact)?;
                self.pack(1, scalar)
            }
            _ => {
                self.destination(0, scalar, Width::Exact)?;
                self.moved_source(scalar)
            }
        }
    }

    /// Checks the source of a move, which is not a vector.
    fn moved_source(&self, scalar: ScalarType) -> Result<(), Error> {
        match self.operand(1) {
            Operand::Special(register) if special_fits(*register, scalar) => Ok(()),
            Operand::Symbol(symbol, 0) if self.address_fits(*symbol, scalar) => Ok(()),
            Operand::Special(register) => {
                let expected = format!("a special register as wide as .{}", scalar.name());
                let description = format!("one of {} bits", register.bits());
                Err(self.operand_mismatch(1, expected, &description))
            }
            _ => self.source(1, scalar, Width::Exact),
        }
    }

    /// `mov.v2`, `mov.v4`: element by element.
    fn move_vector(&self, scalar: ScalarType) -> Result<(), Error> {
        let count = self.vector();
        for index in 0..2 {
            let is_written = index == 0;
            let is_vector = matches!(self.operand(index), Operand::Vector(elements)
            if elements.len() == count
                && elements.iter().all(|element| match element {
                    Operand::Sink => is_written,
                    Operand::Special(register) => !is_written && special_fits(*register, scalar),
                    Operand::Register(_) | Operand::Element(..) => {
                        self.value_fits(element, scalar, Width::Exact)
                    }
                    other => !is_written && self.value_fits(other, scalar, Width::Exact),
                }));
            if !is_vector || scalar == ScalarType::Pred || scalar.bits() < 16 {
                return Err(self.operand_error(
                    index,
                    format!("a vector of {count} elements of type .{}", scalar.name()),
                ));
            }
        }
        Ok(())
    }

    /// Checks a vector whose elements fill a value of type `scalar`.
    fn pack(&self, index: usize, scalar: ScalarType) -> Result<(), Error> {
        if self.is_packed(index, scalar) {
            return Ok(());
        }
        Err(self.operand_error(
            index,
            format!("2 or 4 elements that fill .{}", scalar.name()),
        ))
    }

    fn is_packed(&self, index: usize, scalar: ScalarType) -> bool {
        let Operand::Vector(elements) = self.operand(index) else {
            return false;
        };
        let count = u32::try_from(elements.len()).unwrap_or(u32::MAX);
        let is_source = index > 0;
        let registers: Vec<ScalarType> = elements
            .iter()
            .filter_map(|element| match element {
                Operand::Register(id) | Operand::Element(id, _) => Some(self.register(*id)),
                _ => None,
            })
            .collect();
        // Typed integers and floating-point numbers are not packed together.
        let are_alike = registers
            .iter()
            .all(|a| registers.iter().all(|b| fits(*a, *b, Width::Exact)));
        let part = registers.first().copied();
        matches!(count, 2 | 4)
            && scalar.class() == ScalarClass::Bits
            && are_alike
            && part
                .is_none_or(|part| part != ScalarType::Pred && part.bits() * count == scalar.bits())
            && elements.iter().all(|element| match element {
                Operand::Register(_) | Operand::Element(..) => true,
                Operand::Special(register) => is_source && register.bits() * count == scalar.bits(),
                Operand::Integer(_) => is_source,
                Operand::Single(_) => is_source && count * 32 == scalar.bits(),
                Operand::Double(_) => {
                    is_source && (count * 64 == scalar.bits() || part == Some(ScalarType::F32))
                }
                // A source of 32 bits may have parts that are undefined.
                Operand::Sink => part.is_some() && (!is_source || scalar.bits() == 32),
                _ => false,
            })
    }

    /// Returns `true` if an address fits the type: 64 bits, or 32 for functions and the small
    /// spaces. 16 bits are the low ones of any address.
    fn address_fits(&self, symbol: Symbol, scalar: ScalarType) -> bool {
        let is_small = self.symbol_space(symbol) != Some(Space::Global);
        scalar.is_integer_like()
            && (matches!(scalar.bits(), 16 | 64) || is_small && scalar.bits() == 32)
    }

    /// `cvta`
    pub(super) fn convert_address(&self) -> Result<(), Error> {
        let scalar = self.scalar(&[ScalarType::U64])?;
        if self.space().is_none() {
            return Err(self.error("missing state space, such as '.global'"));
        }
        self.count(2..=2)?;
        self.destination(0, scalar, Width::Exact)?;
        match self.operand(1) {
            Operand::Symbol(symbol, _) if !self.has_keyword(Keyword::To) => {
                self.variable_space(1, *symbol)
            }
            Operand::Symbol(Symbol::Function(_), 0) => Ok(()),
            _ => self.source(1, scalar, Width::Exact),
        }
    }

    /// `vote`
    pub(super) fn vote(&self) -> Result<(), Error> {
        self.is_sync()?;
        self.any_form()
    }

    /// Returns `true` for an instruction with `.sync`, which an instruction of a warp needs on
    /// newer devices.
    fn is_sync(&self) -> Result<bool, Error> {
        let is_sync = self.has_keyword(Keyword::Sync);
        if !is_sync && self.module.target.architecture >= SYNC_ARCHITECTURE {
            return Err(self.error("'.sync' is required from sm_70 on"));
        }
        Ok(is_sync)
    }

    /// `shfl`
    pub(super) fn shuffle(&self) -> Result<(), Error> {
        let scalar = self.scalar(&[ScalarType::B32])?;
        if self
            .find_modifier(|modifier| matches!(modifier, Modifier::Shuffle(_)))
            .is_none()
        {
            return Err(self.error("missing '.up', '.down', '.bfly' or '.idx'"));
        }
        let count = if self.is_sync()? { 5 } else { 4 };
        self.count(count..=count)?;
        match self.operand(0) {
            Operand::Pair(Some(id), _) if self.register_fits(*id, scalar, Width::Exact) => {}
            _ => self.destination(0, scalar, Width::Exact)?,
        }
        self.source(1, scalar, Width::Exact)?;
        (2..count).try_for_each(|index| self.source(index, ScalarType::B32, Width::Exact))
    }
}

/// Returns `true` if a special register can be read as `scalar`: `.u16` reads the low half, and the
/// grid's id had 32 bits in earlier versions.
fn special_fits(register: SpecialRegister, scalar: ScalarType) -> bool {
    if register.bits() == 1 {
        return scalar == ScalarType::Pred;
    }
    let widths = scalar.bits() == register.bits()
        || scalar.bits() == 16 && register.bits() == 32
        || scalar.bits() == 32 && register == SpecialRegister::Gridid;
    scalar.is_integer_like() && widths
}

//! Memory ordering and cache suffixes of loads and stores, and their combinations.

use super::Context;
use crate::syntax::error::Error;
use crate::syntax::modifier::{CacheLevel, CacheOperator, Modifier, Semantics, Space};
use crate::syntax::opcode::Opcode;
use crate::syntax::scalar::ScalarType;

/// The maximum number of bits of an access.
const WIDEST: u32 = 128;
/// The maximum number of bits of an access to device memory.
const WIDEST_OF_DEVICE: u32 = 256;

impl Context<'_> {
    /// Checks the suffixes of a load or store of `count` elements.
    pub(super) fn manner(&self, scalar: ScalarType, count: usize) -> Result<(), Error> {
        self.width_of_all(scalar, count)?;
        self.order(count)?;
        let evicts = self
            .find(|modifier| matches!(modifier, Modifier::Evict(CacheLevel::L2, _)).then_some(()))
            .is_some();
        if evicts && scalar.bits() * count as u32 <= WIDEST {
            return Err(self.lacks("256 bits with an L2 eviction priority"));
        }
        self.caching()
    }

    fn is_load(&self) -> bool {
        self.instruction.opcode != Opcode::St
    }

    /// Returns the state space that the instruction names.
    pub(super) fn space(&self) -> Option<Space> {
        self.find(|modifier| match modifier {
            Modifier::Space(space) => Some(space),
            _ => None,
        })
    }

    fn semantics(&self) -> Option<Semantics> {
        self.find(|modifier| match modifier {
            Modifier::Semantics(semantics) => Some(semantics),
            _ => None,
        })
    }

    fn find<T>(&self, pick: impl Fn(Modifier) -> Option<T>) -> Option<T> {
        self.instruction
            .modifiers
            .iter()
            .find_map(|modifier| pick(*modifier))
    }

    fn width_of_all(&self, scalar: ScalarType, count: usize) -> Result<(), Error> {
        let bits = scalar.bits() * count as u32;
        let is_device = matches!(self.space(), None | Some(Space::Global))
            && matches!(scalar.bits(), 32 | 64)
            && self.instruction.opcode != Opcode::Ldu;
        let most = if is_device { WIDEST_OF_DEVICE } else { WIDEST };
        if bits > most {
            Err(self.lacks(format!("at most {most} bits, not {bits},")))
        } else {
            Ok(())
        }
    }

    fn order(&self, count: usize) -> Result<(), Error> {
        let semantics = self.semantics();
        let strongest = if self.is_load() {
            Semantics::Acquire
        } else {
            Semantics::Release
        };
        let is_strong = match semantics {
            None | Some(Semantics::Weak) => false,
            Some(found) if found == Semantics::Relaxed || found == strongest => true,
            Some(_) => {
                return Err(self.lacks(format!("'.weak', '.relaxed' or '.{}'", strongest.name())));
            }
        };
        let has_scope = self
            .find(|modifier| matches!(modifier, Modifier::Scope(_)).then_some(()))
            .is_some();
        if is_strong != has_scope {
            let expected = if is_strong {
                "a scope such as '.gpu'"
            } else {
                "semantics such as '.relaxed'"
            };
            return Err(self.lacks(expected));
        }
        let orders = is_strong || self.has(Modifier::Volatile);
        let has_order = matches!(
            self.space(),
            None | Some(Space::Global | Space::Shared | Space::SharedCta | Space::SharedCluster)
        );
        // Compilers keep volatile variables of a thread in memory.
        let is_volatile_local = !is_strong && self.space() == Some(Space::Local);
        if orders && !has_order && !is_volatile_local {
            return Err(self.lacks("memory that other threads share"));
        }
        if self.has(Modifier::Mmio) {
            self.memory_mapped(semantics, count)
        } else {
            Ok(())
        }
    }

    /// Checks `.mmio`: a single value in a single access, with system scope.
    fn memory_mapped(&self, semantics: Option<Semantics>, count: usize) -> Result<(), Error> {
        let is_system = self.has(Modifier::Scope(crate::syntax::modifier::Scope::System));
        let is_device = matches!(self.space(), None | Some(Space::Global));
        if semantics == Some(Semantics::Relaxed) && is_system && is_device && count == 1 {
            return Ok(());
        }
        Err(self.lacks("'.relaxed.sys', device memory and one value with '.mmio'"))
    }

    fn caching(&self) -> Result<(), Error> {
        use CacheOperator as C;
        let allowed: &[C] = if self.is_load() {
            &[C::All, C::Global, C::Streaming, C::LastUse, C::Volatile]
        } else {
            &[C::WriteBack, C::Global, C::Streaming, C::WriteThrough]
        };
        let operator = self.find(|modifier| match modifier {
            Modifier::Cache(operator) => Some(operator),
            _ => None,
        });
        if operator.is_some_and(|operator| !allowed.contains(&operator)) {
            return Err(self.lacks("a cache operator of the instruction"));
        }
        let semantics = self.semantics();
        let is_volatile = self.has(Modifier::Volatile);
        let has_order =
            is_volatile || semantics.is_some_and(|semantics| semantics != Semantics::Weak);
        let is_constant = self.has(Modifier::NonCoherent);
        if is_constant && (!self.is_load() || self.space() != Some(Space::Global)) {
            return Err(self.lacks("a load of '.global' with '.nc'"));
        }
        if is_constant && matches!(operator, Some(C::LastUse | C::Volatile)) {
            return Err(self.lacks("'.ca', '.cg' or '.cs' with '.nc'"));
        }
        if has_order && operator.is_some() || (is_volatile || semantics.is_some()) && is_constant {
            return Err(self.lacks("either memory semantics or a cache operator"));
        }
        Ok(())
    }
}

//! Memory ordering and cache suffixes of loads and stores, and their combinations.

use super::Context;
use crate::syntax::error::Error;
use crate::syntax::modifier::{CacheLevel, CacheOperator, Modifier, Semantics, Space};
use crate::syntax::opcode::Opcode;
use crate::syntax::scalar::ScalarType;

/// The maximum number of bits of an access.
const MAX_BITS: u32 = 128;
/// The maximum number of bits of an access to device memory.
const MAX_DEVICE_BITS: u32 = 256;

impl Context<'_> {
    /// Checks the suffixes of a load or store of `count` elements.
    pub(super) fn access_suffixes(&self, scalar: ScalarType, count: usize) -> Result<(), Error> {
        self.access_width(scalar, count)?;
        self.order(count)?;
        let has_l2_eviction = self
            .find_modifier(|modifier| matches!(modifier, Modifier::Evict(CacheLevel::L2, _)))
            .is_some();
        if has_l2_eviction && scalar.bits() * count as u32 <= MAX_BITS {
            return Err(self.error("an L2 eviction priority requires a 256-bit access"));
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

    pub(super) fn semantics(&self) -> Option<Semantics> {
        self.find(|modifier| match modifier {
            Modifier::Semantics(semantics) => Some(semantics),
            _ => None,
        })
    }

    /// Returns the first result of `pick` for a modifier.
    pub(super) fn find<T>(&self, pick: impl Fn(Modifier) -> Option<T>) -> Option<T> {
        self.instruction
            .modifiers
            .iter()
            .find_map(|modifier| pick(*modifier))
    }

    fn access_width(&self, scalar: ScalarType, count: usize) -> Result<(), Error> {
        let bits = scalar.bits() * count as u32;
        let is_device = matches!(self.space(), None | Some(Space::Global))
            && matches!(scalar.bits(), 32 | 64)
            && self.instruction.opcode != Opcode::Ldu;
        let max_bits = if is_device { MAX_DEVICE_BITS } else { MAX_BITS };
        if bits > max_bits {
            return Err(self.error(format!(
                "the access is too wide (maximum {max_bits} bits, found {bits})"
            )));
        }
        Ok(())
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
            Some(semantics) if semantics == Semantics::Relaxed || semantics == strongest => true,
            Some(semantics) => {
                return Err(self.error(format!(
                    "unsupported semantics '.{}' (expected '.weak', '.relaxed' or '.{}')",
                    semantics.name(),
                    strongest.name()
                )));
            }
        };
        let has_scope = self
            .find_modifier(|modifier| matches!(modifier, Modifier::Scope(_)))
            .is_some();
        if is_strong && !has_scope {
            return Err(self.error("missing scope, such as '.gpu'"));
        }
        if has_scope && !is_strong {
            return Err(self.error("a scope requires semantics, such as '.relaxed'"));
        }
        let orders = is_strong || self.has(Modifier::Volatile);
        let has_order = matches!(
            self.space(),
            None | Some(Space::Global | Space::Shared | Space::SharedCta | Space::SharedCluster)
        );
        // Compilers keep volatile variables of a thread in memory.
        let is_volatile_local = !is_strong && self.space() == Some(Space::Local);
        if orders && !has_order && !is_volatile_local {
            return Err(self.error("memory semantics require '.global' or '.shared' memory"));
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
        Err(self.error("'.mmio' requires '.relaxed.sys', '.global' memory and a single value"))
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
        if let Some(operator) = operator
            && !allowed.contains(&operator)
        {
            return Err(self.error(format!("unsupported cache operator '.{}'", operator.name())));
        }
        let semantics = self.semantics();
        let is_volatile = self.has(Modifier::Volatile);
        let has_order =
            is_volatile || semantics.is_some_and(|semantics| semantics != Semantics::Weak);
        let is_constant = self.has(Modifier::NonCoherent);
        if is_constant && (!self.is_load() || self.space() != Some(Space::Global)) {
            return Err(self.error("'.nc' requires a load from '.global'"));
        }
        if is_constant && matches!(operator, Some(C::LastUse | C::Volatile)) {
            return Err(self.error("'.nc' is supported only with '.ca', '.cg' or '.cs'"));
        }
        if has_order && operator.is_some() || (is_volatile || semantics.is_some()) && is_constant {
            return Err(self.error("memory semantics exclude cache operators and '.nc'"));
        }
        Ok(())
    }
}

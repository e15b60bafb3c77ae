//! Stores and reductions that complete asynchronously, with or without an mbarrier object.

use super::{Context, MISSING_OPERATION, Width, sets};
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Modifier, Operation, Scope, Semantics, Space};
use crate::syntax::operand::Operand;
use crate::syntax::scalar::ScalarType;

impl Context<'_> {
    /// `red.async`
    pub(super) fn asynchronous_reduction(&self) -> Result<(), Error> {
        let allowed: &[ScalarType] = match self.operation() {
            Some(Operation::Increment | Operation::Decrement) => &[ScalarType::U32],
            Some(Operation::Min | Operation::Max) => &[ScalarType::U32, ScalarType::S32],
            Some(Operation::And | Operation::Or | Operation::Xor) => &[ScalarType::B32],
            Some(Operation::Add) => sets::ASYNCHRONOUS_SUMS,
            _ => return Err(self.error(MISSING_OPERATION)),
        };
        self.asynchronous(allowed)
    }

    /// `st.async` and `red.async` of these types.
    pub(super) fn asynchronous(&self, allowed: &[ScalarType]) -> Result<(), Error> {
        let completes = self.has_keyword(Keyword::MbarrierCompleteTxBytes);
        let is_reduction = !std::ptr::eq(allowed, sets::ASYNCHRONOUS);
        let scalar = self.scalar(if completes && !is_reduction {
            sets::COMPLETED
        } else {
            allowed
        })?;
        let count = if completes { 3 } else { 2 };
        self.count(count..=count)?;
        self.address(0)?;
        if completes && !matches!(self.operand(2), Operand::Address(_)) {
            return Err(self.operand_error(2, "the address of an mbarrier object in brackets"));
        }
        let has_vector = completes && !is_reduction;
        if self.vector() > 1 && !(has_vector && self.vector() as u64 * scalar.bytes() <= 16) {
            return Err(self.error("vectors require an mbarrier object, and hold at most 16 bytes"));
        }
        if self.vector() > 1 {
            self.elements(1, scalar, Width::Exact)?;
        } else {
            self.source(1, scalar, Width::Exact)?;
        }
        self.asynchronous_space(completes)?;
        self.asynchronous_order(completes, is_reduction)
    }

    fn asynchronous_space(&self, completes: bool) -> Result<(), Error> {
        match self.space() {
            None => Ok(()),
            Some(Space::SharedCluster) if completes => Ok(()),
            Some(Space::Global) if !completes => Ok(()),
            Some(_) if completes => {
                Err(self.error("an mbarrier object requires '.shared::cluster'"))
            }
            Some(_) => Err(self.error("'.global' is required without an mbarrier object")),
        }
    }

    /// Checks the semantics and scope of the access. With an mbarrier object, a store is weak and a
    /// reduction has the scope of the cluster. Without one, the scope is wider.
    fn asynchronous_order(&self, completes: bool, is_reduction: bool) -> Result<(), Error> {
        let scope = self.find(|modifier| match modifier {
            Modifier::Scope(scope) => Some(scope),
            _ => None,
        });
        let is_wide = matches!(scope, Some(Scope::Gpu | Scope::System));
        let is_mmio = self.has(Modifier::Mmio);
        let is_valid = match self.semantics() {
            _ if is_mmio && (completes || scope != Some(Scope::System)) => false,
            Some(Semantics::Release) => !completes && is_wide,
            Some(Semantics::Relaxed) if is_reduction && completes => scope == Some(Scope::Cluster),
            Some(Semantics::Relaxed) => is_reduction && is_wide && !is_mmio,
            None | Some(Semantics::Weak) => !is_reduction && scope.is_none() && !is_mmio,
            Some(_) => false,
        };
        if is_valid {
            Ok(())
        } else {
            Err(self.error("unsupported semantics or scope for an asynchronous access"))
        }
    }
}

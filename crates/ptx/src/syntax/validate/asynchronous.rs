//! Stores and reductions that complete asynchronously, with or without an mbarrier object.

use super::{Context, Width, sets};
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Modifier, Operation, Scope, Semantics, Space};
use crate::syntax::operand::Operand;
use crate::syntax::scalar::ScalarType;

impl Context<'_> {
    /// `red.async`
    pub(super) fn asynchronous_reduction(&self) -> Result<(), Error> {
        let has = |operation| self.has(Modifier::Operation(operation));
        let allowed: &[ScalarType] = match () {
            () if has(Operation::Increment) || has(Operation::Decrement) => &[ScalarType::U32],
            () if has(Operation::Min) || has(Operation::Max) => &[ScalarType::U32, ScalarType::S32],
            () if has(Operation::And) || has(Operation::Or) || has(Operation::Xor) => {
                &[ScalarType::B32]
            }
            () if has(Operation::Add) => sets::ASYNCHRONOUS_SUMS,
            () => return Err(self.lacks("an operation such as '.add'")),
        };
        self.asynchronous(allowed)
    }

    /// `st.async` and `red.async` of these types.
    pub(super) fn asynchronous(&self, allowed: &[ScalarType]) -> Result<(), Error> {
        let completes = self.has(Modifier::Keyword(Keyword::MbarrierCompleteTxBytes));
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
            return Err(self.wrong(2, "the address of an mbarrier object in brackets"));
        }
        let has_vector = completes && !is_reduction;
        if self.vector() > 1 && !(has_vector && self.vector() as u64 * scalar.bytes() <= 16) {
            return Err(self.lacks("at most 16 bytes with an mbarrier object, or a single number"));
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
            Some(_) if completes => Err(self.lacks("'.shared::cluster' with an mbarrier object")),
            Some(_) => Err(self.lacks("'.global' without an mbarrier object")),
        }
    }

    /// Checks the semantics and scope of the access. With an mbarrier object, a store is weak and a reduction has the scope of the cluster.
    /// Without one, the scope is wider.
    fn asynchronous_order(&self, completes: bool, is_reduction: bool) -> Result<(), Error> {
        let find = |pick: fn(&Modifier) -> bool| {
            self.instruction
                .modifiers
                .iter()
                .find(|it| pick(it))
                .copied()
        };
        let semantics = find(|it| matches!(it, Modifier::Semantics(_)));
        let scope = find(|it| matches!(it, Modifier::Scope(_)));
        let wide = matches!(scope, Some(Modifier::Scope(Scope::Gpu | Scope::System)));
        let is_mmio = self.has(Modifier::Mmio);
        let suits = match semantics {
            _ if is_mmio && (completes || scope != Some(Modifier::Scope(Scope::System))) => false,
            Some(Modifier::Semantics(Semantics::Release)) => !completes && wide,
            Some(Modifier::Semantics(Semantics::Relaxed)) if is_reduction && completes => {
                scope == Some(Modifier::Scope(Scope::Cluster))
            }
            Some(Modifier::Semantics(Semantics::Relaxed)) => is_reduction && wide && !is_mmio,
            None | Some(Modifier::Semantics(Semantics::Weak)) => {
                !is_reduction && scope.is_none() && !is_mmio
            }
            Some(_) => false,
        };
        if suits {
            Ok(())
        } else {
            Err(self.lacks("the semantics and scope of asynchronous accesses"))
        }
    }
}

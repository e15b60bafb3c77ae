//! mbarrier operations: semantics, space and results.

use super::Context;
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Modifier, Scope, Semantics, Space};
use crate::syntax::operand::Operand;

impl Context<'_> {
    /// `mbarrier`
    pub(super) fn barrier_object(&self) -> Result<(), Error> {
        let has = |keyword| self.has(Modifier::Keyword(keyword));
        let arrives = has(Keyword::Arrive) || has(Keyword::ArriveDrop);
        let waits = has(Keyword::TestWait) || has(Keyword::TryWait);
        let counts_bytes = has(Keyword::ExpectTx) || has(Keyword::CompleteTx);
        let no_complete = has(Keyword::NoComplete);
        if no_complete && (!arrives || counts_bytes) {
            return Err(self.lacks("'.arrive' or '.arrive_drop' alone with '.noComplete'"));
        }
        let orders: &[Semantics] = match () {
            () if no_complete => &[Semantics::Release],
            () if arrives => &[Semantics::Release, Semantics::Relaxed],
            () if waits => &[Semantics::Acquire, Semantics::Relaxed],
            () if counts_bytes => &[Semantics::Relaxed],
            () => &[],
        };
        let scopes: &[Scope] = if no_complete {
            &[Scope::Cta]
        } else {
            &[Scope::Cta, Scope::Cluster]
        };
        for modifier in &self.instruction.modifiers {
            let suits = match modifier {
                Modifier::Semantics(semantics) => orders.contains(semantics),
                Modifier::Scope(scope) => !orders.is_empty() && scopes.contains(scope),
                _ => true,
            };
            if !suits {
                return Err(self.lacks("valid semantics and scope"));
            }
        }
        self.barrier_space(arrives, waits, counts_bytes, no_complete)
    }

    /// Checks the space. Operations on other blocks' objects return no state.
    fn barrier_space(
        &self,
        arrives: bool,
        waits: bool,
        counts_bytes: bool,
        no_complete: bool,
    ) -> Result<(), Error> {
        match self.space() {
            None | Some(Space::Shared | Space::SharedCta) => Ok(()),
            Some(Space::SharedCluster) if no_complete || waits || !(arrives || counts_bytes) => {
                Err(self.lacks("an mbarrier object of the thread's own block"))
            }
            Some(Space::SharedCluster)
                if arrives
                    && matches!(
                        self.instruction.operands.first(),
                        Some(Operand::Register(_))
                    ) =>
            {
                Err(self.wrong(0, "'_', because other blocks' objects return no state"))
            }
            Some(Space::SharedCluster) => Ok(()),
            Some(_) => Err(self.lacks("an mbarrier object in shared memory")),
        }
    }
}

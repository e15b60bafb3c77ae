//! mbarrier operations: semantics, space and results.

use super::Context;
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Modifier, Scope, Semantics, Space};
use crate::syntax::operand::Operand;

/// The kind of an mbarrier operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Arrive,
    Wait,
    CountBytes,
    Other,
}

impl Context<'_> {
    /// `mbarrier`
    pub(super) fn barrier_object(&self) -> Result<(), Error> {
        let counts_bytes =
            self.has_keyword(Keyword::ExpectTx) || self.has_keyword(Keyword::CompleteTx);
        let action = if self.has_keyword(Keyword::Arrive) || self.has_keyword(Keyword::ArriveDrop) {
            Action::Arrive
        } else if self.has_keyword(Keyword::TestWait) || self.has_keyword(Keyword::TryWait) {
            Action::Wait
        } else if counts_bytes {
            Action::CountBytes
        } else {
            Action::Other
        };
        let no_complete = self.has_keyword(Keyword::NoComplete);
        if no_complete && (action != Action::Arrive || counts_bytes) {
            return Err(self.error("'.noComplete' requires '.arrive' or '.arrive_drop' alone"));
        }
        let semantics: &[Semantics] = match action {
            Action::Arrive if no_complete => &[Semantics::Release],
            Action::Arrive => &[Semantics::Release, Semantics::Relaxed],
            Action::Wait => &[Semantics::Acquire, Semantics::Relaxed],
            Action::CountBytes => &[Semantics::Relaxed],
            Action::Other => &[],
        };
        let scopes: &[Scope] = match action {
            Action::Other => &[],
            _ if no_complete => &[Scope::Cta],
            _ => &[Scope::Cta, Scope::Cluster],
        };
        for modifier in &self.instruction.modifiers {
            match modifier {
                Modifier::Semantics(found) if !semantics.contains(found) => {
                    return Err(self.error(format!("unsupported semantics ('.{}')", found.name())));
                }
                Modifier::Scope(found) if !scopes.contains(found) => {
                    return Err(self.error(format!("unsupported scope ('.{}')", found.name())));
                }
                _ => {}
            }
        }
        match self.space() {
            None | Some(Space::Shared | Space::SharedCta) => Ok(()),
            Some(Space::SharedCluster) => self.remote_barrier_object(action, no_complete),
            Some(_) => Err(self.error("the mbarrier object must be in shared memory")),
        }
    }

    /// Checks an operation on the object of another block of the cluster. It returns no state.
    fn remote_barrier_object(&self, action: Action, no_complete: bool) -> Result<(), Error> {
        if no_complete || matches!(action, Action::Wait | Action::Other) {
            return Err(self.error("the mbarrier object must be in the thread's own block"));
        }
        let returns_state = matches!(
            self.instruction.operands.first(),
            Some(Operand::Register(_))
        );
        if action == Action::Arrive && returns_state {
            return Err(self.operand_error(0, "'_', because other blocks' objects return no state"));
        }
        Ok(())
    }
}

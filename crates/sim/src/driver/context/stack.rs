//! The context stack of each thread.

use std::cell::RefCell;

use curium_sys::{CUcontext, CUctx_st, CUresult};

use crate::argument::Pointer;
use crate::driver::{Context, Driver, Result};
use crate::handle::Id;
use crate::slot;

/// The contexts of one thread in one driver; the last one is current.
struct Stack {
    /// The driver that the stack belongs to: a later one in the same slot starts with an empty stack.
    driver: u64,
    contexts: Vec<Id<Context>>,
}

thread_local! {
    static STACKS: RefCell<[Stack; slot::COUNT]> =
        const { RefCell::new([const { Stack { driver: 0, contexts: Vec::new() } }; slot::COUNT]) };
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuCtxGetCurrent(&self, context: Pointer<CUcontext>) -> Result {
        context.write(self.current_raw())
    }

    pub(crate) fn cuCtxSetCurrent(&self, context: Pointer<CUctx_st>) -> Result {
        if context.is_null() {
            self.pop();
            return Ok(());
        }
        let id = Id::from(context);
        self.lock().context(id)?;
        self.pop();
        self.push(id);
        Ok(())
    }

    pub(crate) fn cuCtxPushCurrent_v2(&self, context: Pointer<CUctx_st>) -> Result {
        let id = Id::from(context.required()?);
        self.lock().context(id)?;
        self.push(id);
        Ok(())
    }

    pub(crate) fn cuCtxPopCurrent_v2(&self, context: Pointer<CUcontext>) -> Result {
        let id = self.pop().ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
        context.write_if_not_null(id.as_raw());
        Ok(())
    }
}

impl Driver {
    /// Returns the calling thread's current context, even if it is not valid any more.
    pub(crate) fn top(&self) -> Option<Id<Context>> {
        self.with_stack(|contexts| contexts.last().copied())
            .flatten()
    }

    /// Returns `true` if a context is in the calling thread's stack.
    pub(crate) fn is_stacked(&self, context: Id<Context>) -> bool {
        self.with_stack(|contexts| contexts.contains(&context))
            .unwrap_or_default()
    }

    pub(crate) fn push(&self, context: Id<Context>) {
        self.with_stack(|contexts| contexts.push(context));
    }

    pub(crate) fn pop(&self) -> Option<Id<Context>> {
        self.with_stack(Vec::pop).flatten()
    }

    /// Applies a function to the calling thread's stack; a thread that is ending has none.
    fn with_stack<R>(&self, operation: impl FnOnce(&mut Vec<Id<Context>>) -> R) -> Option<R> {
        STACKS
            .try_with(|stacks| {
                let stack = &mut stacks.borrow_mut()[self.slot];
                if stack.driver != self.serial {
                    *stack = Stack {
                        driver: self.serial,
                        contexts: Vec::new(),
                    };
                }
                operation(&mut stack.contexts)
            })
            .ok()
    }
}

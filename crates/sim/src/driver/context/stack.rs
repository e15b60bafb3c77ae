//! The state of each thread: the stack of contexts.

use std::cell::RefCell;

use crate::config::MAX_DRIVERS;
use crate::context::Context;
use crate::handle::Id;

/// The contexts of one thread in one driver; the last one is current.
struct Stack {
    /// The driver that the stack belongs to: a later one in the same slot starts with an empty
    /// stack.
    driver: u64,
    pub(crate) contexts: Vec<Id<Context>>,
}

thread_local! {
    static STACKS: RefCell<[Stack; MAX_DRIVERS]> =
        const { RefCell::new([const { Stack { driver: 0, contexts: Vec::new() } }; MAX_DRIVERS]) };
}

/// The stack of contexts and the capture mode that a driver stores for the calling thread.
#[derive(Clone, Copy)]
pub(crate) struct ThreadState {
    pub(crate) slot: usize,
    pub(crate) serial: u64,
}

impl ThreadState {
    /// Returns the calling thread's current context, even if it is not valid any more.
    pub(crate) fn top(&self) -> Option<Id<Context>> {
        self.with_stack(|contexts| contexts.last().copied())
            .flatten()
    }

    pub(crate) fn push(&self, context: Id<Context>) {
        self.with_stack(|contexts| contexts.push(context));
    }

    pub(crate) fn pop(&self) -> Option<Id<Context>> {
        self.with_stack(Vec::pop).flatten()
    }

    /// Applies a function to the calling thread's stack; a thread that is ending has none.
    pub(crate) fn with_stack<R>(
        &self,
        operation: impl FnOnce(&mut Vec<Id<Context>>) -> R,
    ) -> Option<R> {
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

//! The device runtime functions that kernels call.

use super::program::{Callee, Function, Program};

/// The device runtime functions whose limits are fixed by the first launch that uses them:
/// `printf`, and `malloc` with `free`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuntimeUse {
    /// Calls `vprintf`.
    pub prints: bool,
    /// Calls `malloc` or `free`.
    pub allocates: bool,
}

impl RuntimeUse {
    /// Adds the calls of other code.
    pub fn add(&mut self, other: Self) {
        self.prints |= other.prints;
        self.allocates |= other.allocates;
    }
}

impl Program {
    /// Sets the runtime use of each kernel: its own calls, and those of all functions that it calls
    /// by name.
    pub(crate) fn set_runtime_use(&mut self) {
        for kernel in &mut self.kernels {
            kernel.runtime = reachable_use(&self.functions, kernel.function);
        }
    }
}

/// Returns the runtime use of a function and of all functions that it calls by name. Calls through
/// addresses are not followed.
fn reachable_use(functions: &[Function], first: u32) -> RuntimeUse {
    let mut all = RuntimeUse::default();
    let mut pending = vec![first];
    let mut is_visited = vec![false; functions.len()];
    while let Some(index) = pending.pop() {
        let function = &functions[index as usize];
        if std::mem::replace(&mut is_visited[index as usize], true) {
            continue;
        }
        all.add(function.runtime);
        pending.extend(function.calls.iter().filter_map(|call| match call.callee {
            Callee::Direct(callee) => Some(callee),
            Callee::Indirect(_) => None,
        }));
    }
    all
}

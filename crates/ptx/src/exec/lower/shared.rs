//! Allocation of the shared variables of functions.

use crate::syntax::{
    Base, Call, Callee, Function, FunctionId, FunctionKind, Module, Opcode, Operand, Space, Symbol,
    Variable,
};

/// Returns the start of each function's own shared variables, by its index. Those at module scope end at `module_end`.
///
/// Each device function's variables follow those of the earlier ones, so none overlap, whichever functions call each other. A kernel's
/// variables follow those of all functions that it may call.
pub(super) fn bases(
    module: &Module,
    module_end: u64,
    resolve: impl Fn(FunctionId) -> FunctionId,
) -> Vec<u64> {
    let mut bases = vec![0; module.functions.len()];
    let mut ends = vec![0; module.functions.len()];
    let mut end = module_end;
    for (index, function) in module.functions.iter().enumerate() {
        if function.kind == FunctionKind::Device {
            bases[index] = end;
            if own(function).next().is_some() {
                end = own(function).fold(end, |end, variable| {
                    end.next_multiple_of(variable.align.max(1))
                        .saturating_add(variable.size)
                });
                ends[index] = end;
            }
        }
    }
    for (index, function) in module.functions.iter().enumerate() {
        if function.kind == FunctionKind::Entry {
            let base = if uses_module_scope(module, function) {
                module_end
            } else {
                0
            };
            // Most modules have no such variables, and need no search.
            let reached = if end > module_end {
                reached(module, index, &resolve)
            } else {
                Vec::new()
            };
            bases[index] = reached
                .into_iter()
                .map(|callee| ends[callee])
                .fold(base, u64::max);
        }
    }
    bases
}

/// Returns the shared variables that a function declares, without dynamic memory.
fn own(function: &Function) -> impl Iterator<Item = &Variable> {
    let is_shared =
        |variable: &&Variable| matches!(variable.space, Space::Shared | Space::SharedCta);
    function
        .variables
        .iter()
        .filter(is_shared)
        .filter(|variable| variable.size > 0)
}

/// Returns the indices of the device functions that a kernel may call: all of them if it may make an indirect call.
fn reached(
    module: &Module,
    kernel: usize,
    resolve: impl Fn(FunctionId) -> FunctionId,
) -> Vec<usize> {
    let (mut found, mut next) = (vec![kernel], 0);
    let mut is_found = vec![false; module.functions.len()];
    while let Some(&caller) = found.get(next) {
        next += 1;
        for call in calls(&module.functions[caller]) {
            let Callee::Direct(callee) = call.callee else {
                return (0..module.functions.len()).collect();
            };
            let callee = resolve(callee).0 as usize;
            if !std::mem::replace(&mut is_found[callee], true) {
                found.push(callee);
            }
        }
    }
    found
}

fn calls(function: &Function) -> impl Iterator<Item = &Call> {
    function
        .body
        .iter()
        .flatten()
        .filter_map(|instruction| match instruction.operands.first() {
            Some(Operand::Call(call)) => Some(&**call),
            _ => None,
        })
}

/// Returns `true` if a function may access shared variables at module scope: by name, or through a call.
fn uses_module_scope(module: &Module, function: &Function) -> bool {
    let named = |symbol: Symbol| match symbol {
        Symbol::Global(id) => {
            let space = module.variable(id).space;
            matches!(
                space,
                Space::Shared | Space::SharedCta | Space::SharedCluster
            ) && !module.variable(id).is_unsized
        }
        _ => false,
    };
    let body = function.body.iter().flatten();
    body.into_iter().any(|instruction| {
        instruction.opcode == Opcode::Call
            || instruction.operands.iter().any(|operand| match operand {
                Operand::Symbol(symbol, _) => named(*symbol),
                Operand::Address(address) => match address.base {
                    Base::Symbol(symbol) => named(symbol),
                    _ => false,
                },
                _ => false,
            })
    })
}

//! Allocation of shared variables: those at module scope, and those of functions.

use crate::syntax::{
    Address, Base, Call, Callee, Constant, Function, FunctionId, FunctionKind, Module, Operand,
    Space, Symbol, Variable,
};

/// The layout of the shared variables at module scope.
///
/// A block has the variables that its kernel may access. Variables of which no kernel accesses both
/// can overlap, so that a module may have more of them than a block has memory.
#[derive(Default)]
pub(super) struct Layout {
    /// The offset of each variable of the module. It is 0 for those that are not in static shared
    /// memory.
    pub(super) offsets: Vec<u64>,
    /// The end of the variables that each function accesses, if it is a kernel.
    pub(super) ends: Vec<u64>,
    /// The end of all variables.
    pub(super) end: u64,
    /// The kernels that may access each variable, by the indices of their functions.
    pub(super) kernels: Vec<Vec<usize>>,
}

impl Layout {
    /// Places the variables. None counts as larger than `max_size`.
    pub(super) fn new(
        module: &Module,
        max_size: u64,
        resolve: impl Fn(FunctionId) -> FunctionId,
    ) -> Self {
        let mut layout = Self {
            offsets: vec![0; module.variables.len()],
            ends: vec![0; module.functions.len()],
            end: 0,
            kernels: vec![Vec::new(); module.variables.len()],
        };
        if !module.variables.iter().any(is_static_shared) {
            return layout;
        }
        let named: Vec<Vec<bool>> = module
            .functions
            .iter()
            .map(|function| named_variables(module, function))
            .collect();
        let in_memory = variables_in_memory(module);
        // The kernels that access each variable.
        let mut kernels: Vec<Vec<usize>> = vec![Vec::new(); module.variables.len()];
        for (index, function) in module.functions.iter().enumerate() {
            if function.kind != FunctionKind::Entry {
                continue;
            }
            let reached = reached(module, index, &resolve);
            for (variable, kernels) in kernels.iter_mut().enumerate() {
                if in_memory[variable] || reached.iter().any(|callee| named[*callee][variable]) {
                    kernels.push(index);
                }
            }
        }
        for (index, variable) in module.variables.iter().enumerate() {
            if !is_static_shared(variable) {
                continue;
            }
            let start = kernels[index]
                .iter()
                .map(|kernel| layout.ends[*kernel])
                .max()
                .unwrap_or(0);
            let offset = start.next_multiple_of(variable.align.max(1));
            let end = offset.saturating_add(variable.size.min(max_size));
            layout.offsets[index] = offset;
            layout.end = layout.end.max(end);
            for kernel in &kernels[index] {
                layout.ends[*kernel] = end;
            }
        }
        layout.kernels = kernels;
        layout
    }
}

fn is_static_shared(variable: &Variable) -> bool {
    let is_shared = matches!(
        variable.space,
        Space::Shared | Space::SharedCta | Space::SharedCluster
    );
    is_shared && !variable.is_unsized && variable.size > 0
}

/// Returns for each variable of the module whether a function names it.
fn named_variables(module: &Module, function: &Function) -> Vec<bool> {
    let mut named = vec![false; module.variables.len()];
    for instruction in function.body.iter().flatten() {
        for operand in &instruction.operands {
            name_operand(operand, &mut named);
        }
    }
    named
}

fn name_operand(operand: &Operand, named: &mut [bool]) {
    match operand {
        Operand::Symbol(symbol, _) => name_symbol(*symbol, named),
        Operand::Address(address) => name_address(address, named),
        Operand::Tensor(tensor) => {
            name_address(&tensor.handle, named);
            if let Some(sampler) = &tensor.sampler {
                name_address(sampler, named);
            }
            for coordinate in &tensor.coordinates {
                name_operand(coordinate, named);
            }
        }
        Operand::Vector(operands) | Operand::VectorPair(operands, _) => {
            for operand in operands {
                name_operand(operand, named);
            }
        }
        Operand::Call(call) => {
            for operand in call.returns.iter().chain(&call.arguments) {
                name_operand(operand, named);
            }
        }
        _ => {}
    }
}

fn name_address(address: &Address, named: &mut [bool]) {
    if let Base::Symbol(symbol) = address.base {
        name_symbol(symbol, named);
    }
}

fn name_symbol(symbol: Symbol, named: &mut [bool]) {
    if let Symbol::Global(id) = symbol {
        named[id.0 as usize] = true;
    }
}

/// Returns for each variable of the module whether its address is the initial value of another,
/// from which every kernel can load it.
fn variables_in_memory(module: &Module) -> Vec<bool> {
    let mut in_memory = vec![false; module.variables.len()];
    for variable in &module.variables {
        for initial in &variable.initial {
            if let Constant::Address { symbol, .. } = initial.value {
                name_symbol(symbol, &mut in_memory);
            }
        }
    }
    in_memory
}

/// Returns the start of each function's own shared variables, by its index. Those at module scope
/// are placed by `layout`.
///
/// Each device function's variables follow those of the earlier ones, so none overlap, whichever
/// functions call each other. A kernel's variables follow those of all functions that it may call.
pub(super) fn bases(
    module: &Module,
    layout: &Layout,
    resolve: impl Fn(FunctionId) -> FunctionId,
) -> Vec<u64> {
    let module_end = layout.end;
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
            // Most modules have no such variables, and need no search.
            let reached = if end > module_end {
                reached(module, index, &resolve)
            } else {
                Vec::new()
            };
            bases[index] = reached
                .into_iter()
                .map(|callee| ends[callee])
                .fold(layout.ends[index], u64::max);
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

/// Returns the indices of the device functions that a kernel may call: all of them if it may make
/// an indirect call.
fn reached(
    module: &Module,
    kernel: usize,
    resolve: impl Fn(FunctionId) -> FunctionId,
) -> Vec<usize> {
    let mut reached = vec![kernel];
    let mut next = 0;
    let mut is_reached = vec![false; module.functions.len()];
    while let Some(&caller) = reached.get(next) {
        next += 1;
        for call in calls(&module.functions[caller]) {
            let Callee::Direct(callee) = call.callee else {
                return (0..module.functions.len()).collect();
            };
            let callee = resolve(callee).0 as usize;
            if !std::mem::replace(&mut is_reached[callee], true) {
                reached.push(callee);
            }
        }
    }
    reached
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

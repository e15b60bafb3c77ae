//! Lowering at module scope: variables and kernels.

use std::collections::HashMap;

use super::error::{LowerError, Lowered, Refusal};
use super::function::Lowerer;
use super::shared;
use super::source_map::source_map;
use super::variables::shape;
use crate::exec::RuntimeUse;
use crate::exec::check::variable::SharedVariable;
use crate::exec::machine::program::{
    Address, Checking, Global, Kernel, Param, Program, Relocation, bits, function_address,
};
use crate::exec::machine::warp_state::LOCAL_LIMIT;
use crate::exec::memory::window::SHARED_WINDOW;
use crate::syntax::{
    Constant, Function, FunctionId, FunctionKind, GlobalId, Module, Parameter, ScalarType, Space,
    Symbol, Variable,
};

/// The maximum size of a variable in device memory, which protects the host from mistakes.
const MAX_VARIABLE: u64 = 1 << 30;
/// The maximum size of a kernel's static shared memory. Devices have lower limits.
const MAX_SHARED: u64 = 256 << 10;
/// The maximum size of a kernel's parameters.
const MAX_PARAMETERS: u64 = 32_764;

/// The location of a module variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The variable with this index among the program's globals.
    Device(usize),
    /// At an offset of the block's shared memory.
    Shared(u64),
    /// The end of the kernel's static shared memory.
    DynamicShared,
}

/// The context of lowering a function.
pub(super) struct Context<'m> {
    pub(super) module: &'m Module,
    /// The location of each module variable; `None` for texture references and the like.
    places: Vec<Option<Place>>,
    /// The functions that aliases name.
    aliases: HashMap<FunctionId, FunctionId>,
    /// The layout of the shared variables at module scope.
    shared_layout: shared::Layout,
    /// The checks of accesses.
    pub(super) checking: Checking,
}

/// Lowers a module to a program.
///
/// # Errors
///
/// Returns the first instruction or declaration that the executor does not support.
pub fn lower(module: &Module) -> Result<Program, LowerError> {
    lower_with_checks(module, Checking::nothing())
}

/// Lowers a module to a program with checks. If races are checked, its kernels also report their
/// accesses to [`Watcher`](crate::exec::Watcher)s.
///
/// # Errors
///
/// Returns the same errors as [`lower`].
pub fn lower_with_checks(module: &Module, checking: Checking) -> Result<Program, LowerError> {
    let mut program = Program {
        checking,
        source: source_map(module),
        ..Program::default()
    };
    let mut context = Context::new(module, &mut program)?;
    context.checking = checking;
    let shared_bases = shared::bases(module, &context.shared_layout, |function| {
        context.resolve_alias(function)
    });
    let mut own_variables = Vec::new();
    for (index, function) in module.functions.iter().enumerate() {
        let mut lowerer = Lowerer::new(&context, function);
        let shared = lowerer
            .place_variables(shared_bases[index])
            .map_err(|refusal| LowerError::new(function.span, refusal))?;
        if function.kind == FunctionKind::Entry {
            check_size(function, "shared memory", shared, MAX_SHARED)?;
        }
        check_size(
            function,
            "parameters",
            lowerer.parameter_size(),
            MAX_PARAMETERS,
        )?;
        if function.kind == FunctionKind::Entry && function.body.is_some() {
            let name = module.text(function.name).to_owned();
            program.by_name.insert(name, program.kernels.len());
            program
                .kernels
                .push(kernel(module, function, index as u32, shared, &lowerer));
        }
        own_variables.push(lowerer.shared_variables());
        let lowered = lowerer.lower()?;
        check_size(function, "local memory", lowered.local_size, LOCAL_LIMIT)?;
        program.functions.push(lowered);
    }
    program.set_runtime_use();
    for kernel in &mut program.kernels {
        kernel.shared_variables = context.shared_variables(kernel, &own_variables);
    }
    Ok(program)
}

fn check_size(function: &Function, what: &str, bytes: u64, max: u64) -> Result<(), LowerError> {
    if bytes <= max {
        return Ok(());
    }
    let refusal = Refusal(format!(
        "{bytes} bytes of {what} exceed the maximum of {max}"
    ));
    Err(LowerError::new(function.span, refusal))
}

impl<'m> Context<'m> {
    fn new(module: &'m Module, program: &mut Program) -> Result<Self, LowerError> {
        let mut context = Self {
            module,
            places: Vec::new(),
            aliases: module
                .aliases
                .iter()
                .map(|alias| (alias.alias, alias.aliasee))
                .collect(),
            shared_layout: shared::Layout::default(),
            checking: Checking::nothing(),
        };
        context.shared_layout = shared::Layout::new(module, MAX_VARIABLE, |function| {
            context.resolve_alias(function)
        });
        for (index, variable) in module.variables.iter().enumerate() {
            let location = context
                .place(index, variable, program)
                .map_err(|refusal| LowerError::new(variable.span, refusal))?;
            context.places.push(location);
        }
        for (index, variable) in module.variables.iter().enumerate() {
            if let Some(Place::Device(global)) = context.places[index] {
                context
                    .initialize(variable, &mut program.globals[global])
                    .map_err(|refusal| LowerError::new(variable.span, refusal))?;
            }
        }
        Ok(context)
    }

    fn place(
        &self,
        index: usize,
        variable: &Variable,
        program: &mut Program,
    ) -> Lowered<Option<Place>> {
        match variable.space {
            Space::Global | Space::Const => {
                let opaque = matches!(
                    variable.scalar,
                    ScalarType::TextureReference
                        | ScalarType::SamplerReference
                        | ScalarType::SurfaceReference
                );
                if opaque {
                    return Ok(None);
                }
                if variable.size > MAX_VARIABLE {
                    let size = variable.size;
                    return Err(Refusal(format!(
                        "a variable of {size} bytes exceeds the maximum of {MAX_VARIABLE}"
                    )));
                }
                program.globals.push(Global {
                    name: self.module.text(variable.name).to_owned(),
                    size: variable.size,
                    shape: shape(variable),
                    constant: variable.space == Space::Const,
                    managed: variable.is_managed,
                    ..Global::default()
                });
                Ok(Some(Place::Device(program.globals.len() - 1)))
            }
            Space::Shared | Space::SharedCta | Space::SharedCluster => {
                if variable.is_unsized || variable.size == 0 {
                    return Ok(Some(Place::DynamicShared));
                }
                Ok(Some(Place::Shared(self.shared_layout.offsets[index])))
            }
            space => Err(Refusal(format!(
                "a variable in .{} at module scope is not supported",
                space.name()
            ))),
        }
    }

    /// Sets the initial contents of a variable and the addresses in them.
    fn initialize(&self, variable: &Variable, global: &mut Global) -> Lowered {
        global.init = vec![0; variable.size as usize];
        let size = variable.scalar.bytes() as usize;
        for initial in &variable.initial {
            let bits = match initial.value {
                Constant::Integer(integer) => integer.bits,
                Constant::Single(bits) if size == 8 => f64::from(f32::from_bits(bits)).to_bits(),
                Constant::Single(bits) => u64::from(bits),
                Constant::Double(bits) if size == 4 => {
                    u64::from((f64::from_bits(bits) as f32).to_bits())
                }
                Constant::Double(bits) => bits,
                Constant::Address {
                    symbol,
                    offset,
                    generic,
                    mask,
                } => {
                    let target = match (self.address(symbol, offset, generic)?, mask) {
                        (Address::Global(index, offset), Some(mask)) => {
                            Address::Bits(index, offset, mask)
                        }
                        (Address::Absolute(value), Some(mask)) => {
                            Address::Absolute(bits(value, mask))
                        }
                        (target, _) => target,
                    };
                    global.relocations.push(Relocation {
                        offset: initial.offset,
                        size: size as u8,
                        target,
                    });
                    continue;
                }
            };
            let start = initial.offset as usize;
            let target = global.init.get_mut(start..start + size);
            let target =
                target.ok_or_else(|| Refusal("an initial value exceeds its variable".into()))?;
            let bytes = size.min(8);
            target[..bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
        }
        Ok(())
    }

    fn address(&self, symbol: Symbol, offset: i64, generic: bool) -> Lowered<Address> {
        Ok(match symbol {
            Symbol::Function(function) => Address::Absolute(self.function_address(function)),
            Symbol::Global(id) => match self.variable_place(id)? {
                Place::Device(index) => Address::Global(index, offset),
                Place::Shared(base) => {
                    let window = if generic { SHARED_WINDOW } else { 0 };
                    Address::Absolute((window + base).wrapping_add_signed(offset))
                }
                Place::DynamicShared => {
                    return Err(Refusal(
                        "the address of dynamic shared memory is not a constant".into(),
                    ));
                }
            },
            Symbol::Local(_) => return Err(Refusal::operand("a module variable")),
        })
    }

    /// Returns the variables in the shared memory of a kernel. `own_variables` has those that each
    /// function declares.
    fn shared_variables(
        &self,
        kernel: &Kernel,
        own_variables: &[Vec<SharedVariable>],
    ) -> Vec<SharedVariable> {
        let function = kernel.function as usize;
        let mut variables = Vec::new();
        for (index, variable) in self.module.variables.iter().enumerate() {
            let offset = match self.places[index] {
                Some(Place::Shared(offset))
                    if self.shared_layout.kernels[index].contains(&function) =>
                {
                    offset
                }
                Some(Place::DynamicShared) => kernel.dynamic_shared_start().into(),
                _ => continue,
            };
            variables.push(SharedVariable {
                name: self.module.text(variable.name).into(),
                offset,
                size: if variable.size == 0 {
                    u64::MAX
                } else {
                    variable.size
                },
                shape: shape(variable),
            });
        }
        let is_used = |index: usize| {
            index == function || self.module.functions[index].kind == FunctionKind::Device
        };
        let own = own_variables.iter().enumerate();
        variables.extend(
            own.filter(|(index, _)| is_used(*index))
                .flat_map(|(_, own)| own.clone()),
        );
        variables
    }

    /// Returns the location of a module variable.
    pub(super) fn variable_place(&self, id: GlobalId) -> Lowered<Place> {
        self.places[id.0 as usize].ok_or_else(|| {
            Refusal("texture, sampler and surface references are not supported; use objects".into())
        })
    }

    /// Returns the address of a function.
    pub(super) fn function_address(&self, function: FunctionId) -> u64 {
        function_address(self.resolve_alias(function).0)
    }

    /// Returns the function that an alias names, or the function itself.
    pub(super) fn resolve_alias(&self, function: FunctionId) -> FunctionId {
        self.aliases.get(&function).copied().unwrap_or(function)
    }
}

fn kernel(
    module: &Module,
    function: &Function,
    index: u32,
    shared: u64,
    lowerer: &Lowerer<'_>,
) -> Kernel {
    let params: Vec<Param> = function
        .parameters
        .iter()
        .filter_map(|parameter| match parameter {
            Parameter::Variable(id) => Some(*id),
            Parameter::Register(_) => None,
        })
        .map(|id| {
            let variable = &function.variables[id.0 as usize];
            Param {
                offset: lowerer.param_offset(id).unwrap_or(0) as usize,
                size: variable.size as usize,
                align: variable.align as usize,
            }
        })
        .collect();
    let performance = &function.performance;
    let bits = function.registers.iter();
    let bits =
        bits.map(|register| register.scalar.bits().div_ceil(32) * u32::from(register.vector));
    Kernel {
        name: module.text(function.name).to_owned(),
        param_size: params.last().map_or(0, |param| param.offset + param.size),
        params,
        static_shared: shared as u32,
        local_size: lowerer.local_size() as u32,
        registers: bits
            .sum::<u32>()
            .min(performance.max_registers.unwrap_or(u32::MAX)),
        max_threads_per_block: performance
            .required_threads
            .or(performance.max_threads)
            .map(|block| block.into_iter().fold(1, u32::saturating_mul)),
        required_block: performance.required_threads,
        required_cluster: performance.required_cluster,
        function: index,
        shared_variables: Vec::new(),
        runtime: RuntimeUse::default(),
    }
}

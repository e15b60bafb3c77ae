//! Modules, functions and instructions.

use std::collections::HashMap;
use std::sync::Arc;

use curium_format::ptx::Linkage;
use curium_format::{PtxVersion, Target};

use super::error::Span;
use super::keyword::Keyword;
use super::modifier::{Modifier, Operation, Rounding};
use super::name::{Name, Names};
use super::opcode::Opcode;
use super::operand::{GlobalId, LocalId, Operand, RegisterId};
use super::scalar::ScalarType;
use super::validate::ParsedForm;
use super::variable::Variable;

/// A parsed, resolved and validated PTX module.
#[derive(Clone, Debug)]
pub struct Module {
    /// The ISA version in `.version`.
    pub(crate) version: PtxVersion,
    /// The architecture in `.target`.
    pub target: Target,
    /// The options in `.target`.
    pub(crate) target_options: TargetOptions,
    /// The variables in module scope, in the order of their ids.
    pub variables: Vec<Variable>,
    /// The functions and kernels, in the order of their ids. A declaration and its definition are
    /// one entry.
    pub functions: Vec<Function>,
    /// The aliases.
    pub(crate) aliases: Vec<Alias>,
    /// The source files that `.loc` refers to.
    pub(crate) files: Vec<SourceFile>,
    /// The strings of `.section .debug_str`, which have the names of inlined functions.
    pub(crate) debug_strings: DebugStrings,
    /// The text that was parsed.
    pub(crate) source: Arc<str>,
    /// The strings of `.pragma` directives in module scope.
    pub(crate) pragmas: Vec<String>,
    /// The spelling of every name.
    pub(crate) names: Names,
}

impl Module {
    /// Returns the spelling of a name of this module.
    ///
    /// # Panics
    ///
    /// Panics if the module has fewer names.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.names.text(name)
    }

    /// Returns the function with an id.
    ///
    /// # Panics
    ///
    /// Panics if the id is not one of this module's functions.
    #[must_use]
    pub(crate) fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// Returns the variable with an id.
    ///
    /// # Panics
    ///
    /// Panics if the id is not one of this module's variables.
    #[must_use]
    pub(crate) fn variable(&self, id: GlobalId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// Returns the kernels: functions declared `.entry`.
    #[cfg(test)]
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.functions
            .iter()
            .filter(|function| function.kind == FunctionKind::Entry)
    }
}

/// The options of `.target`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TargetOptions {
    /// `true` if the module carries debug information.
    pub(crate) debug: bool,
    /// The texturing mode.
    pub(crate) texturing: Texturing,
    /// `map_f64_to_f32`: double precision is demoted to single precision.
    pub(crate) map_f64_to_f32: bool,
}

/// The texturing mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Texturing {
    /// A texture includes its sampler.
    Unified,
    /// Textures and samplers are separate.
    Independent,
}

/// A second name of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Alias {
    /// The alias, which was declared as a function.
    pub(crate) alias: FunctionId,
    /// The function that it names.
    pub(crate) aliasee: FunctionId,
}

/// The contents of `.section .debug_str`: strings that end in NUL, and labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct DebugStrings {
    pub(crate) bytes: Vec<u8>,
    /// The offset of each label.
    pub(crate) labels: HashMap<Name, usize>,
}

impl DebugStrings {
    /// Returns the string at an offset from a label.
    pub(crate) fn get(&self, label: DebugLabel) -> Option<&str> {
        let start = self
            .labels
            .get(&label.name)?
            .checked_add(label.offset as usize)?;
        let text = self.bytes.get(start..)?.split(|byte| *byte == 0).next()?;
        std::str::from_utf8(text).ok()
    }
}

/// A string of `.section .debug_str`: a label and an offset in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct DebugLabel {
    pub(crate) name: Name,
    pub(crate) offset: u32,
}

/// A `.file` directive.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SourceFile {
    /// The index that `.loc` uses.
    pub(crate) index: u32,
    /// The path as written.
    pub(crate) path: String,
}

/// A function of a module: an index into [`Module::functions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FunctionId(pub u32);

/// A label of a function: an index into [`Function::labels`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct LabelId(pub u32);

/// A `.branchtargets` list: an index into [`Function::branch_targets`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct BranchTargetsId(pub u32);

/// A `.calltargets` list: an index into [`Function::call_targets`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct CallTargetsId(pub u32);

/// A `.callprototype`: an index into [`Function::prototypes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct PrototypeId(pub u32);

/// A kernel or device function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name.
    pub name: Name,
    /// Kernel or device function.
    pub(crate) kind: FunctionKind,
    /// The linkage.
    pub linkage: Linkage,
    /// The return parameters.
    pub(crate) returns: Vec<Parameter>,
    /// The parameters.
    pub(crate) parameters: Vec<Parameter>,
    /// The performance-tuning directives.
    pub(crate) performance: Performance,
    /// The registers that are used or declared individually, by [`RegisterId`]. Unused registers of
    /// a range such as `%r<42>` are not listed.
    pub(crate) registers: Vec<Register>,
    /// The parameters and variables of all scopes, by [`LocalId`].
    pub(crate) variables: Vec<Variable>,
    /// The labels of all scopes, by [`LabelId`].
    pub(crate) labels: Vec<Label>,
    /// The `.branchtargets` lists.
    pub(crate) branch_targets: Vec<BranchTargets>,
    /// The `.calltargets` lists.
    pub(crate) call_targets: Vec<CallTargets>,
    /// The `.callprototype` declarations.
    pub(crate) prototypes: Vec<Prototype>,
    /// The `.loc` directives in order.
    pub(crate) locations: Vec<Location>,
    /// The instructions; absent for a declaration.
    pub(crate) body: Option<Vec<Instruction>>,
    /// The position of its name, in the definition if there is one.
    pub(crate) span: Span,
}

impl Function {
    /// Returns `true` for a definition, and `false` for a declaration.
    #[must_use]
    pub fn is_defined(&self) -> bool {
        self.body.is_some()
    }
}

/// The kind of a [`Function`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum FunctionKind {
    /// A kernel, `.entry`.
    Entry,
    /// A device function, `.func`.
    Device,
}

/// A parameter or return value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Parameter {
    /// In the `.param` space. Parameters of kernels always are.
    Variable(LocalId),
    /// In a register.
    Register(RegisterId),
}

/// The performance-tuning directives of a [`Function`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Performance {
    /// `.maxntid`: the maximum block dimensions; absent ones are 1.
    pub(crate) max_threads: Option<[u32; 3]>,
    /// `.reqntid`: the required block dimensions; absent ones are 1.
    pub(crate) required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`
    pub(crate) min_blocks_per_multiprocessor: Option<u32>,
    /// `.maxnctapersm`
    pub(crate) max_blocks_per_multiprocessor: Option<u32>,
    /// `.maxnreg`
    pub(crate) max_registers: Option<u32>,
    /// `.reqnctapercluster`: the required cluster dimensions; absent ones are 1.
    pub(crate) required_cluster: Option<[u32; 3]>,
    /// `.explicitcluster`
    pub(crate) explicit_cluster: bool,
    /// `.blocksareclusters`
    pub(crate) blocks_are_clusters: bool,
    /// `.maxclusterrank`
    pub(crate) max_cluster_rank: Option<u32>,
    /// `.noreturn`
    pub(crate) no_return: bool,
    /// The strings of `.pragma` directives of the function.
    pub(crate) pragmas: Vec<String>,
}

/// A register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Register {
    /// The name; registers of different scopes may share it.
    pub(crate) name: Name,
    /// The type of an element.
    pub(crate) scalar: ScalarType,
    /// The number of elements: 1, or 2 or 4 for a vector.
    pub(crate) vector: u8,
}

/// A label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Label {
    /// The name; labels of different scopes may share it.
    pub(crate) name: Name,
    /// The index of the next instruction; the number of instructions if it is last.
    pub(crate) instruction: u32,
    /// Its position.
    pub(crate) span: Span,
}

/// The targets of a `brx.idx`, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct BranchTargets {
    /// The label of the list.
    pub(crate) name: Name,
    /// The targets.
    pub(crate) labels: Vec<LabelId>,
}

/// The possible callees of an indirect call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CallTargets {
    /// The label of the list.
    pub(crate) name: Name,
    /// The functions.
    pub(crate) functions: Vec<FunctionId>,
}

/// The signature of an indirect call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Prototype {
    /// The label of the prototype.
    pub(crate) name: Name,
    /// The return parameters of the callee.
    pub(crate) returns: Vec<PrototypeParameter>,
    /// The parameters of the callee.
    pub(crate) parameters: Vec<PrototypeParameter>,
    /// `true` if the callee never returns.
    pub(crate) no_return: bool,
}

/// A parameter of a [`Prototype`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PrototypeParameter {
    /// `true` for a register, `false` for the `.param` space.
    pub(crate) is_register: bool,
    /// The type of an element.
    pub(crate) scalar: ScalarType,
    /// The alignment in bytes.
    pub(crate) align: u64,
    /// The size in bytes; 0 for an unsized array.
    pub(crate) size: u64,
}

/// A `.loc` directive: the source line of the instructions after it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Location {
    /// The line of the directive in the PTX.
    pub(crate) ptx_line: u32,
    pub(crate) position: SourcePosition,
    /// The name of the inlined function.
    pub(crate) function: Option<DebugLabel>,
    /// The position of the call into which the function was inlined.
    pub(crate) inlined_at: Option<SourcePosition>,
}

/// A position in a source file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SourcePosition {
    /// The index of the [`SourceFile`].
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// An instruction.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Instruction {
    /// The guard `@p` or `@!p`.
    pub(crate) predicate: Option<Predicate>,
    /// The operation.
    pub(crate) opcode: Opcode,
    /// The dot suffixes in order.
    pub(crate) modifiers: Vec<Modifier>,
    /// The operands in order; destinations come first.
    pub(crate) operands: Vec<Operand>,
    /// The mask of the bytes of a load that the program uses: `.pragma "used_bytes_mask N"`.
    pub(crate) used_bytes: Option<u32>,
    /// The form of an instruction that has a definition.
    pub(crate) form: Option<&'static ParsedForm>,
    /// The position of the opcode.
    pub(crate) span: Span,
}

impl Instruction {
    /// Returns the types among the modifiers, in order.
    pub(crate) fn types(&self) -> impl Iterator<Item = ScalarType> {
        self.modifiers.iter().filter_map(|modifier| match modifier {
            Modifier::Type(scalar) => Some(*scalar),
            _ => None,
        })
    }

    /// Returns `true` if the instruction has this modifier.
    #[must_use]
    pub(crate) fn has(&self, modifier: Modifier) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// Returns `true` if the instruction has this keyword.
    #[must_use]
    pub(crate) fn has_keyword(&self, keyword: Keyword) -> bool {
        self.has(Modifier::Keyword(keyword))
    }

    /// Returns `true` if the instruction has this operation.
    #[must_use]
    pub(crate) fn has_operation(&self, operation: Operation) -> bool {
        self.has(Modifier::Operation(operation))
    }

    /// Returns the rounding that the instruction names.
    #[must_use]
    pub(crate) fn rounding(&self) -> Option<Rounding> {
        self.modifiers.iter().find_map(|modifier| match modifier {
            Modifier::Round(rounding) => Some(*rounding),
            _ => None,
        })
    }
}

/// The guard of an [`Instruction`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Predicate {
    /// The predicate register.
    pub(crate) register: RegisterId,
    /// `true` for `@!p`.
    pub(crate) negated: bool,
}

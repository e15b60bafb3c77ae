//! Modules, functions and instructions.

use super::error::Span;
use super::modifier::Modifier;
use super::name::{Name, Names};
use super::opcode::Opcode;
use super::operand::{GlobalId, LocalId, Operand, RegisterId};
use super::scalar::ScalarType;
use super::variable::Variable;

/// A version of the PTX ISA.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    /// The number before the dot.
    pub major: u32,
    /// The number after the dot.
    pub minor: u32,
}

/// A parsed, resolved and validated PTX module.
#[derive(Clone, Debug)]
pub struct Module {
    /// The ISA version that it was written for.
    pub version: Version,
    /// The architecture that it was written for.
    pub target: Target,
    /// The variables in module scope, by [`GlobalId`].
    pub variables: Vec<Variable>,
    /// The functions and kernels, by [`FunctionId`]; a declaration and its definition are one.
    pub functions: Vec<Function>,
    /// The aliases.
    pub aliases: Vec<Alias>,
    /// The source files that `.loc` refers to.
    pub files: Vec<SourceFile>,
    /// The strings of `.pragma` directives in module scope.
    pub pragmas: Vec<String>,
    /// The spelling of every name.
    pub names: Names,
}

impl Module {
    /// The spelling of `name`.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.names.text(name)
    }

    /// The function of that id.
    ///
    /// # Panics
    /// If the id belongs to another module and this one has fewer functions.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// The variable of that id.
    ///
    /// # Panics
    /// If the id belongs to another module and this one has fewer variables.
    #[must_use]
    pub fn variable(&self, id: GlobalId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// The kernels: functions declared `.entry`.
    pub fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| function.kind == FunctionKind::Entry)
    }
}

/// The `.target` of a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// The compute capability times ten: 90 for `sm_90a`.
    pub architecture: u32,
    /// The suffix.
    pub variant: TargetVariant,
    /// Whether the module carries debug information.
    pub debug: bool,
    /// How textures and samplers are named.
    pub texturing: Texturing,
    /// `map_f64_to_f32`: double precision is demoted.
    pub map_f64_to_f32: bool,
}

/// Which processors a [`Target`] stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TargetVariant {
    /// `sm_90`: this one and newer ones.
    Baseline,
    /// `sm_90a`: this one only.
    Architecture,
    /// `sm_100f`: this one and others of its family.
    Family,
}

/// The texturing mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Texturing {
    /// A texture carries its sampler.
    Unified,
    /// Textures and samplers are named apart.
    Independent,
}

/// A second name of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Alias {
    /// The new name, which was declared as a function.
    pub alias: FunctionId,
    /// The function that it stands for.
    pub aliasee: FunctionId,
}

/// A `.file` directive.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SourceFile {
    /// The index that `.loc` uses.
    pub index: u32,
    /// The path as written.
    pub path: String,
}

/// A function of a module: an index into [`Module::functions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FunctionId(pub u32);

/// A label of a function: an index into [`Function::labels`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LabelId(pub u32);

/// A `.branchtargets` list: an index into [`Function::branch_targets`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BranchTargetsId(pub u32);

/// A `.calltargets` list: an index into [`Function::call_targets`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallTargetsId(pub u32);

/// A `.callprototype`: an index into [`Function::prototypes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PrototypeId(pub u32);

/// A kernel or device function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name.
    pub name: Name,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Who sees it.
    pub linkage: Linkage,
    /// What it returns.
    pub returns: Vec<Parameter>,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// Promises and limits.
    pub performance: Performance,
    /// The registers that are mentioned or declared one by one, by [`RegisterId`]. Registers of a range such as `%r<42>`
    /// that nothing mentions are not listed.
    pub registers: Vec<Register>,
    /// The parameters and variables of all scopes, by [`LocalId`].
    pub variables: Vec<Variable>,
    /// The labels of all scopes, by [`LabelId`].
    pub labels: Vec<Label>,
    /// The `.branchtargets` lists.
    pub branch_targets: Vec<BranchTargets>,
    /// The `.calltargets` lists.
    pub call_targets: Vec<CallTargets>,
    /// The `.callprototype` declarations.
    pub prototypes: Vec<Prototype>,
    /// The `.loc` directives in order.
    pub locations: Vec<Location>,
    /// The instructions; absent for a declaration.
    pub body: Option<Vec<Instruction>>,
    /// Where its name stands; that of the definition if there is one.
    pub span: Span,
}

/// What a [`Function`] is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FunctionKind {
    /// A kernel, `.entry`.
    Entry,
    /// A device function, `.func`.
    Device,
}

/// Who sees a function or variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Linkage {
    /// This module only.
    #[default]
    Internal,
    /// Everybody: `.visible`.
    Visible,
    /// Everybody; defined elsewhere: `.extern`.
    Extern,
    /// Everybody; another definition may replace it: `.weak`.
    Weak,
    /// Everybody; several declarations are merged: `.common`.
    Common,
}

/// A parameter or return value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Parameter {
    /// In the `.param` space; of kernels always.
    Variable(LocalId),
    /// In a register.
    Register(RegisterId),
}

/// The performance-tuning directives of a [`Function`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Performance {
    /// `.maxntid`: the largest block; absent dimensions are 1.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`: the exact block; absent dimensions are 1.
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`
    pub min_blocks_per_multiprocessor: Option<u32>,
    /// `.maxnctapersm`
    pub max_blocks_per_multiprocessor: Option<u32>,
    /// `.maxnreg`
    pub max_registers: Option<u32>,
    /// `.reqnctapercluster`: the exact cluster; absent dimensions are 1.
    pub required_cluster: Option<[u32; 3]>,
    /// `.explicitcluster`
    pub explicit_cluster: bool,
    /// `.blocksareclusters`
    pub blocks_are_clusters: bool,
    /// `.maxclusterrank`
    pub max_cluster_rank: Option<u32>,
    /// `.noreturn`
    pub no_return: bool,
    /// The strings of `.pragma` directives of the function.
    pub pragmas: Vec<String>,
}

/// A register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Register {
    /// The name; registers of different scopes may share it.
    pub name: Name,
    /// The type of an element.
    pub scalar: ScalarType,
    /// How many scalars it has: 1, or 2 or 4 if it is a vector.
    pub vector: u8,
}

/// A label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Label {
    /// The name; labels of different scopes may share it.
    pub name: Name,
    /// The index of the instruction that follows it; the number of instructions if none does.
    pub instruction: u32,
    /// Where it stands.
    pub span: Span,
}

/// The targets of a `brx.idx`, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BranchTargets {
    /// The label of the list.
    pub name: Name,
    /// The targets.
    pub labels: Vec<LabelId>,
}

/// The functions that an indirect call may reach.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CallTargets {
    /// The label of the list.
    pub name: Name,
    /// The functions.
    pub functions: Vec<FunctionId>,
}

/// The signature of an indirect call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Prototype {
    /// The label of the prototype.
    pub name: Name,
    /// What the callee returns.
    pub returns: Vec<PrototypeParameter>,
    /// What the callee takes.
    pub parameters: Vec<PrototypeParameter>,
    /// Whether the callee never returns.
    pub no_return: bool,
}

/// A parameter of a [`Prototype`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrototypeParameter {
    /// Whether it is a register, else it is in the `.param` space.
    pub is_register: bool,
    /// The type of an element.
    pub scalar: ScalarType,
    /// The alignment in bytes.
    pub align: u64,
    /// The size in bytes; 0 for an unsized array.
    pub size: u64,
}

/// A `.loc` directive: the source line of the instructions from an index on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Location {
    /// The first instruction that it holds for.
    pub instruction: u32,
    /// The index of the [`SourceFile`].
    pub file: u32,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// An instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    /// The guard `@p` or `@!p`.
    pub predicate: Option<Predicate>,
    /// The operation.
    pub opcode: Opcode,
    /// The dot suffixes in order.
    pub modifiers: Vec<Modifier>,
    /// The operands in order; destinations come first.
    pub operands: Vec<Operand>,
    /// The bytes that a load uses of what it loads, by bits: `.pragma "used_bytes_mask N"`.
    pub used_bytes: Option<u32>,
    /// Where the opcode stands.
    pub span: Span,
}

impl Instruction {
    /// The types among the modifiers, in order.
    pub fn types(&self) -> impl Iterator<Item = ScalarType> {
        self.modifiers.iter().filter_map(|modifier| match modifier {
            Modifier::Type(scalar) => Some(*scalar),
            _ => None,
        })
    }

    /// Whether the instruction has this modifier.
    #[must_use]
    pub fn has(&self, modifier: Modifier) -> bool {
        self.modifiers.contains(&modifier)
    }
}

/// The guard of an [`Instruction`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Predicate {
    /// The predicate register.
    pub register: RegisterId,
    /// Whether the instruction runs where it is false.
    pub negated: bool,
}

//! Rewrites what rustc cannot express: kernels, shared memory, instructions and panics. Refuses
//! what safe kernels must not do.
//!
//! # Rules
//!
//! 1. Everything that a kernel can reach is checked, and nothing else is kept. Reachability counts
//!    every mention of a function, so it covers function pointers and vtables.
//! 2. Instructions and intrinsics are checked against a list of those that are allowed ([`allow`]):
//!    safe code could use atomics of `core` or statics that can change to pass values that differ
//!    between threads to the code of a block.
//! 3. Code of a block does not reach an allocator, because addresses and failures of allocations
//!    differ between threads.
//! 4. Every function and every call, also through a pointer, is `convergent` before LLVM's first
//!    pass. LLVM infers where that is not needed, and never duplicates the others.
//! 5. Names that begin with `curium.` are instructions and kernels of the device crate. No other
//!    crate defines them.
//! 6. Panics are recognized by symbols of the real `core` ([`panic`]).
//! 7. An expression has one value, whether LLVM computes it or the device, except for the bits of
//!    NaN: remainders are calls of a function that is exact ([`remainder`]), and there are no
//!    fast-math flags.
//! 8. An error names the item.
//! 9. Copies of unknown length move the largest words that their alignment allows ([`copy`]).
//! 10. Every function is `sanitize_thread`, so that LLVM does not load memory where the source does
//!     not. Otherwise threads load elements of shared memory that others own, and drop the value: a
//!     race.

mod allow;
mod copy;
mod instruction;
mod lines;
mod location;
mod names;
mod panic;
mod remainder;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;

use self::copy::Copy;
pub(crate) use self::copy::copy_by_vectors;
pub(crate) use self::lines::Lines;
use self::location::{Location, Locations};
use self::names::{Names, readable};
use self::panic::{Panic, PanicKind};
use self::remainder::Remainder;
use self::table::{Table, Word};
use crate::ir::{
    Call, Callee, Function, Global, Instruction, Line, Module, Token, bytes, lex, name,
};
use crate::target::Target;

pub use self::panic::Panics;

/// The link names of kernels and of their tables.
const KERNEL: &str = "curium.kernel.";
const TABLE: &str = "curium.meta.";

/// The section of the tables, and of statics in shared memory.
const TABLE_SECTION: &str = ".curium.kernel";
const SHARED_SECTION: &str = ".curium.shared";

/// The constraints of `core::hint::black_box`, and those with a register for pointers of the
/// device.
const BLACK_BOX: &str = "asm sideeffect \"\", \"r,~{memory}\"(ptr ";
const BLACK_BOX_OF_POINTERS: &str = "asm sideeffect \"\", \"l,~{memory}\"(ptr ";

/// The function that a panic with a message calls.
const PANIC_FUNCTION: &str = "panic_with_message";

/// The function that a panic with an index and a length calls. The simulator reads both from its
/// parameters.
const PANIC_WITH_INDEX: &str = "panic_with_index";

/// Shared memory is aligned for the widest loads and stores.
const SHARED_ALIGNMENT: u32 = 16;

pub(crate) struct Options<'a> {
    pub(crate) panics: Panics,
    pub(crate) targets: &'a [Target],
    /// The symbols that `core` and `alloc` define.
    pub(crate) library_symbols: &'a HashSet<String>,
}

/// A module that LLVM can compile to PTX.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) ir: String,
    pub(crate) kernels: Vec<Kernel>,
}

/// A kernel of the module.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) table: Vec<u8>,
}

/// Rewrites the text of a linked module. The error has a line for each problem.
pub(crate) fn rewrite(text: &str, options: &Options<'_>) -> Result<Rewritten, Vec<String>> {
    let module = Module::parse(text).map_err(|error| vec![error])?;
    Rewrite::new(&module, options)?.run()
}

/// The meaning of a name in the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Kernel,
    Instruction,
    /// An intrinsic of LLVM that the device crate calls by a reserved name.
    DeviceIntrinsic,
    Intrinsic,
    Panic(PanicKind),
    /// `__rust_no_alloc_shim_is_unstable`, which does nothing.
    AllocatorShim,
    Runtime,
    Ordinary,
}

struct Rewrite<'a> {
    module: &'a Module<'a>,
    options: &'a Options<'a>,
    functions: HashMap<&'a str, &'a Function<'a>>,
    globals: HashMap<&'a str, &'a Global<'a>>,
    tables: BTreeMap<&'a str, Table>,
    /// Contents of constants that are text, by name.
    literals: HashMap<&'a str, Vec<u8>>,
    /// The names that each entity mentions, after panics are replaced.
    mentions: HashMap<Entity<'a>, Vec<Entity<'a>>>,
    errors: Vec<String>,
}

/// An entity of the module that kernels reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Entity<'a> {
    Function(&'a str),
    Global(&'a str),
}

impl<'a> Rewrite<'a> {
    fn new(module: &'a Module<'a>, options: &'a Options<'a>) -> Result<Self, Vec<String>> {
        let mut tables = BTreeMap::new();
        let mut errors = Vec::new();
        for global in &module.globals {
            let is_table = global.section == Some(TABLE_SECTION);
            match (is_table, global.name.strip_prefix(TABLE)) {
                (true, Some(kernel)) => match Table::parse(kernel, global) {
                    Ok(table) => drop(tables.insert(kernel, table)),
                    Err(error) => errors.push(error),
                },
                (false, None) if !global.name.starts_with(instruction::PREFIX) => {}
                _ => errors.push(format!(
                    "static `{}`: its link name or section is reserved for `#[kernel]`",
                    readable(&global.name)
                )),
            }
        }
        let literals = module.globals.iter().filter_map(|global| {
            let contents = global.initializer?.strip_prefix("c\"")?.strip_suffix('"')?;
            Some((&*global.name, bytes(contents)))
        });
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut rewrite = Self {
            module,
            options,
            functions: module
                .functions
                .iter()
                .map(|function| (&*function.name, function))
                .collect(),
            globals: module
                .globals
                .iter()
                .map(|global| (&*global.name, global))
                .collect(),
            tables,
            literals: literals.collect(),
            mentions: HashMap::new(),
            errors,
        };
        let functions = module
            .functions
            .iter()
            .map(|function| Entity::Function(&function.name));
        let globals = module
            .globals
            .iter()
            .map(|global| Entity::Global(&global.name));
        rewrite.mentions = functions
            .chain(globals)
            .map(|entity| (entity, rewrite.find_mentions(entity)))
            .collect();
        Ok(rewrite)
    }

    fn role(&self, function: &Function<'_>) -> Role {
        let name = &*function.name;
        if name.starts_with(KERNEL) {
            return Role::Kernel;
        }
        if name.starts_with(instruction::INTRINSIC) {
            return Role::DeviceIntrinsic;
        }
        if name.starts_with(instruction::PREFIX) {
            return Role::Instruction;
        }
        if let Some(kind) = panic::kind(name, self.options.library_symbols) {
            return Role::Panic(kind);
        }
        if function.body.is_some() {
            return Role::Ordinary;
        }
        if name.starts_with("llvm.") {
            return Role::Intrinsic;
        }
        if name.ends_with("___rust_no_alloc_shim_is_unstable_v2")
            || name.ends_with("___rust_no_alloc_shim_is_unstable")
        {
            return Role::AllocatorShim;
        }
        if allow::is_runtime_function(name) {
            return Role::Runtime;
        }
        Role::Ordinary
    }

    fn run(mut self) -> Result<Rewritten, Vec<String>> {
        self.check_kernels();
        self.check_reserved_names();
        let reached = self.reach();
        for entity in &reached.order {
            let problems = match entity {
                Entity::Function(name) => self.check_function(name),
                Entity::Global(name) => self.check_global(name).into_iter().collect(),
            };
            for problem in problems {
                let path = self.describe(&reached.steps(*entity));
                self.errors.push(format!("{problem} ({path})"));
            }
        }
        self.check_allocations();
        if self.tables.is_empty() && self.errors.is_empty() {
            self.errors.push(
                "there are no kernels; declare a public function with `#[kernel]`".to_owned(),
            );
        }
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        let printer = Printer::new(&self, &reached)?;
        let ir = printer.print(&reached)?;
        let kernels = self.tables.iter().map(|(name, table)| Kernel {
            name: (*name).to_owned(),
            table: table.bytes.clone(),
        });
        Ok(Rewritten {
            ir,
            kernels: kernels.collect(),
        })
    }

    /// Every kernel has a table, and every table a kernel.
    fn check_kernels(&mut self) {
        let mut kernels = HashSet::new();
        for function in &self.module.functions {
            let Some(kernel) = function.name.strip_prefix(KERNEL) else {
                continue;
            };
            kernels.insert(kernel);
            let is_identifier =
                |character: char| character.is_ascii_alphanumeric() || character == '_';
            if !kernel.chars().all(is_identifier) {
                self.errors.push(format!(
                    "kernel `{kernel}`: names in PTX are ASCII; rename the kernel"
                ));
            }
            let Some(table) = self.tables.get(kernel) else {
                self.errors.push(format!(
                    "kernel `{kernel}`: it has no table; declare kernels with `#[kernel]`"
                ));
                continue;
            };
            if function.parameters.len() != table.words.len() {
                self.errors.push(format!(
                    "kernel `{kernel}`: its table has {} words, and its function {} parameters; declare kernels with `#[kernel]`",
                    table.words.len(),
                    function.parameters.len()
                ));
            }
        }
        for kernel in self.tables.keys() {
            if !kernels.contains(kernel) {
                self.errors.push(format!("kernel `{kernel}`: it has a table, and no function; declare kernels with `#[kernel]`"));
            }
        }
    }

    /// Instructions are declared by the device crate, and defined by this one alone. Functions of
    /// the device's runtime are defined by no crate.
    fn check_reserved_names(&mut self) {
        for function in self
            .module
            .functions
            .iter()
            .filter(|function| function.body.is_some())
        {
            let name = &function.name;
            let owner = if name.starts_with(instruction::PREFIX) && !name.starts_with(KERNEL) {
                "link names that begin with `curium.` are reserved for the device crate"
            } else if allow::is_runtime_function(name) {
                "the link name is reserved for the device's runtime"
            } else {
                continue;
            };
            self.errors.push(format!("function `{name}`: {owner}"));
        }
    }

    /// Returns what the kernels reach, in the order in which it was found.
    fn reach(&self) -> Reached<'a> {
        let kernels = self.tables.keys();
        let roots = kernels
            .filter_map(|kernel| self.functions.get_key_value(&*format!("{KERNEL}{kernel}")));
        self.reach_from(roots.map(|(name, _)| *name).collect())
    }

    fn reach_from(&self, roots: Vec<&'a str>) -> Reached<'a> {
        let mut reached = Reached::default();
        let mut queue: VecDeque<Entity<'a>> = VecDeque::new();
        for root in roots {
            if reached.insert(Entity::Function(root), None) {
                queue.push_back(Entity::Function(root));
            }
        }
        while let Some(entity) = queue.pop_front() {
            for target in self.mentions.get(&entity).into_iter().flatten() {
                if reached.insert(*target, Some(entity)) {
                    queue.push_back(*target);
                }
            }
        }
        reached
    }

    /// Returns what an entity mentions, after panics are replaced. Functions that are replaced
    /// mention nothing.
    fn find_mentions(&self, entity: Entity<'a>) -> Vec<Entity<'a>> {
        let mut names = Vec::new();
        match entity {
            Entity::Global(name) => collect_names(
                self.globals[name].initializer.unwrap_or_default(),
                &mut names,
            ),
            Entity::Function(name) => {
                let function = self.functions[name];
                let is_kept = matches!(self.role(function), Role::Kernel | Role::Ordinary);
                for line in function.body.iter().flatten().filter(|_| is_kept) {
                    let Line::Instruction(instruction) = line else {
                        continue;
                    };
                    if let Some(kind) = self.panic_kind(instruction) {
                        let panic = Panic::parse(instruction, kind);
                        let operands = panic.index.into_iter().flatten().chain(panic.location);
                        for operand in operands {
                            collect_names(operand, &mut names);
                        }
                    } else {
                        collect_names(instruction.text, &mut names);
                    }
                }
            }
        }
        names.iter().filter_map(|name| self.entity(name)).collect()
    }

    fn entity(&self, name: &str) -> Option<Entity<'a>> {
        if let Some((name, _)) = self.functions.get_key_value(name) {
            return Some(Entity::Function(name));
        }
        let (name, _) = self.globals.get_key_value(name)?;
        Some(Entity::Global(name))
    }

    fn panic_kind(&self, instruction: &Instruction<'_>) -> Option<PanicKind> {
        let Callee::Direct(callee) = &instruction.call.as_ref()?.callee else {
            return None;
        };
        match self.role(self.functions.get(&**callee)?) {
            Role::Panic(kind) => Some(kind),
            _ => None,
        }
    }

    /// Returns what a function does that kernels must not do.
    fn check_function(&self, name: &str) -> Vec<String> {
        let function = self.functions[name];
        match self.role(function) {
            Role::Kernel | Role::Ordinary => {}
            Role::Instruction => return self.check_target(name).into_iter().collect(),
            Role::Intrinsic if !allow::is_intrinsic(name) => {
                return vec![format!("intrinsic `{name}`: kernels cannot use it")];
            }
            _ => return Vec::new(),
        }
        let Some(body) = &function.body else {
            return vec![format!(
                "function `{}`: it has no definition for the device; foreign functions cannot be called in kernels",
                readable(name)
            )];
        };
        let instructions = body.iter().filter_map(|line| match line {
            Line::Instruction(instruction) => Some(instruction),
            Line::Other(_) => None,
        });
        let problems: BTreeSet<&str> = instructions.filter_map(allow::refuse).collect();
        problems
            .into_iter()
            .map(|problem| format!("function `{}` {problem}", readable(name)))
            .collect()
    }

    /// Returns why the targets cannot execute an instruction.
    fn check_target(&self, name: &str) -> Option<String> {
        let required = instruction::required_target(name)?;
        let older = self.options.targets.iter().find(|target| {
            let (major, minor) = target.compute_capability();
            major * 10 + minor < required
        })?;
        let template = instruction::template(name).unwrap_or(name);
        Some(format!(
            "inline PTX `{template}`: it needs sm_{required}, and the kernels are compiled for {older}; set newer targets in the build script"
        ))
    }

    /// Returns why kernels must not use a global.
    fn check_global(&self, name: &str) -> Option<String> {
        let global = self.globals[name];
        let problem = if global.section == Some(SHARED_SECTION) {
            match global.initializer {
                Some("undef" | "zeroinitializer" | "poison") if !global.is_constant => return None,
                _ => "shared memory has no initial value",
            }
        } else if global.is_alias {
            "it is another name for an item, which kernels cannot use"
        } else if global.is_thread_local {
            "kernels cannot use thread-local statics"
        } else if global.initializer.is_none() {
            "it has no definition for the device"
        } else if !global.is_constant {
            "the threads of a launch would share it; kernels cannot use statics that can change"
        } else if self.mentions_shared(name) {
            "it contains the address of shared memory, which is different in each block"
        } else {
            return None;
        };
        Some(format!("static `{}`: {problem}", readable(name)))
    }

    fn mentions_shared(&self, global: &str) -> bool {
        let mut mentions = self
            .mentions
            .get(&Entity::Global(global))
            .into_iter()
            .flatten();
        mentions.any(|mention| match mention {
            Entity::Global(name) => self.globals[name].section == Some(SHARED_SECTION),
            Entity::Function(_) => false,
        })
    }

    /// Code of a block does not allocate.
    fn check_allocations(&mut self) {
        let blocks: Vec<&str> = self
            .tables
            .iter()
            .filter(|(_, table)| !table.is_element_wise)
            .map(|(kernel, _)| *kernel)
            .collect();
        for kernel in blocks {
            let Some((root, _)) = self.functions.get_key_value(&*format!("{KERNEL}{kernel}"))
            else {
                continue;
            };
            let reached = self.reach_from(vec![root]);
            for allocator in allow::ALLOCATOR {
                let steps = reached.steps(Entity::Function(allocator));
                if !steps.is_empty() {
                    let path = self.describe(&steps);
                    self.errors.push(format!(
                        "kernel `{kernel}` allocates memory ({path}); addresses would differ between the threads of the block; only \
                         element-wise kernels can allocate"
                    ));
                    break;
                }
            }
        }
    }
}

impl<'a> Rewrite<'a> {
    /// Describes the way from a kernel to an entity: `kernel → function → …`, and the line of the
    /// user's code.
    fn describe(&self, steps: &[Entity<'a>]) -> String {
        let mut names = Vec::new();
        for Entity::Function(name) | Entity::Global(name) in steps.iter().copied() {
            // Constants have no names that say something.
            if !name.starts_with("anon.") {
                names.push(match name.strip_prefix(KERNEL) {
                    Some(kernel) => format!("kernel {kernel}"),
                    None => readable(name),
                });
            }
        }
        let path = names.join(" → ");
        match self.locate(steps) {
            Some(location) => format!("{path}, at {location}"),
            None => path,
        }
    }

    /// Returns the line of the user's code that is nearest to the last of the steps. Files of the
    /// user are in the folder of the kernel's, which may be called from a macro of the device
    /// crate.
    fn locate(&self, steps: &[Entity<'a>]) -> Option<Location<'a>> {
        let locations = Locations::new(&self.module.metadata);
        let mut lines = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let Entity::Function(name) = step else {
                continue;
            };
            let is_wanted = |instruction: &Instruction<'_>| match steps.get(index + 1) {
                None => allow::refuse(instruction).is_some(),
                Some(Entity::Function(next) | Entity::Global(next)) => {
                    let mut names = Vec::new();
                    collect_names(instruction.text, &mut names);
                    names.iter().any(|name| name == next)
                }
            };
            let body = self.functions[name].body.iter().flatten();
            let instruction = body.into_iter().find_map(|line| match line {
                Line::Instruction(instruction) if is_wanted(instruction) => Some(instruction),
                _ => None,
            });
            let chain = instruction.map(|instruction| locations.chain(instruction.text));
            lines.extend(chain.into_iter().flatten().rev());
        }
        let folder = lines
            .iter()
            .find(|location| location.is_package_file())
            .or_else(|| lines.first())?
            .folder();
        lines
            .iter()
            .rfind(|location| location.folder() == folder)
            .copied()
    }
}

/// Pushes the names of the functions and globals in a text.
fn collect_names(text: &str, names: &mut Vec<String>) {
    if !text.contains('@') {
        return;
    }
    names.extend(lex(text).iter().filter_map(|lexeme| match lexeme.token {
        Token::Global(spelling) => Some(name(spelling)),
        _ => None,
    }));
}

/// The entities that kernels reach, and those from which they do.
#[derive(Default)]
struct Reached<'a> {
    order: Vec<Entity<'a>>,
    parents: HashMap<Entity<'a>, Option<Entity<'a>>>,
}

impl<'a> Reached<'a> {
    fn insert(&mut self, entity: Entity<'a>, parent: Option<Entity<'a>>) -> bool {
        if self.parents.contains_key(&entity) {
            return false;
        }
        self.parents.insert(entity, parent);
        self.order.push(entity);
        true
    }

    /// Returns the way from a kernel to an entity, or nothing if no kernel reaches it.
    fn steps(&self, entity: Entity<'a>) -> Vec<Entity<'a>> {
        let mut steps = Vec::new();
        let mut next = self.parents.get_key_value(&entity);
        while let Some((step, parent)) = next {
            steps.push(*step);
            next = parent.and_then(|parent| self.parents.get_key_value(&parent));
        }
        steps.reverse();
        steps
    }
}

/// Prints the rewritten module.
struct Printer<'a, 'b> {
    rewrite: &'b Rewrite<'a>,
    names: HashMap<&'a str, String>,
    /// Globals in shared memory.
    shared: HashSet<&'a str>,
    /// Constants with messages, by text.
    messages: BTreeMap<Vec<u8>, String>,
    /// The functions that copy memory.
    copies: BTreeSet<Copy>,
    /// Metadata that mentions functions, such as a list of possible callees. It would have to be
    /// rewritten, and is left out.
    dropped_metadata: HashSet<&'a str>,
    has_remainders: bool,
    /// `true` if a panic has an index and a length.
    has_index_panics: bool,
}

impl<'a, 'b> Printer<'a, 'b> {
    fn new(rewrite: &'b Rewrite<'a>, reached: &Reached<'a>) -> Result<Self, Vec<String>> {
        let mut used = Names::default();
        let mut names = HashMap::new();
        let mut errors = Vec::new();
        let runtime = [
            "vprintf",
            "malloc",
            "free",
            "__assertfail",
            PANIC_FUNCTION,
            PANIC_WITH_INDEX,
            instruction::DYNAMIC_SHARED,
        ];
        for name in runtime
            .into_iter()
            .chain(remainder::FUNCTIONS)
            .chain(copy::FUNCTIONS)
        {
            used.reserve(name);
        }
        for kernel in rewrite.tables.keys() {
            if !used.reserve(kernel) {
                errors.push(format!(
                    "kernel `{kernel}`: the name is reserved; rename the kernel"
                ));
            }
        }
        let mut functions: Vec<&Function<'_>> = Vec::new();
        for entity in &reached.order {
            if let Entity::Function(name) = entity {
                functions.push(rewrite.functions[name]);
            }
        }
        functions.sort_by_cached_key(|function| (readable(&function.name), function.name.clone()));
        for function in functions {
            let symbol = &*function.name;
            let (symbol, _) = rewrite
                .functions
                .get_key_value(symbol)
                .unwrap_or((&"", &function));
            let name = match rewrite.role(function) {
                Role::Kernel => symbol.trim_start_matches(KERNEL).to_owned(),
                Role::DeviceIntrinsic => symbol.replacen("curium.", "", 1),
                Role::Intrinsic | Role::Runtime => (*symbol).to_owned(),
                Role::Instruction | Role::Panic(_) | Role::AllocatorShim | Role::Ordinary => {
                    used.assign(symbol)
                }
            };
            names.insert(*symbol, name);
        }
        let mut shared = HashSet::new();
        let mut constants = Vec::new();
        for entity in &reached.order {
            let Entity::Global(symbol) = entity else {
                continue;
            };
            if rewrite.globals[symbol].section == Some(SHARED_SECTION) {
                shared.insert(*symbol);
                names.insert(*symbol, used.assign(symbol));
            } else {
                constants.push(*symbol);
            }
        }
        let mut printer = Self {
            rewrite,
            names,
            shared,
            messages: BTreeMap::new(),
            copies: BTreeSet::new(),
            dropped_metadata: rewrite
                .module
                .metadata
                .iter()
                .filter_map(|line| mentioning_metadata(line))
                .collect(),
            has_remainders: false,
            has_index_panics: false,
        };
        printer.name_constants(&constants, &mut used);
        if errors.is_empty() {
            Ok(printer)
        } else {
            Err(errors)
        }
    }

    /// Constants have no names of their own, so they are numbered in the order in which the
    /// functions, sorted by name, mention them.
    fn name_constants(&mut self, constants: &[&'a str], used: &mut Names) {
        let remaining: HashSet<&str> = constants.iter().copied().collect();
        let mut queue: VecDeque<Entity<'a>> = self
            .sorted_functions()
            .into_iter()
            .map(|(_, symbol)| Entity::Function(symbol))
            .collect();
        while let Some(entity) = queue.pop_front() {
            for mention in self.rewrite.mentions.get(&entity).into_iter().flatten() {
                let Entity::Global(symbol) = mention else {
                    continue;
                };
                if remaining.contains(symbol) && !self.names.contains_key(symbol) {
                    self.names.insert(symbol, used.assign("constant"));
                    queue.push_back(*mention);
                }
            }
        }
    }

    /// Returns the reached functions with their names, in the order of the names.
    fn sorted_functions(&self) -> Vec<(&str, &'a str)> {
        let functions = self
            .names
            .iter()
            .filter(|(symbol, _)| self.rewrite.functions.contains_key(*symbol));
        let mut functions: Vec<_> = functions.map(|(symbol, name)| (&**name, *symbol)).collect();
        functions.sort_unstable();
        functions
    }

    fn print(mut self, reached: &Reached<'a>) -> Result<String, Vec<String>> {
        let module = self.rewrite.module;
        let mut out = String::new();
        for line in &module.header {
            let _ = writeln!(out, "{line}");
        }
        let mut globals: Vec<(String, &Global<'_>)> = Vec::new();
        for entity in &reached.order {
            if let Entity::Global(symbol) = entity {
                globals.push((self.names[symbol].clone(), self.rewrite.globals[symbol]));
            }
        }
        globals.sort_by(|(left, _), (right, _)| left.cmp(right));
        for (name, global) in &globals {
            out += &self.global(name, global);
        }
        let functions: Vec<(String, &'a str)> = self
            .sorted_functions()
            .into_iter()
            .map(|(name, symbol)| (name.to_owned(), symbol))
            .collect();
        let mut declared = HashSet::new();
        let mut errors = Vec::new();
        for (name, symbol) in functions {
            let function = self.rewrite.functions[symbol];
            let text = match self.rewrite.role(function) {
                Role::Kernel => self.kernel(&name, function),
                Role::Ordinary => self.function(&name, function),
                Role::Instruction => match instruction::define(function, &name) {
                    Ok(text) => text,
                    Err(error) => {
                        errors.push(error);
                        continue;
                    }
                },
                Role::Panic(kind) => self.panic_function(&name, function, kind.message),
                Role::AllocatorShim => {
                    format!("define internal void @{name}() alwaysinline {{\n  ret void\n}}\n")
                }
                Role::DeviceIntrinsic | Role::Intrinsic | Role::Runtime => {
                    if !declared.insert(name.clone()) {
                        continue;
                    }
                    format!(
                        "declare {}@{name}({})\n",
                        function.result,
                        function.parameters.join(", ")
                    )
                }
            };
            out += &text;
        }
        if self.has_remainders {
            out += &remainder::definitions();
        }
        if !self.messages.is_empty() {
            out += &self.message_functions(declared.contains("__assertfail"));
        }
        for copy in &self.copies {
            out += &copy.define();
        }
        for group in &module.attribute_groups {
            let _ = writeln!(out, "{}", without_processor(group));
        }
        for line in &module.metadata {
            if mentioning_metadata(line).is_none() {
                let _ = writeln!(out, "{}", with_source_lines_only(line));
            }
        }
        if errors.is_empty() {
            Ok(out)
        } else {
            Err(errors)
        }
    }

    fn global(&self, name: &str, global: &Global<'_>) -> String {
        if self.shared.contains(&*global.name) {
            let alignment = global.alignment.unwrap_or(1).max(SHARED_ALIGNMENT);
            // Not internal: its contents are unknown, not undefined.
            return format!(
                "@{name} = addrspace(3) global {} undef, align {alignment}\n",
                global.ty
            );
        }
        let unnamed = if global.has_unnamed_address {
            "unnamed_addr "
        } else {
            ""
        };
        let initializer = self.replace(global.initializer.unwrap_or("undef"));
        let alignment = global
            .alignment
            .map(|alignment| format!(", align {alignment}"))
            .unwrap_or_default();
        format!(
            "@{name} = internal {unnamed}constant {} {initializer}{alignment}\n",
            global.ty
        )
    }

    fn kernel(&mut self, name: &str, function: &Function<'a>) -> String {
        let rewrite = self.rewrite;
        let table = &rewrite.tables[name];
        let mut parameters = Vec::new();
        for (parameter, word) in function.parameters.iter().zip(&table.words) {
            parameters.push(match word {
                // The launcher passes no null, also for empty memory.
                Word::ReadOnly => parameter.replacen("ptr", "ptr noalias nonnull readonly", 1),
                Word::Exclusive => parameter.replacen("ptr", "ptr noalias nonnull", 1),
                Word::Pointer => parameter.replacen("ptr", "ptr nonnull", 1),
                // The function receives the address of a struct that the host passes by value.
                Word::GridConstant { size, align } => parameter.replacen(
                    "ptr",
                    &format!("ptr byval([{size} x i8]) align {align} \"nvvm.grid_constant\""),
                    1,
                ),
                Word::Value => (*parameter).to_owned(),
            });
        }
        let mut attributes = String::from("convergent sanitize_thread");
        if let Some([x, y, z]) = table.block {
            let _ = write!(attributes, " \"nvvm.reqntid\"=\"{x},{y},{z}\"");
        }
        if let Some([x, y, z]) = table.cluster {
            let _ = write!(attributes, " \"nvvm.cluster_dim\"=\"{x},{y},{z}\"");
        }
        if let Some(threads) = table.max_threads {
            let _ = write!(attributes, " \"nvvm.maxntid\"=\"{threads}\"");
        }
        if let Some(blocks) = table.min_blocks {
            let _ = write!(attributes, " \"nvvm.minctasm\"=\"{blocks}\"");
        }
        let (address, rest) = split_address(function.suffix);
        let body = self.body(function);
        format!(
            "define ptx_kernel void @{name}({}) {address}{attributes} {rest} {{\n{body}}}\n",
            parameters.join(", ")
        )
    }

    fn function(&mut self, name: &str, function: &Function<'a>) -> String {
        let (address, rest) = split_address(function.suffix);
        let body = self.body(function);
        format!(
            "define internal {}@{name}({}) {address}convergent sanitize_thread {rest} {{\n{body}}}\n",
            function.result,
            function.parameters.join(", ")
        )
    }

    fn body(&mut self, function: &Function<'a>) -> String {
        let mut out = String::new();
        for line in function.body.iter().flatten() {
            match line {
                Line::Other(text) => {
                    let _ = writeln!(out, "{text}");
                }
                Line::Instruction(instruction) => {
                    let text = without_fast_math(self.instruction(instruction));
                    let _ = writeln!(out, "  {}", self.without_dropped_metadata(text));
                }
            }
        }
        out
    }

    fn instruction(&mut self, instruction: &Instruction<'a>) -> String {
        let Some(call) = &instruction.call else {
            let is_remainder = instruction.opcode == remainder::OPCODE;
            if let (true, Some(remainder)) = (is_remainder, Remainder::parse(instruction)) {
                self.has_remainders = true;
                return remainder.call();
            }
            return self.replace(
                instruction
                    .text
                    .replacen(BLACK_BOX, BLACK_BOX_OF_POINTERS, 1)
                    .as_str(),
            );
        };
        if let Some(kind) = self.rewrite.panic_kind(instruction) {
            return self.panic_call(instruction, kind);
        }
        if let Some(copy) = Copy::parse(call) {
            self.copies.insert(copy);
            let arguments = self.replace(&copy::arguments(call));
            return format!(
                "call void @{}({arguments}){}",
                copy.function(),
                debug_location(instruction)
            );
        }
        if !self.is_convergent(call) {
            return self.replace(instruction.text);
        }
        let (before, after) = instruction.text.split_at(call.arguments_end);
        format!("{} convergent{}", self.replace(before), self.replace(after))
    }

    /// Removes attachments `, !kind !12` of metadata that is left out.
    fn without_dropped_metadata(&self, mut text: String) -> String {
        if self.dropped_metadata.is_empty() {
            return text;
        }
        let lexemes = lex(&text);
        let attachments: Vec<_> = lexemes
            .windows(3)
            .filter(|window| {
                let is_dropped = matches!(window[2].token, Token::Metadata(id) if self.dropped_metadata.contains(id));
                window[0].is(',') && matches!(window[1].token, Token::Metadata(_)) && is_dropped
            })
            .map(|window| window[0].start..window[2].end)
            .collect();
        for range in attachments.into_iter().rev() {
            text.replace_range(range, "");
        }
        text
    }

    /// Every call is convergent, except of intrinsics that rustc itself uses.
    fn is_convergent(&self, call: &Call<'_>) -> bool {
        match &call.callee {
            Callee::Direct(name) => !name.starts_with("llvm."),
            Callee::Indirect => true,
        }
    }

    /// Replaces a call that panics.
    fn panic_call(&mut self, instruction: &Instruction<'a>, kind: PanicKind) -> String {
        let debug = debug_location(instruction);
        let panic = Panic::parse(instruction, kind);
        if self.rewrite.options.panics == Panics::Trap {
            return format!("call void @llvm.trap(){debug}");
        }
        let literal = panic.literal.and_then(|(global, length)| {
            let bytes = self.rewrite.literals.get(&*name(global))?;
            (bytes.len() as u64 == length && !bytes.contains(&0)).then(|| bytes.clone())
        });
        let message = self.message(literal.unwrap_or_else(|| kind.message.as_bytes().to_vec()));
        let location = self.replace(panic.location.unwrap_or("null"));
        if let Some([index, length]) = panic.index.map(|index| index.map(|one| self.replace(one))) {
            self.has_index_panics = true;
            return format!(
                "call void @{PANIC_WITH_INDEX}(i64 {index}, i64 {length}, ptr @{message}, ptr {location}) convergent{debug}"
            );
        }
        format!("call void @{PANIC_FUNCTION}(ptr @{message}, ptr {location}) convergent{debug}")
    }

    /// Returns the name of the constant with a message.
    fn message(&mut self, text: Vec<u8>) -> String {
        let count = self.messages.len() + 1;
        let name = self
            .messages
            .entry(text)
            .or_insert_with(|| format!("panic_message_{count}"));
        name.clone()
    }

    /// Defines a function that panics, for uses other than calls.
    fn panic_function(&mut self, name: &str, function: &Function<'_>, message: &str) -> String {
        let types = function.parameter_types();
        let body = match (self.rewrite.options.panics, types.last()) {
            (Panics::Message, Some(&"ptr")) => {
                let message = self.message(message.as_bytes().to_vec());
                format!(
                    "call void @{PANIC_FUNCTION}(ptr @{message}, ptr %{})",
                    types.len() - 1
                )
            }
            _ => "call void @llvm.trap()".to_owned(),
        };
        let parameters: Vec<String> = types
            .iter()
            .enumerate()
            .map(|(index, ty)| format!("{ty} %{index}"))
            .collect();
        format!(
            "define internal void @{name}({}) cold noinline noreturn nounwind convergent {{\n  {body}\n  unreachable\n}}\n",
            parameters.join(", ")
        )
    }

    /// The function that prints a message, and the messages. A location is the name of the file,
    /// which ends with a zero, its length, and the line.
    fn message_functions(&self, is_declared: bool) -> String {
        let mut out = String::new();
        for (text, name) in &self.messages {
            let length = text.len() + 1;
            let text = instruction::escape(text);
            let _ = writeln!(
                out,
                "@{name} = internal unnamed_addr constant [{length} x i8] c\"{text}\\00\", align 1"
            );
        }
        if !is_declared {
            out += "declare void @__assertfail(ptr, ptr, i32, ptr, i64)\n";
        }
        let _ = write!(
            out,
            "@panic_no_function = internal unnamed_addr constant [1 x i8] zeroinitializer, align 1\n\
             define internal void @{PANIC_FUNCTION}(ptr %message, ptr %location) cold noinline noreturn nounwind convergent {{\n  \
             %unknown = icmp eq ptr %location, null\n  \
             br i1 %unknown, label %call, label %read\n\
             read:\n  \
             %path = load ptr, ptr %location\n  \
             %address = getelementptr i8, ptr %location, i64 16\n  \
             %number = load i32, ptr %address\n  \
             br label %call\n\
             call:\n  \
             %file = phi ptr [ @panic_no_function, %0 ], [ %path, %read ]\n  \
             %line = phi i32 [ 0, %0 ], [ %number, %read ]\n  \
             call void @__assertfail(ptr %message, ptr %file, i32 %line, ptr @panic_no_function, i64 1)\n  \
             call void @llvm.trap()\n  \
             unreachable\n}}\n"
        );
        if self.has_index_panics {
            // The empty assembly uses the index and the length, and a function in the list keeps
            // parameters that are the same in all calls.
            let _ = write!(
                out,
                "@llvm.compiler.used = appending global [1 x ptr] [ptr @{PANIC_WITH_INDEX}], section \"llvm.metadata\"\n\
                 define internal void @{PANIC_WITH_INDEX}(i64 %index, i64 %length, ptr %message, ptr %location) cold noinline noreturn nounwind convergent {{\n  \
                 call void asm sideeffect \"\", \"l,l\"(i64 %index, i64 %length) convergent\n  \
                 call void @{PANIC_FUNCTION}(ptr %message, ptr %location) convergent\n  \
                 unreachable\n}}\n"
            );
        }
        out
    }

    /// Replaces the names of functions and globals.
    fn replace(&self, text: &str) -> String {
        if !text.contains('@') {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for lexeme in lex(text) {
            let Token::Global(spelling) = lexeme.token else {
                continue;
            };
            let symbol = name(spelling);
            let Some(new) = self.names.get(&*symbol) else {
                continue;
            };
            out += &text[copied..lexeme.start];
            if self.shared.contains(&*symbol) {
                let _ = write!(out, "addrspacecast (ptr addrspace(3) @{new} to ptr)");
            } else {
                let _ = write!(out, "@{new}");
            }
            copied = lexeme.end;
        }
        out + &text[copied..]
    }
}

/// Removes the flags that let LLVM choose between values. rustc sets `nsz` for `f32::max`, whose
/// result may be either zero: without it, the instruction is the same, and `max(-0.0, 0.0)` is 0.0
/// wherever LLVM computes it.
fn without_fast_math(mut text: String) -> String {
    const FLAGS: [&str; 8] = [
        " nsz ",
        " nnan ",
        " ninf ",
        " arcp ",
        " contract ",
        " afn ",
        " reassoc ",
        " fast ",
    ];
    // Texts of inline assembly are no flags.
    if !text.contains('"') {
        for flag in FLAGS {
            if text.contains(flag) {
                text = text.replace(flag, " ");
            }
        }
    }
    text
}

/// Returns the source location of an instruction, as the end of its text.
fn debug_location<'a>(instruction: &Instruction<'a>) -> &'a str {
    let text = instruction.text;
    text.rfind(", !dbg ").map_or("", |start| &text[start..])
}

/// Returns the number of a metadata node that mentions a function or a global.
fn mentioning_metadata(line: &str) -> Option<&str> {
    if !line.contains('@') {
        return None;
    }
    let lexemes = lex(line);
    let Token::Metadata(id) = lexemes.first()?.token else {
        return None;
    };
    lexemes
        .iter()
        .any(|lexeme| matches!(lexeme.token, Token::Global(_)))
        .then_some(id)
}

/// The `core` of rustup has more debug information than source lines, with which the driver would
/// not optimize.
fn with_source_lines_only(line: &str) -> String {
    const KIND: &str = "emissionKind: ";
    let kinds = [
        ("FullDebug", "DebugDirectivesOnly"),
        ("LineTablesOnly", "DebugDirectivesOnly"),
    ];
    let mut line = line.to_owned();
    if line.contains("!DICompileUnit(") {
        for (kind, replacement) in kinds {
            line = line.replacen(&format!("{KIND}{kind}"), &format!("{KIND}{replacement}"), 1);
        }
    }
    line
}

/// Splits `unnamed_addr` off the attributes that follow it.
fn split_address(suffix: &str) -> (&'static str, &str) {
    if let Some(rest) = suffix.strip_prefix("unnamed_addr") {
        return ("unnamed_addr ", rest.trim_start());
    }
    if let Some(rest) = suffix.strip_prefix("local_unnamed_addr") {
        return ("local_unnamed_addr ", rest.trim_start());
    }
    ("", suffix)
}

/// The processor is that of the build, not that for which `core` was compiled.
fn without_processor(group: &str) -> String {
    let mut group = group.to_owned();
    for attribute in [
        "\"target-cpu\"=\"",
        "\"target-features\"=\"",
        "\"tune-cpu\"=\"",
    ] {
        if let Some(start) = group.find(attribute) {
            let value = start + attribute.len();
            let length = group[value..].find('"').map_or(0, |length| length + 1);
            group.replace_range(start..value + length, "");
        }
    }
    group
}

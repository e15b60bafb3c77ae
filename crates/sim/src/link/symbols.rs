//! The symbols that the inputs of a link share.

use std::collections::HashMap;

use curium_format::ptx::Linkage;
use curium_ptx::exec::is_system_function;
use curium_ptx::syntax::Module;

/// The symbols of all inputs.
#[derive(Default)]
pub(crate) struct Symbols {
    /// The definition of each symbol that other inputs see.
    definitions: HashMap<String, Definition>,
    /// The symbols that inputs declare without a definition.
    declarations: Vec<Declaration>,
}

/// A symbol that another input must define.
struct Declaration {
    name: String,
    /// The name of the input that declares the symbol.
    file: String,
}

/// The definition that counts so far.
struct Definition {
    linkage: Linkage,
    /// The size of a variable in bytes, and 0 for a function.
    size: u64,
    /// The name of the input.
    file: String,
    /// The number of the input.
    index: usize,
}

impl Symbols {
    /// Adds the definitions of an input. Fails with the linker's message, and changes nothing, if
    /// they contradict those of other inputs.
    pub(crate) fn add(&mut self, module: &Module, index: usize, file: &str) -> Result<(), String> {
        let added: Vec<(&str, Definition)> = definitions(module)
            .map(|(name, linkage, size)| {
                (
                    name,
                    Definition {
                        linkage,
                        size,
                        file: file.to_owned(),
                        index,
                    },
                )
            })
            .collect();
        for (name, new) in &added {
            if let Some(first) = self.definitions.get(*name) {
                first.check(new, name)?;
            }
        }
        for (name, new) in added {
            match self.definitions.get_mut(name) {
                Some(first) if new.replaces(first) => *first = new,
                Some(_) => {}
                None => drop(self.definitions.insert(name.to_owned(), new)),
            }
        }
        let declared = external(module).map(|name| Declaration {
            name: name.to_owned(),
            file: file.to_owned(),
        });
        self.declarations.extend(declared);
        Ok(())
    }

    /// Returns the linker's message about symbols that no input defines, one a line.
    pub(crate) fn undefined(&self) -> Option<String> {
        let undefined: Vec<_> = self
            .declarations
            .iter()
            .filter(|symbol| !self.definitions.contains_key(&symbol.name))
            .map(|symbol| {
                format!(
                    "Undefined reference to '{}' in '{}'",
                    symbol.name, symbol.file
                )
            })
            .collect();
        (!undefined.is_empty()).then(|| undefined.join("\nerror   : "))
    }

    /// Returns `true` if an input has the definition of `name` that counts.
    pub(crate) fn is_from(&self, name: &str, index: usize) -> bool {
        self.definitions
            .get(name)
            .is_some_and(|definition| definition.index == index)
    }
}

/// Returns the names of what a module declares, and other modules must define.
fn external(module: &Module) -> impl Iterator<Item = &str> {
    let functions = module
        .functions
        .iter()
        .filter(|function| function.linkage == Linkage::Extern && !function.is_defined())
        .map(|function| module.text(function.name))
        .filter(|name| !is_system_function(name));
    let variables = module
        .variables
        .iter()
        .filter(|variable| variable.linkage == Linkage::Extern && !variable.is_shared())
        .map(|variable| module.text(variable.name));
    functions.chain(variables)
}

/// Returns name, linkage and size of what a module defines for others.
fn definitions(module: &Module) -> impl Iterator<Item = (&str, Linkage, u64)> {
    let functions = module
        .functions
        .iter()
        .filter(|function| function.is_defined());
    let functions = functions.map(|function| (function.name, function.linkage, 0));
    let variables = module
        .variables
        .iter()
        .map(|variable| (variable.name, variable.linkage, variable.size));
    let shared =
        |linkage: Linkage| matches!(linkage, Linkage::Visible | Linkage::Weak | Linkage::Common);
    let all = functions
        .chain(variables)
        .filter(move |(_, linkage, _)| shared(*linkage));
    all.map(|(name, linkage, size)| (module.text(name), linkage, size))
}

impl Definition {
    /// Fails if the linker refuses `new` beside this definition.
    fn check(&self, new: &Self, name: &str) -> Result<(), String> {
        let first = &self.file;
        let second = &new.file;
        match (self.linkage, new.linkage) {
            (Linkage::Visible, Linkage::Visible) => Err(format!(
                "Multiple definition of '{name}' in '{second}', first defined in '{first}'"
            )),
            (Linkage::Weak, Linkage::Weak) if self.size != new.size => Err(format!(
                "Size doesn't match for '{name}' in '{second}', first specified in '{first}'"
            )),
            (Linkage::Common, Linkage::Visible | Linkage::Weak) if self.size > new.size => {
                Err(format!(
                    "Common symbol '{name}' in file '{first}' has larger size than initialization"
                ))
            }
            (Linkage::Visible | Linkage::Weak, Linkage::Common) if self.size < new.size => {
                Err(format!(
                    "Common symbol '{name}' in file '{second}' has larger size than initialization"
                ))
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if this definition counts instead of an earlier one: a visible one before a
    /// weak one, any other before a common one, and the largest common one.
    fn replaces(&self, first: &Self) -> bool {
        match (self.linkage, first.linkage) {
            (Linkage::Common, Linkage::Common) => self.size > first.size,
            (Linkage::Common, _) | (Linkage::Weak, Linkage::Weak | Linkage::Visible) => false,
            _ => true,
        }
    }
}
